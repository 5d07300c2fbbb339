"""Attempts of a script to escape, each with its number in the threat model.

An attempt returns if it was stopped; otherwise it fails and says how it got through.
"""

import ctypes
import errno
import os
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def through(how):
    raise AssertionError("got through: %s" % how)


def refused(call, *args, **more):
    """Asserts that the call raises a system error."""
    try:
        got = call(*args, **more)
    except (OSError, socket.gaierror):
        return
    through("%s%r gave %r" % (getattr(call, "__name__", call), args, got))


def raw(number, *args):
    """Makes a system call by number; returns its result, or minus the error."""
    ctypes.set_errno(0)
    args = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    done = LIBC.syscall(ctypes.c_long(number), *args)
    return -ctypes.get_errno() if done == -1 else done


def denied(number, *args):
    got = raw(number, *args)
    if got != -errno.EPERM:
        through("call %d%r gave %d" % (number, args, got))


def executable(path):
    # In the host's root, changing a mode is refused entirely.
    if FOLDER == "/workspace":
        os.chmod(path, 0o755)


# Files.


def row_1_users():
    for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/resolv.conf", "/etc/ssh"):
        refused(open, path)


def row_2_homes():
    for path in ("/root", "/home", "/var", "/run", "/srv", "/opt", "/mnt", "/etc", "/dev", "/sys", "/boot"):
        refused(os.listdir, path)


def row_3_root():
    refused(os.listdir, "/")


def row_4_system_is_not_written():
    for path in ("/x", "/usr/x", "/usr/lib/x", "/etc/x", "/dev/x", "/.haft/x", "/proc/x"):
        refused(open, path, "w")
        refused(os.mkdir, path)
    # A file that everybody on the host may change.
    for call, more in (
        (open, "r+b"),
        (open, "wb"),
        (os.truncate, 0),
        (os.chmod, 0o600),
        (os.utime, (1, 1)),
        (os.chown, os.getuid()),
        (os.setxattr, "user.x"),
        (os.rename, FOLDER + "/x"),
    ):
        more = {os.chown: (more, -1), os.setxattr: (more, b"x")}.get(call, (more,))
        refused(call, VICTIM, *more)
    refused(os.unlink, VICTIM)
    if VICTIM.startswith("/usr"):
        through("the test's own file lies in the system")


def row_5_devices():
    for name in ("kvm", "mem", "kmsg", "sda", "vda", "nvme0n1", "loop0", "tty", "ptmx", "fuse", "net/tun"):
        refused(os.open, "/dev/" + name, os.O_RDONLY)
    refused(os.mknod, FOLDER + "/disk", 0o600 | 0o060000, os.makedev(8, 0))
    refused(os.mknod, FOLDER + "/zero", 0o600 | 0o020000, os.makedev(1, 5))


def row_6_dots_and_links():
    os.symlink("/etc/passwd", FOLDER + "/users")
    os.symlink("/", FOLDER + "/top")
    for path in ("users", "top/etc/passwd", "../etc/passwd", "../../../../etc/passwd"):
        refused(open, FOLDER + "/" + path)
    refused(os.listdir, FOLDER + "/top")
    refused(os.listdir, FOLDER + "/..")


def row_7_hard_links_and_renames():
    here = VICTIM
    refused(os.link, here, FOLDER + "/here")
    refused(os.rename, here, FOLDER + "/here")
    open(FOLDER + "/own", "w").close()
    refused(os.rename, FOLDER + "/own", "/usr/lib/own")
    refused(os.link, FOLDER + "/own", "/own")


