# Part 3: what calls give, and what values become on their way out.

class ToolError(Exception):
    """A call that did not succeed: `.kind`, `.message`, `.advice`, `.result`."""

    __module__ = "builtins"
    kind, message, advice, result = "failed", "", None, None

    @staticmethod
    def _of(error, result, printed=""):
        kind, message, advice = error.get("kind", "failed"), error.get("message", ""), error.get("advice")
        text = f"{message} ({advice})" if advice else message
        raised = PermissionError(text) if kind == "denied" else ToolError(text)
        raised.kind, raised.message, raised.advice, raised.result = kind, message, advice, result
        if printed and hasattr(raised, "add_note"):
            # A script that does not catch it ends with what the call printed in its traceback.
            raised.add_note(printed)
        return raised


class _Readable:
    """Something whose bytes are kept by the host under a ref."""

    __slots__ = ()
    _PIECE = 1 << 20

    def _whole(self):
        """Ref, size and media type, or none where all is here."""
        return None

    def _text(self):
        return ""

    def read(self, offset=0, n=None):
        """Bytes `offset` to `offset + n` (to the end where `n` is none): text as str, else bytes."""
        if offset < 0 or n is not None and n < 0:
            raise ValueError("offset and n must not be negative")
        kept = self._whole()
        if kept is None:
            whole = self._text().encode("utf-8", "surrogatepass")
            return whole[offset:None if n is None else offset + n].decode("utf-8", "replace")
        ref, size, media_type = kept
        end = size if n is None else min(size, offset + n)
        pieces = []
        while offset < end:
            piece = _state.wire.ask(b"r", b"%b %d %d" % (ref.encode(), offset, min(self._PIECE, end - offset)))
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        joined = b"".join(pieces)
        return joined.decode("utf-8", "replace") if _is_text(media_type) else joined

    def lines(self):
        """The lines of the text, fetched piece by piece."""
        kept = self._whole()
        if kept is None:
            yield from self._text().splitlines()
            return
        ref, size, _ = kept
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        offset, rest = 0, ""
        while offset < size:
            piece = _state.wire.ask(b"r", b"%b %d %d" % (ref.encode(), offset, min(self._PIECE, size - offset)))
            if not piece:
                break
            offset += len(piece)
            lines = (rest + decode(piece, offset >= size)).split("\n")
            rest = lines.pop()
            for line in lines:
                yield line[:-1] if line.endswith("\r") else line
        if rest:
            yield rest

    def json(self):
        """The whole as JSON."""
        kept = self._whole()
        return json.loads(self._text() if kept is None else self.read())


def _is_text(media_type):
    return media_type.startswith("text/") or media_type.split(";")[0].endswith(("json", "xml", "javascript"))


class Artifact(_Readable):
    """Bytes kept by the host: `.ref`, `.media_type`, `.bytes`, `.preview`."""

    __slots__ = ("ref", "media_type", "bytes", "preview", "path")

    def __init__(self, known):
        self.ref, self.media_type = known["ref"], known.get("media_type", "")
        self.bytes, self.preview, self.path = known.get("bytes", 0), known.get("preview", ""), known.get("path")

    def _whole(self):
        return self.ref, self.bytes, self.media_type

    def __repr__(self):
        return f"<artifact {self.ref[:19]}… {self.media_type} {self.bytes} bytes>"

    def __str__(self):
        return self.path or self.ref


class Result(_Readable):
    """What a call gave: `.text`, `.data`, `.ref`, `.files`, `.artifacts`, `.status`, `.error`."""

    __slots__ = ("text", "data", "artifacts", "files", "status", "error")

    def __init__(self, reply):
        get = reply.get
        self.text, self.data, self.status, self.error = get("text", ""), get("data"), get("status", "ok"), get("error")
        kept = get("artifacts")
        self.artifacts = [Artifact(one) for one in kept] if kept else []
        files = get("files")
        self.files = [Artifact(one) for one in files] if files else []

    @property
    def ref(self):
        return self.artifacts[0].ref if self.artifacts else None

    def _of_type(self, json_wanted):
        for kept in self.artifacts:
            if (kept.media_type == "application/json") == json_wanted:
                return kept
        return None

    def _whole(self):
        kept = self._of_type(False) or (None if self.text else self._of_type(True))
        return kept and kept._whole()

    def _text(self):
        return self.text if self.text or self.data is None else _encode(self.data)

    def json(self):
        kept = self._of_type(True)
        if kept is not None:
            return kept.json()
        return self.data if self.data is not None else _Readable.json(self)

    def __str__(self):
        return self.text

    def __repr__(self):
        parts = [f"text={_short(self.text)}"] if self.text else []
        if self.data is not None:
            parts.append(f"data={_short(self.data)}")
        if self.artifacts:
            parts.append(f"ref={self.ref[:19]}…")
        return f"<result {self.status}{''.join(' ' + part for part in parts)}>"

    def __await__(self):
        return self
        yield


