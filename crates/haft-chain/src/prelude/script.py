# Part 4: the script. Checked before it starts, run as `__main__`, its end said to the host.

_FILE = "script.py"
_VALUE = "__haft_value__"
_MAIN = "__haft_main__"


class _State:
    """All that belongs to the one script."""

    def __init__(self, wire, start):
        self.wire = wire
        self.names = set(start.get("names", ()))
        self.signatures = start.get("signatures", {})
        self.code = start.get("code", "")
        self.open = "tool_expand_tools" in self.code
        self.pending = []

    def signature(self, name):
        return self.signatures.get(name)


_state = None


class _Refused(Exception):
    """The script does not start."""


def _nodes(tree):
    stack, pop = [tree], None
    pop = stack.pop
    while stack:
        node = pop()
        yield node
        for value in node.__dict__.values():
            if value.__class__ is list:
                stack.extend(one for one in value if isinstance(one, ast.AST))
            elif isinstance(value, ast.AST):
                stack.append(value)


def _name_of(function):
    """The tool that an expression names, if it names one: `tools.a`, `tools.a.b`, `tools["a.b"]`."""
    parts = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Subscript) and isinstance(function.value, ast.Name) and function.value.id == "tools" \
            and isinstance(function.slice, ast.Constant) and isinstance(function.slice.value, str) and not parts:
        return function.slice.value
    if parts and isinstance(function, ast.Name) and function.id == "tools":
        return ".".join(reversed(parts))
    return None


def _check(tree):
    """All calls whose names are known: unknown tools, missing and unknown arguments, positional ones. Whether `tools` is ours."""
    problems, calls = [], []
    for node in _nodes(tree):
        kind = node.__class__
        if kind is ast.Call:
            name = _name_of(node.func)
            if name is not None:
                calls.append((node, name))
        elif kind is ast.Name and node.id == "tools" and node.ctx.__class__ is not ast.Load \
                or kind is ast.arg and node.arg == "tools" \
                or kind is ast.alias and (node.asname or node.name.split(".")[0]) in ("tools", "*") \
                or kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef) and node.name == "tools" \
                or kind in (ast.Global, ast.Nonlocal) and "tools" in node.names:
            return False
    for node, name in calls:
        if name not in _state.names:
            if not _state.open:
                problems.append((node.lineno, f"no tool {name!r}{_near(name)}"))
            continue
        if node.args:
            problems.append((node.lineno, f"tools.{name}() takes keyword arguments only"))
            continue
        wanted = _state.signature(name)
        if wanted is None:
            continue
        given = {one.arg for one in node.keywords}
        if None in given:
            continue
        given = {_argument(one) for one in given}
        missing = [one for one in wanted["r"] if one not in given]
        if missing:
            problems.append((node.lineno, f"tools.{name}() misses {', '.join(missing)}"))
        unknown = sorted(given.difference(wanted["p"])) if not wanted["o"] else ()
        if unknown:
            known = ", ".join(map(_keyword, wanted["p"])) or "none"
            problems.append((node.lineno, f"tools.{name}() has no argument {', '.join(unknown)}; it takes: {known}"))
    if problems:
        lines = [f"line {line}: {what}" for line, what in sorted(problems)]
        raise _Refused("the script was not started, no call was made:\n" + "\n".join(lines))
    return True


class _Awaits(ast.NodeTransformer):
    """In async code a call of a tool that stands alone is waited for."""

    def __init__(self):
        self.inside = False

    def _scope(self, node, inside):
        before, self.inside = self.inside, inside
        self.generic_visit(node)
        self.inside = before
        return node

    def visit_AsyncFunctionDef(self, node):
        return self._scope(node, True)

    def visit_FunctionDef(self, node):
        return self._scope(node, False)

    def visit_Lambda(self, node):
        return self._scope(node, False)

    def visit_ClassDef(self, node):
        return self._scope(node, False)

    def visit_Expr(self, node):
        self.generic_visit(node)
        if self.inside and isinstance(node.value, ast.Call) and _name_of(node.value.func) is not None:
            node.value = ast.copy_location(ast.Await(node.value), node.value)
        return node