def j15_no_lock_of_the_hosts_files():
    import fcntl

    for path in ("/usr/bin/env", os.__file__):
        with open(path) as file:
            for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
                refused(fcntl.flock, file, kind | fcntl.LOCK_NB)
            refused(fcntl.lockf, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            refused(fcntl.fcntl, file, 1024, fcntl.F_RDLCK)


def row_8_proc_links():
    for path in ("/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/proc/self/fd"):
        refused(os.listdir, path)
    for path in ("/proc/self/maps", "/proc/1/environ", "/proc/self/mem", "/proc/version"):
        refused(open, path)


def row_9_no_descriptor_is_left():
    found = []
    for number in range(4096):
        try:
            found.append((number, os.fstat(number)))
        except OSError:
            pass
    numbers = [number for number, _ in found]
    if numbers != [0, 1, 2, 3]:
        through(numbers)
    for number, stat in found[:3]:
        if stat.st_rdev != os.makedev(1, 3):
            through("%d is not /dev/null" % number)


def row_10_no_descriptor_is_sent():
    refused(socket.send_fds, LINK, [b"x"], [0])
    refused(socket.recv_fds, LINK, 16, 4)


def row_11_files_by_handle():
    denied(303, -100, b"/etc", 0, 0, 0)
    denied(304, -100, 0, 0)


def row_12_mounts():
    folder = FOLDER.encode()
    denied(165, b"tmpfs", folder, b"tmpfs", 0, 0)
    denied(166, folder, 2)
    denied(155, folder, folder)
    refused(os.chroot, FOLDER)
    for number in (428, 429, 430, 431, 432, 433, 442, 467):
        denied(number, 0, 0, 0, 0, 0)


def row_16_no_set_id_file():
    path = FOLDER + "/program"
    open(path, "w").close()
    for mode in (0o4755, 0o2755, 0o6777):
        refused(os.chmod, path, mode)
        refused(os.open, FOLDER + "/other", os.O_CREAT | os.O_WRONLY, mode)
        refused(os.open, FOLDER, os.O_TMPFILE | os.O_RDWR, mode)
        denied(257, -100, path.encode(), os.O_RDWR, mode)
        refused(os.mkdir, FOLDER + "/folder", mode)
    executable(path)
    refused(os.execv, path, ["x"])


# The network.


def row_17_to_22_and_25_no_socket():
    for family in range(0, 46):
        for kind in (1, 2, 3, 5):
            denied(41, family, kind, 0)
    refused(socket.socket)
    refused(socket.create_connection, ("127.0.0.1", 22), 1)
    refused(socket.create_connection, ("169.254.169.254", 80), 1)


def row_19_no_name_is_looked_up():
    refused(socket.getaddrinfo, "example.com", 443)


def row_20_21_a_pair_reaches_no_name():
    refused(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)
    one, other = socket.socketpair()
    with one, other:
        for name in ("\0haft-host", "/run/systemd/journal/dev-log", "/var/run/docker.sock"):
            refused(one.connect, name)
            refused(one.sendto, b"x", name)
            refused(one.bind, name)
        refused(one.listen)
        refused(one.accept)
        # The credentials of its peer, and a handle on the peer process.
        refused(one.getsockopt, socket.SOL_SOCKET, 17, 12)
        refused(one.getsockopt, socket.SOL_SOCKET, 77, 4)
        refused(one.setsockopt, socket.SOL_SOCKET, 26, b"x" * 16)
        one.send(b"x")
        assert other.recv(1) == b"x"


def row_23_no_uring():
    for number in (425, 426, 427):
        denied(number, 1, 0, 0)


def row_24_no_other_network():
    denied(308, 0, 0x40000000)
    refused(os.open, "/proc/1/ns/net", os.O_RDONLY)


# Processes.


def row_27_no_process():
    import subprocess

    refused(os.fork)
    refused(os.forkpty)
    refused(subprocess.run, ["/bin/true"])
    refused(os.posix_spawn, "/bin/true", ["true"], {})
    refused(os.system, "true") if os.system("true") == 0 else None
    denied(57)
    denied(58)
    for flags in (17, 0, 0x4000 | 0x100 | 17, 0x8000 | 17):
        denied(56, flags, 0, 0, 0, 0)


def row_27_no_program():
    refused(os.execv, sys.executable or "/usr/bin/python3", ["python3", "-c", ""])
    refused(os.execv, "/bin/true", ["true"])
    denied(322, 3, b"", 0, 0, 0x1000)


def row_28_no_signal():
    import signal

    for process in (1, 2, os.getppid(), -1, 0):
        refused(os.kill, process, signal.SIGKILL)
        refused(os.kill, process, 0)
    denied(200, 2, 9)
    denied(234, 2, 2, 9)
    denied(129, 1, 9, 0)
    denied(297, 1, 1, 9, 0)
    denied(424, 0, 9, 0, 0)


def row_29_no_memory_of_others():
    denied(101, 16, 1, 0, 0)
    denied(310, 1, 0, 0, 0, 0, 0)
    denied(311, 1, 0, 0, 0, 0, 0)
    denied(434, 1, 0)
    denied(438, 3, 1, 0)
    denied(440, 3, 0, 0, 0, 0)
    denied(312, 1, 1, 0, 0, 0)


def row_31_no_session():
    refused(os.setsid)
    refused(os.setpgid, 0, 0)
    refused(os.nice, 1)


def row_32_no_terminal():
    import fcntl

    for number in range(4):
        for request in (0x5412, 0x541C, 0x5423, 0x540E):
            refused(fcntl.ioctl, number, request, b"x" * 8)


def row_33_no_survival():
    for option in (1, 4, 8, 22, 24, 28, 36, 38, 47, 53):
        denied(157, option, 1, 0, 0, 0)


def row_34_proc_is_not_written():
    for path in ("/proc/1/mem", "/proc/self/mem", "/proc/self/oom_score_adj", "/proc/sysrq-trigger",
                 "/proc/sys/kernel/core_pattern", "/proc/self/uid_map"):
        refused(open, path, "r+b")


def row_35_paths_are_not_ours():
    for path in sys.path:
        if path in ("", ".") or path.startswith((FOLDER, "/tmp", "/.haft")):
            through(sys.path)
    for name in ("sitecustomize", "usercustomize"):
        if name in sys.modules:
            through(name)


def row_36_no_secret():
    import gc

    known = {"LANG", "TZ"}
    odd = [name for name in os.environ if name not in known and not name.startswith("PYTHON")]
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(LIBC, "environ")
    at = 0
    while environ[at]:
        name = environ[at].split(b"=")[0].decode()
        if name not in known and not name.startswith("PYTHON"):
            odd.append(name)
        at += 1
    if odd:
        through(odd)
    mark = "".join(["in-the-environ", "ment-of-the-host"])
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            for value in list(thing.values()):
                if isinstance(value, (str, bytes)) and len(value) < 100 and mark in str(value):
                    through("the host's environment")


# The kernel.


def row_37_no_namespace():
    for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
        denied(272, flag)
        if flag != 0x80:
            denied(56, flag | 17, 0, 0, 0, 0)
            denied(56, flag | 0x10000 | 0x800 | 0x100, 0, 0, 0, 0)


def row_38_to_41_no_program_fault_handler_key_or_counter():
    for number in (321, 323, 248, 249, 250, 298):
        denied(number, 0, 0, 0, 0, 0)


def row_42_x32_kills():
    raw(0x40000000 + 39)
    through("x32")


def row_42_i386_kills():
    import mmap

    page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # mov eax, 20 (getpid); int 0x80; ret
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(ctypes.c_int)(start)()
    through("i386")


def row_43_clone3_is_absent():
    assert raw(435, 0, 0) == -errno.ENOSYS
    assert raw(437, 0, 0, 0, 0) == -errno.ENOSYS


def row_44_every_other_call():
    wrong = []
    for number in range(601):
        # The kernel's own return from a probe: it kills every caller, before any filter.
        # Where Landlock keeps signals inside, only call 234 (tgkill) sends them.
        if number == 234 and FOLDER != "/workspace":
            continue
        if number in (335, 336) or number in KNOWN_CALLS:
            continue
        got = raw(number, -1, -1, -1, -1, -1, -1)
        if got not in (-errno.EPERM, -errno.ENOSYS):
            wrong.append((number, got))
    if wrong:
        through(wrong)


def row_45_every_request():
    import fcntl
    import random

    known = {0x541B, 0x5421, 0x5451, 0x5450, 0x5401, 0x5413}
    requests = set(range(0x5400, 0x5480)) | {random.getrandbits(32) for _ in range(3000)}
    for request in requests - known:
        for number in range(4):
            got = raw(16, number, request, 0)
            if got != -errno.EPERM:
                through("request %#x on %d gave %d" % (request, number, got))
    for request in (0, 1, 2, 3, 4, 8, 10, 1024, 1026, 1031, 1033, 1034):
        allowed = request in (0, 1, 2, 3, 4)
        if not allowed:
            denied(72, 3, request, 0)
    fcntl.fcntl(3, fcntl.F_GETFL)


def row_46_no_machine():
    for number in (175, 313, 176, 246, 320, 169, 167, 168, 163, 103, 164, 227, 170, 171, 172, 173,
                   135, 153, 300, 179, 305, 159):
        denied(number, 1, 1, 1, 1, 1)
    for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/sys/power/state"):
        refused(open, path, "w")


def row_47_no_program_in_memory():
    denied(319, b"x", 0)
    denied(447, 0)
    path = FOLDER + "/program"
    with open(path, "wb") as file:
        file.write(open(sys.executable or "/usr/bin/env", "rb").read(4096))
    executable(path)
    refused(os.execv, path, ["x"])
    file = os.open(path, os.O_RDONLY)
    denied(322, file, b"", 0, 0, 0x1000)


# Resources.


def row_aj13_memory_that_is_mapped_no_longer():
    shared, anonymous, both = 1, 0x20, 3
    denied(9, 0, 1 << 20, both, shared | anonymous, -1, 0)
    # The same with MAP_SHARED_VALIDATE, and through the device.
    assert raw(9, 0, 1 << 20, both, 3 | anonymous, -1, 0) < 0
    refused(os.open, "/dev/zero", os.O_RDONLY)


def row_49_much_memory_at_once():
    try:
        bytearray(3 << 30)
    except MemoryError:
        return
    through("3 GiB")


def row_50_much_memory_slowly():
    kept = []
    try:
        while len(kept) < 1100:
            kept.append(bytes(1 << 20))
    except MemoryError:
        kept.clear()
        return
    through("1.1 GiB")


def row_51_a_full_folder():
    written = 0
    try:
        for number in range(8):
            with open("%s/%d" % (FOLDER, number), "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(bytes(1 << 20))
    except OSError as error:
        assert error.errno == errno.ENOSPC and written <= 64 << 20, (error, written)
        return
    through("128 MiB")


def row_52_one_large_file():
    written = 0
    try:
        with open(FOLDER + "/large", "wb", buffering=0) as file:
            while written < 200 << 20:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        assert error.errno in (errno.EFBIG, errno.ENOSPC) and written <= 64 << 20, (error, written)
        return
    through("200 MiB")


def row_aj8_the_limit_on_core_files():
    prlimit64, core, none = 302, 4, (ctypes.c_ulong * 2)(0, 0)
    denied(prlimit64, 0, core, ctypes.byref(none), 0)
    now = (ctypes.c_ulong * 2)()
    assert raw(prlimit64, 0, core, 0, ctypes.byref(now)) == 0 and list(now) == [1, 1], list(now)


def row_53_many_descriptors():
    kept = []
    try:
        while len(kept) < 1000:
            kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        assert error.errno == errno.EMFILE and len(kept) <= 64, (error, len(kept))
        return
    through("1000 descriptors")


def row_54_many_threads(most=80):
    import _thread
    import threading

    threading.stack_size(64 << 10)
    gate = _thread.allocate_lock()
    gate.acquire()

    def wait():
        with gate:
            pass

    started = 0
    try:
        # Not threading.Thread: its start waits until the thread reports that it runs, which a thread without memory never does.
        while started < 20000:
            _thread.start_new_thread(wait, ())
            started += 1
    except (RuntimeError, MemoryError):
        pass
    finally:
        gate.release()
    if started > most:
        through("%d threads" % started)
    assert started >= 8, started


def row_58_many_files():
    made = 0
    try:
        while made < 20000:
            open("%s/%d" % (FOLDER, made), "w").close()
            made += 1
    except OSError as error:
        assert error.errno == errno.ENOSPC and made <= 8192, (error, made)
        return
    through("20,000 files")


def no_limit_is_raised():
    import resource

    for what in (resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):
        soft, hard = resource.getrlimit(what)
        for more in (hard + 1, resource.RLIM_INFINITY):
            try:
                resource.setrlimit(what, (soft, more))
            except (ValueError, OSError):
                continue
            through((what, more))
    refused(resource.prlimit, 2, resource.RLIMIT_AS)


def what_scripts_need_works():
    import asyncio
    import json
    import sqlite3
    import tempfile
    import threading
    import time
    import zoneinfo

    async def both():
        return await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(lambda: 2))

    assert asyncio.run(both()) == [1, 2]
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("x")
    with open("relative", "w") as file:
        file.write("x")
    assert open(FOLDER + "/relative").read() == "x"
    import shutil

    (shutil.copy if FOLDER == "/workspace" else shutil.copyfile)("relative", "copy")
    base = sqlite3.connect(FOLDER + "/base.db")
    base.execute("create table t (x)")
    base.execute("insert into t values (1)")
    base.commit()
    thread = threading.Thread(target=time.sleep, args=(0.01,))
    thread.start()
    thread.join()
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda value: value + 1)
    assert callback(1) == 2
    try:
        zoneinfo.ZoneInfo("Europe/Berlin")
    except zoneinfo.ZoneInfoNotFoundError:
        pass
    assert json.loads(json.dumps({"a": [1, None]})) == {"a": [1, None]}
    import random, uuid

    LINK.send(json.dumps([random.random(), str(uuid.uuid4()), uuid.getnode()]).encode())