def _short(value):
    shown = repr(value)
    return shown if len(shown) <= 200 else shown[:200] + "…"


def _settled(body):
    """The result of a reply, or what it raises."""
    reply = _scan_json(body.decode(), 0)[0]
    result = Result(reply)
    if result.status != "ok":
        error = result.error or {"kind": result.status, "message": f"the call ended {result.status}"}
        if result.status == "denied":
            error["kind"] = "denied"
        raise ToolError._of(error, result, reply.get("printed", ""))
    return result


class Pending:
    """A call under way: `await` it, or touch what it gives."""

    __slots__ = ("_wire", "_number", "_result", "_raised", "_looked", "__weakref__")

    def __init__(self, wire, number):
        self._wire, self._number = wire, number
        self._result = self._raised = None
        self._looked = False
        _state.pending.append(self)

    def _settle(self):
        self._looked = True
        if self._result is None and self._raised is None:
            _, body = self._wire.wait(self._number)
            try:
                self._result = _settled(body)
            except Exception as raised:
                self._raised = raised
        if self._raised is not None:
            raise self._raised
        return self._result

    def __await__(self):
        self._looked = True
        if self._result is None and self._raised is None:
            future = self._wire.future(self._number, _get_running_loop())
            if future is not None:
                yield from future
        return self._settle()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._settle(), name)

    def __str__(self):
        return str(self._settle())

    def __repr__(self):
        if self._result is None and self._raised is None:
            return "<result pending>"
        return repr(self._result or self._raised)


def _plain(value):
    """What JSON does not know, as something it knows."""
    kind = value.__class__
    if isinstance(value, (_RealDate, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return base64.b64encode(data).decode()
    if isinstance(value, (decimal.Decimal, fractions.Fraction, pathlib.PurePath, uuid.UUID)):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (collections.deque, range, types.GeneratorType, collections.abc.KeysView,
                          collections.abc.ValuesView, collections.abc.ItemsView, map, filter, zip)):
        return list(value)
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if kind.__name__ == "DataFrame" and hasattr(value, "to_dict"):
        return value.to_dict(orient="records")
    for name in ("tolist", "item"):
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            return method()
    raise TypeError(f"{kind.__name__} is not a JSON value")


def _as_argument(value):
    if isinstance(value, Pending):
        value = value._settle()
    if isinstance(value, Artifact):
        return {"$artifact": value.ref}
    if isinstance(value, Result):
        ref = value.ref
        if ref is not None:
            return {"$artifact": ref}
        return value.text if value.text or value.data is None else value.data
    return _plain(value)


def _as_data(value):
    if isinstance(value, Pending):
        value = value._settle()
    if isinstance(value, Artifact):
        return {"ref": value.ref, "media_type": value.media_type, "bytes": value.bytes}
    if isinstance(value, Result):
        return value.data if value.data is not None else value.text
    return _plain(value)


def _encoder(default):
    """An encoder without the cost of making its inside for each value; without the check for circles, which end as too deep."""
    slow = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=default)
    try:
        fast = json.encoder.c_make_encoder(None, default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
        slow.encode = lambda value: "".join(fast(value, 0))
        assert slow.encode({"a": [1, "\u00e9"]}) == '{"a":[1,"\u00e9"]}'
    except Exception:
        slow.__dict__.pop("encode", None)
    return slow


_ARGUMENTS, _DATA = _encoder(_as_argument), _encoder(_as_data)


_MESSAGE, _PUT, _DEPTH = 16 << 20, 64 << 20, 128


def _depth(text):
    """How deep JSON nests."""
    if text.count("[") + text.count("{") < _DEPTH:
        return 0
    now = most = 0
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"', "", text)):
        now += 1 if bracket in "[{" else -1
        most = max(most, now)
    return most


def _json_of(encoder, value, what):
    """The bytes of a value; an error says where in it something is not JSON."""
    try:
        return encoder.encode(value).encode()
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply for JSON") from None
    except (ValueError, TypeError) as error:
        where = _where(encoder, value, what, 0)
        raise type(error)(where or f"{what} is not JSON: {error}") if not isinstance(error, UnicodeError) \
            else ValueError(f"{what} holds half a surrogate pair, which is not text") from None


def _where(encoder, value, path, depth):
    if depth > 50:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path} is {value}, which JSON has not"
    if isinstance(value, dict):
        for key, one in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                return f"{path} has the key {_short(key)}; keys must be text"
            found = _where(encoder, one, f"{path}[{key!r}]", depth + 1)
            if found:
                return found
    elif isinstance(value, (list, tuple)):
        for at, one in enumerate(value):
            found = _where(encoder, one, f"{path}[{at}]", depth + 1)
            if found:
                return found
    elif not isinstance(value, (str, int, bool, type(None))):
        try:
            return _where(encoder, encoder.default(value), path, depth + 1)
        except TypeError as error:
            return f"{path}: {error}"
    return None