def _own(body):
    """The nodes of these statements without those of functions and classes in them."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        for value in node.__dict__.values():
            if value.__class__ is list:
                stack.extend(one for one in value if isinstance(one, ast.AST))
            elif isinstance(value, ast.AST):
                stack.append(value)


def _awaits(node):
    return isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or isinstance(node, ast.comprehension) and node.is_async


def _prepared(code):
    """The script's code object, and whether it is one function that returns its value."""
    tree = ast.parse(code, _FILE)
    body = tree.body
    ours = "tools" in code and _check(tree)
    words = "async" in code or "await" in code
    top_async = words and any(_awaits(node) for node in _own(body))
    if words and ours:
        awaits = _Awaits()
        awaits.inside = top_async
        tree = awaits.visit(tree)
        body = tree.body
    returns = "return" in code and any(isinstance(node, ast.Return) for node in _own(body))
    last = body[-1] if body else None
    if isinstance(last, ast.Expr):
        if returns:
            body[-1] = ast.copy_location(ast.Return(last.value), last)
        else:
            target = ast.copy_location(ast.Name(_VALUE, ast.Store()), last)
            body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    if not returns:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if top_async else 0
        return compile(tree, _FILE, "exec", flags, True), False
    return _wrapped(tree, top_async), True


def _wrapped(tree, top_async):
    """Its statements as the body of one function all of whose names are the module's; text is never touched."""
    future = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    body = [_unannotated(one) for one in tree.body if one not in future]
    head = ast.parse(f"{'async ' if top_async else ''}def {_MAIN}(): pass", _FILE)
    head.body[0].body = body
    head.body[:0] = future
    made = next(one for one in compile(head, _FILE, "exec", 0, True).co_consts if isinstance(one, types.CodeType))
    names = sorted(set(made.co_varnames) | set(made.co_cellvars))
    declared = {name for node in _own(body) if isinstance(node, ast.Global) for name in node.names}
    names = [name for name in names if name not in declared and not name.startswith(".")]
    if names:
        body.insert(0, ast.fix_missing_locations(ast.copy_location(ast.Global(names), body[0])))
    return compile(head, _FILE, "exec", 0, True)


def _unannotated(node):
    """`x: int = 1` as `x = 1`: a name of the module cannot be annotated in a function."""
    class Plain(ast.NodeTransformer):
        def visit_AnnAssign(self, one):
            if not isinstance(one.target, ast.Name):
                return one
            return ast.copy_location(ast.Assign([one.target], one.value) if one.value else ast.Pass(), one)

        def visit_FunctionDef(self, one):
            return one

        visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef
    return Plain().visit(node)


def _run(code):
    """Runs the script and gives its value."""
    module = types.ModuleType("__main__")
    scope = module.__dict__
    scope.update(__builtins__=builtins, __file__=_FILE, tools=_Tools(), artifacts=_Artifacts(), ToolError=ToolError)
    sys.modules["__main__"] = module
    lines = code.splitlines(True)
    linecache.cache[_FILE] = (len(code), None, lines, _FILE)
    made, function = _prepared(code)
    value = eval(made, scope)
    if function:
        value = scope.pop(_MAIN)()
    if isinstance(value, types.CoroutineType):
        value = asyncio.run(value)
    return scope.pop(_VALUE, None) if not function else value


def _finish():
    """What a script leaves running is waited for; a failure that nobody looked at is said."""
    if len(threading._active) > 1:
        threading._shutdown()
    atexit._run_exitfuncs()
    for one in _state.pending:
        if not one._looked:
            try:
                one._settle()
            except Exception as raised:
                sys.stderr.write(f"a call that nobody waited for failed: {raised}\n")


def _own_frames(trace, seen):
    """Only the script's frames, also in what caused the exception."""
    if trace is None or id(trace) in seen:
        return
    seen.add(id(trace))
    trace.stack = traceback.StackSummary.from_list([frame for frame in trace.stack if frame.filename == _FILE])
    _own_frames(trace.__cause__, seen)
    _own_frames(trace.__context__, seen)
    for one in getattr(trace, "exceptions", None) or ():
        _own_frames(one, seen)


