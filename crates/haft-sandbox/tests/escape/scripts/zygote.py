"""Attempts of code that a zygote imports, before any script's locks; and what a child inherits from them."""


def z_locks():
    if FOLDER != "/workspace":
        # Without a root of its own it sees no /proc.
        refused(open, "/proc/self/status")
        return
    if not os.path.isdir("/proc/self"):
        return
    with open("/proc/self/status") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines())
    # Namespaces, returning to its own mounts, and dropping the rest.
    few = "%016x" % (1 << 21 | 1 << 18 | 1 << 8)
    expect = {"CapEff": few, "CapPrm": few, "CapBnd": few, "NoNewPrivs": "1", "Seccomp": "2"}
    for name, value in expect.items():
        if status[name].strip() != value:
            through("%s is %s" % (name, status[name]))
    if os.getuid() == 0:
        through("the machine's root")


def z_mounts():
    bind_again = 0x1000 | 0x20
    for path in (b"/usr", b"/", b"/bin", b"/.haft", b"/proc"):
        denied(165, 0, path, 0, bind_again, 0)
        denied(165, b"tmpfs", path, b"tmpfs", 0, 0)
        denied(165, b"proc", path, b"proc", 0, 0)
        denied(166, path, 2)
        denied(442, -100, path, 0, b"\1" * 32, 32)
    for number in (155, 161, 428, 429, 430, 431, 432, 433, 467):
        denied(number, b"/usr", b"/tmp", 0, 0, 0)


def z_writes():
    for path in ("/usr/share/proof", "/usr/lib/proof", "/proof", "/.haft/zygote.py", "/etc/ld.so.cache", VICTIM,
                 "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/1/mem",
                 "/proc/1/oom_score_adj", "/proc/1/uid_map"):
        refused(open, path, "w")
    refused(os.mkdir, "/usr/proof")
    refused(os.unlink, VICTIM)
    refused(os.chmod, VICTIM, 0o777)


def z_namespaces():
    own = 0x20000000
    for flag in (0x10000000, 0x20000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80, own | 0x20000, own | 0x40000000):
        denied(272, flag)
        denied(272, flag | 1 << 40)
        denied(56, flag & ~0x80 | 17, 0, 0, 0, 0) if flag != 0x80 else None
    for kind in (0, 0x40000000, 0x10000000, 0x8000000, 0x4000000, 0x2000000):
        denied(308, 0, kind)


def z_calls():
    for number in (101, 310, 311, 438, 440, 312, 321, 323, 248, 249, 250, 298, 425, 426, 427, 175, 313, 176, 246, 320, 169,
                   167, 168, 163, 103, 164, 227, 170, 171, 172, 173, 135, 300, 179, 305, 159, 303, 304):
        denied(number, 1, 1, 1, 1, 1)
    for number in (435, 437, 319, 447):
        if raw(number, 0, 0, 0, 0) != -errno.ENOSYS:
            through("call %d" % number)


def z_sockets():
    for family in range(0, 46):
        for kind in (1, 2, 3, 5):
            denied(41, family, kind, 0)
    refused(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)


def z_programs():
    import subprocess

    for program in ("/bin/sh", "/bin/true", "/usr/bin/env"):
        refused(os.execv, program, [program])
    refused(subprocess.run, ["/bin/true"])


def z_sees():
    for path in ("/root", "/home", "/srv", "/var", "/sys", "/run", "/etc/passwd", "/etc/shadow", SECRET):
        refused(os.listdir if os.path.isdir(path) else open, path)
    if FOLDER == "/workspace":
        known = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "dev", "etc", "proc", "tmp", "workspace", ".haft",
                 ".nothing", "nix", "gnu"}
        odd = set(os.listdir("/")) - known
        if odd:
            through(odd)


def z_set_id():
    for call in (2, 85):
        denied(call, b"/tmp/x", 0o4755, 0o4755)
    denied(257, -100, b"/tmp", 0o20200002, 0o4755)


WRONG = []
for attempt in [value for name, value in sorted(globals().items()) if name.startswith("z_")]:
    try:
        attempt()
    except BaseException as error:
        WRONG.append("%s: %s: %s" % (attempt.__name__, type(error).__name__, error))


def warm():
    pass


def main(bridge, folder):
    link = socket.socket(fileno=bridge)
    link.recv(1 << 16)
    link.send(repr(WRONG).encode())