class _Artifacts:
    """`artifacts.put(...)`: keeps bytes with the host, for other calls and for whoever reads the run."""

    def put(self, value, media_type=None):
        """Keeps bytes, a text, or the file of a path (a Path, or the name of a file that there is)."""
        wire = _state.wire
        if isinstance(value, str) and len(value) < 4096 and "\n" not in value and "\0" not in value \
                and os.path.isfile(value):
            value = pathlib.Path(value)
        if isinstance(value, os.PathLike):
            kind = media_type or mimetypes.guess_type(os.fspath(value))[0] or "application/octet-stream"
            if os.path.getsize(value) > _PUT:
                raise ValueError("an artifact takes at most 64 MiB")
            with open(value, "rb") as file:
                number = wire.stream(_pieces(file, _media_type(kind)))
        else:
            if isinstance(value, str):
                kind, value = media_type or "text/plain", value.encode()
            else:
                kind, value = media_type or "application/octet-stream", bytes(value)
            if len(value) > _PUT:
                raise ValueError("an artifact takes at most 64 MiB")
            number = wire.request(b"p", _media_type(kind) + value)
        return Artifact(wire.answer(*wire.wait(number)))

    def get(self, ref):
        """An artifact of this run by its ref."""
        return Artifact(_state.wire.ask(b"i", str(ref).encode()))

    def __repr__(self):
        return "<artifacts: put(bytes|text|path, media_type=None), get(ref)>"


def _media_type(kind):
    if not isinstance(kind, str) or "\n" in kind or len(kind) > 128:
        raise ValueError("media_type must be one short line")
    return kind.encode() + b"\n"


def _pieces(file, head):
    yield head
    while piece := file.read(_BODY):
        yield piece


class _Tools:
    """`tools.NAME(key=value, ...)`."""

    def __getattr__(self, name):
        self.__dict__[name] = tool = _tool(name, name)
        return tool

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError("a tool's name is text")
        return _Call(name)

    def __dir__(self):
        return sorted({name.split(".")[0] for name in _state.names})

    def __contains__(self, name):
        return name in _state.names

    def __iter__(self):
        return iter(sorted(_state.names))

    def __repr__(self):
        return f"<{len(_state.names)} tools: {', '.join(sorted(_state.names)[:20])}>"


def _tool(name, last):
    if name in _state.names or _state.open and not last.startswith("_"):
        return _Call(name)
    prefix = name + "."
    if any(known.startswith(prefix) for known in _state.names):
        return _Call(name)
    raise AttributeError(f"no tool {name!r}{_near(name)}")


def _near(name):
    near = difflib.get_close_matches(name, _state.names, 3, 0.5)
    return f"; nearest: {', '.join(near)}" if near else "; dir(tools) names those there are"


_KEYWORDS = frozenset(keyword.kwlist)


def _argument(name):
    """`from_` as `from`: Python's own words cannot name an argument."""
    return name[:-1] if name[-1:] == "_" and name[:-1] in _KEYWORDS else name


def _keyword(name):
    return name + "_" if name in _KEYWORDS else name


class _Call:
    """One tool, to be called; or a server, whose tools are its attributes."""

    __slots__ = ("_name", "_bytes")

    def __init__(self, name):
        self._name, self._bytes = name, name.encode("utf-8", "backslashreplace")

    def __call__(self, *args, **arguments):
        if args:
            wanted = _state.signature(self._name)
            names = ", ".join(f"{_keyword(name)}=…" for name in wanted["p"]) if wanted else "name=value"
            raise TypeError(f"tools.{self._name}() takes keyword arguments only: tools.{self._name}({names})")
        wire = _state.wire
        for name in arguments:
            if name[-1:] == "_" and name[:-1] in _KEYWORDS:
                arguments = {_argument(name): value for name, value in arguments.items()}
                break
        body = _json_of(_ARGUMENTS, arguments, "arguments") if arguments else b"{}"
        if len(body) > _MESSAGE - 1024:
            raise ValueError("the arguments take more than 16 MiB: pass a result or an artifact (artifacts.put) by reference")
        number = wire.call(self._bytes, body)
        if _get_running_loop() is not None:
            return Pending(wire, number)
        return _settled(wire.wait(number)[1])

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _tool(f"{self._name}.{name}", name)

    def __repr__(self):
        return f"<tool {self._name}>"


