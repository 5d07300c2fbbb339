"""One script's own interpreter, where no zygote can be: every lock was taken before it was executed."""

import os
import sys
import types


def start(source, kind, folder, sites):
    if kind == "data":
        import site

        sites = sites + site.getsitepackages()
        sys.path += [path for path in sites if os.path.isdir(path)]
    sys.argv = [""]
    runtime = types.ModuleType("haft_runtime")
    exec(compile(source, "<haft_runtime>", "exec"), runtime.__dict__)
    sys.modules["haft_runtime"] = runtime
    sys.modules["__main__"] = types.ModuleType("__main__")
    if folder != "/workspace":
        import tempfile

        tempfile.tempdir = folder
    runtime.warm()
    os.write(3, b"R%s %d.%d.%d" % ((sys.implementation.name.encode(),) + sys.version_info[:3]))
    runtime.main(3, folder)


here = os.path.dirname(os.path.abspath(__file__))
try:
    with open(os.path.join(here, "runtime.py"), "rb") as file:
        source = file.read()
    start(source, sys.argv[1], sys.argv[2], sys.argv[3:])
except BaseException as error:
    try:
        os.write(3, ("E%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")[:1024])
    except OSError:
        pass
finally:
    os._exit(0)
