"""Started once, under the locks of a command; forks one locked child for each script.

Files beside this one: the locks' library and list, and the runtime. Standard output is the host's
control socket; from standard input come mount namespaces, one for each child. A child runs nothing of a
script before its last lock is taken.
"""

import ctypes
import gc
import os
import signal
import socket
import struct
import sys
import types

# What most scripts import: read from disk and compiled once, here.
COMMON = """
    re json datetime math cmath random collections collections.abc itertools functools operator asyncio
    traceback linecache time statistics string textwrap dataclasses typing types io hashlib hmac base64 binascii
    decimal fractions enum csv urllib.parse uuid copy heapq bisect struct ast inspect threading queue contextlib
    abc numbers html difflib fnmatch pathlib shutil tempfile pprint keyword unicodedata zlib calendar
    zoneinfo secrets array warnings weakref glob
"""
DATA = "numpy pandas"
# So often the runtime is run before the first fork: by then CPython has specialised what every script runs, and the
# children have that from their first line on.
PRACTICE = 16


def read(name):
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()


def load_runtime():
    runtime = types.ModuleType("haft_runtime")
    source = read("runtime.py")
    exec(compile(source, "<haft_runtime>", "exec"), runtime.__dict__)
    sys.modules["haft_runtime"] = runtime
    return runtime


def load(words):
    """Imports what is there of these modules."""
    for word in words.split():
        try:
            __import__(word)
        except Exception:
            pass


def clean(data, sites):
    """The paths and the environment that scripts see: no folder of ours, no variable of a library's."""
    sys.path[:] = [path for path in sys.path if path and path != HERE]
    if data:
        import site

        sites = list(sites) + site.getsitepackages()
        sys.path += [path for path in sites if os.path.isdir(path)]
    sys.argv = [""]


def forget_environment():
    for name in list(os.environ):
        if name not in ("LANG", "TZ") and not name.startswith("PYTHON"):
            del os.environ[name]


def has(name):
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return False


def could_have_data(sites):
    import site

    before = list(sys.path)
    sys.path += list(sites) + site.getsitepackages()
    try:
        return has("numpy") or has("pandas")
    finally:
        sys.path[:] = before
        sys.path_importer_cache.clear()


def child(lock, bridge, mounts, folder, runtime, warm):
    """One script's process, from its locks to its end."""
    try:
        os.dup2(0, 2)
        path = folder.encode()
        fault = lock.haft_lock(LOCKS, len(LOCKS), bridge, mounts, path)
        if fault:
            os.write(3 if fault >> 16 else bridge, b"E%d %d" % (fault >> 16, fault & 0xFFFF))
            os._exit(1)
        if folder != "/workspace":
            tempfile = sys.modules.get("tempfile")
            if tempfile is not None:
                tempfile.tempdir = folder
        if warm:
            runtime.warm()
        os.write(3, b"R")
        runtime.main(3, folder)
    except BaseException as error:
        try:
            os.write(3, ("E%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")[:1024])
        except OSError:
            pass
    finally:
        os._exit(0)


def take(mounts):
    """The mounts that were made for the next child; others are made in the meantime."""
    message, files, _, _ = socket.recv_fds(mounts, 256, 1)
    if not files:
        raise OSError(message.decode() or "nobody makes mounts any more")
    mounts.send(b"n")
    return files[0]


def spawn(lock, own, mounts, bridge, folder, runtime, warm):
    """Forks the child; its pidfd. The pid namespace is made for the next child alone, and left again."""
    taken = take(mounts) if mounts else -1
    try:
        if mounts:
            failed = lock.haft_new_pids()
            if failed:
                raise OSError(-failed, "make a pid namespace")
        try:
            pid = os.fork()
            if pid == 0:
                child(lock, bridge, taken, folder, runtime, warm)
        finally:
            if mounts:
                failed = lock.haft_old_pids(own)
                if failed:
                    os._exit(1)
    finally:
        if mounts:
            os.close(taken)
    watch = lock.haft_watch(pid)
    if watch < 0:
        raise OSError(-watch, "watch the child")
    return watch


def serve(control, lock, own, mounts, runtime):
    while True:
        try:
            message, files, _, _ = socket.recv_fds(control, 4096, 1)
        except InterruptedError:
            continue
        if not message:
            os._exit(0)
        number, warm, folder = message[:8], message[8:9] == b"w", message[9:].decode() or "/workspace"
        try:
            watch = spawn(lock, own, mounts, files[0], folder, runtime, warm)
        except BaseException as error:
            control.send(number + b"E" + str(error).encode()[:1024])
        else:
            socket.send_fds(control, [number + b"P"], [watch])
            os.close(watch)
        finally:
            for file in files:
                os.close(file)


def start(kind, namespaces, sites):
    global LOCKS
    control = socket.socket(fileno=os.dup(1))
    mounts = socket.socket(fileno=os.dup(0)) if namespaces else None
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    lock = ctypes.PyDLL(os.path.join(HERE, "lockdown.so"))
    for name in ("haft_new_pids", "haft_old_pids", "haft_watch", "haft_is_alone", "haft_lock"):
        getattr(lock, name).restype = ctypes.c_long
    lock.haft_lock.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_char_p]
    LOCKS = read("locks")
    data = kind == "data"
    clean(data, sites)
    load(COMMON)
    if data:
        load(DATA)
    forget_environment()
    runtime = load_runtime()
    for _ in range(PRACTICE):
        runtime.warm()
    if lock.haft_is_alone() != 0 or sys.modules["threading"].active_count() != 1:
        control.send(b"Ethreads run after the imports")
        os._exit(1)
    own = lock.haft_watch(os.getpid())
    if own < 0:
        control.send(b"Eno pidfd: %d" % -own)
        os._exit(1)
    # Children are not waited for: the host watches them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    data = any(name in sys.modules for name in DATA.split()) if data else could_have_data(sites)
    version = "%d.%d.%d" % sys.version_info[:3]
    name = sys.implementation.name
    sys.modules["__main__"] = types.ModuleType("__main__")
    gc.collect()
    gc.freeze()
    control.send(("Z%s %s %d" % (name, version, data)).encode())
    serve(control, lock, own, mounts, runtime)


HERE = os.path.dirname(os.path.abspath(__file__))
start(sys.argv[1], sys.argv[2] == "namespaces", sys.argv[3:])