def _said(error):
    """An exception as the host hears it."""
    if isinstance(error, _Refused):
        return {"type": "Refused", "message": str(error)}
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:
        message = ""
    said = {"type": name, "message": message[:4096]}
    try:
        trace = traceback.TracebackException(type(error), error, error.__traceback__)
        _own_frames(trace, set())
        if trace.stack:
            said["line"] = trace.stack[-1].lineno
        elif isinstance(error, SyntaxError) and error.lineno:
            said["line"] = error.lineno
        lines = list(trace.format())
        if isinstance(error, SyntaxError) and not trace.stack:
            lines = list(trace.format_exception_only())
        said["traceback"] = "".join(lines)
    except BaseException:
        said["traceback"] = f"{name}: {message}\n"
    if len(said["traceback"]) > 32768:
        said["traceback"] = said["traceback"][:16384] + "\n…\n" + said["traceback"][-16384:]
    return said


def _serve(wire, start):
    """Runs the script of a start message; the body of `done`."""
    global _state
    _state = _State(wire, start)
    sys.stdout, sys.stderr = _Out(wire, b"o", "<stdout>"), _Out(wire, b"e", "<stderr>")
    code = _state.code
    failed = value = None
    try:
        value = _run(code)
    except SystemExit as ended:
        if ended.code not in (None, 0):
            shown = ended.code if isinstance(ended.code, str) else f"the script exited with code {ended.code!r}"
            failed = {"type": "SystemExit", "message": str(shown)[:4096]}
    except BaseException as error:
        failed = _said(error)
    try:
        _finish()
        done = b"{}"
        if failed is None and value is not None:
            made = _json_of(_DATA, value, "the script's value")
            if len(made) > _MESSAGE - 1024:
                raise ValueError("the script's value takes more than 16 MiB: keep it as an artifact (artifacts.put)")
            if _depth(made.decode()) >= _DEPTH:
                raise ValueError(f"the script's value nests deeper than {_DEPTH}")
            done = b'{"value":%b}' % made
    except BaseException as error:
        failed = failed or _said(error)
    if failed is not None:
        done = json.dumps({"error": failed}, separators=(",", ":")).encode()
    return done


def main(fd, folder):
    """Runs the one script that comes by this descriptor."""
    wire = _Wire(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=fd))
    start = wire.answer(*wire.wait(0))
    try:
        os.chdir(folder)
    except OSError:
        pass
    sys.argv = [_FILE]
    _noise.start(start.get("record"), start.get("noise"))
    _seed(start["seed"])
    wire.looks = start.get("looks", 0)
    done = _serve(wire, start)
    with wire.lock:
        _flush_output()
        wire.send(b"d", 0, done)
    os._exit(0)


class _Mute:
    """A host that answers every call the same, to touch the pages that a script will touch."""

    def send(self, frame):
        if frame[:1] == b"c":
            self.number = frame[2:6]
        return len(frame)

    def recv_into(self, buffer, size=0, flags=0):
        frame = b"A\0" + self.number + b'{"status":"ok","text":"warm","data":{"a":[1]},"seq":1}'
        buffer[:len(frame)] = frame
        return len(frame)


_WARM = """
import json
total = 0
for n in range(3):
    total += len(tools.warm(n=n).text)
print("total", total)
json.loads(json.dumps({"total": total, "text": "\\u00e9"}))
{"total": total}
"""


def warm():
    """Touches what every script touches, and leaves nothing behind."""
    global _state
    kept = sys.stdout, sys.stderr, sys.modules.get("__main__")
    signatures = {"warm": {"r": ["n"], "p": ["n"], "o": False}}
    wire = _Wire(_Mute())
    _noise.start(True, None)
    _seed(1)
    _serve(wire, {"code": _WARM, "names": ["warm"], "signatures": signatures})
    _serve(wire, {"code": "def f():\n    return 1 / 0\nf()\n"})
    _noise.reset()
    sys.stdout, sys.stderr = kept[:2]
    sys.modules["__main__"] = kept[2]
    linecache.cache.pop(_FILE, None)
    _state = None
