//! T7, J16: what `/proc` and `/sys` tell of the machine: the limits of the jail, and nothing else of the host.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::runner::Test;
use crate::{Attempt, Outcome, Stage, fails_with, refused, stopped};

pub(crate) const TESTS: &[Test] = &[
    ("proc_j16_proc_shows_nothing_of_the_machine", || {
        stopped("proc_shows", &[]);
    }),
    ("proc_t7_covers_of_proc_stay", || {
        stopped("uncovered", &[]);
    }),
    ("proc_t7_made_up_files_tell_the_limits", made_up),
];

/// What a `/proc` has besides processes. Everything else is empty, closed or made up.
const KNOWN: &[&str] = &[
    "self",
    "thread-self",
    "mounts",
    "net",
    "config.gz",
    "consoles",
    "crypto",
    "devices",
    "dma",
    "execdomains",
    "filesystems",
    "misc",
    "sysvipc",
    "version",
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("proc_shows", |_| {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or("?");
            if !KNOWN.contains(&name) && !name.bytes().all(|byte| byte.is_ascii_digit()) {
                tells_nothing(&entry.path())?;
            }
        }
        for name in [
            "kcore",
            "kmsg",
            "kallsyms",
            "modules",
            "slabinfo",
            "timer_list",
            "interrupts",
            "iomem",
            "keys",
            "key-users",
            "locks",
        ] {
            let path = Path::new("/proc").join(name);
            refused(
                name,
                File::open(path).and_then(|mut file| file.read(&mut [0; 8])),
            )?;
        }
        for name in [
            "kernel/random/boot_id",
            "kernel/core_pattern",
            "kernel/hostname",
            "dev",
            "user",
            "fs/binfmt_misc",
        ] {
            refused(name, fs::metadata(Path::new("/proc/sys").join(name)))?;
        }
        // The part of it that programs need is available.
        let maps = fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
        if maps.contains("[stack]") && fs::read_dir("/proc/self/fd").is_ok() {
            Ok(())
        } else {
            Err("its own part is missing".into())
        }
    }),
    ("uncovered", |_| {
        for path in [
            "/proc/cpuinfo",
            "/proc/kcore",
            "/proc/sys",
            "/proc/sys/kernel/osrelease",
            "/sys/fs/cgroup/memory.max",
        ] {
            let name = std::ffi::CString::new(path).unwrap();
            // SAFETY: a C string that outlives the calls.
            let (off, removed) = unsafe {
                (
                    libc::umount2(name.as_ptr(), libc::MNT_DETACH),
                    libc::unlink(name.as_ptr()),
                )
            };
            refused(
                path,
                if off < 0 && removed < 0 {
                    Err(())
                } else {
                    Ok(())
                },
            )?;
            refused(path, fs::rename(path, "/proc/other"))?;
            refused(path, fs::OpenOptions::new().write(true).open(path))?;
        }
        // Other ways to the same folder.
        for way in [
            "/proc/self/..",
            "/proc/self/root/proc",
            "/proc/self/task/../..",
            "/proc/thread-self/../../..",
        ] {
            for name in [
                "kcore",
                "kallsyms",
                "sys/kernel/random/boot_id",
                "interrupts",
            ] {
                let path = Path::new(way).join(name);
                refused(
                    &path.display().to_string(),
                    File::open(&path).and_then(|mut file| file.read(&mut [0; 8])),
                )?;
            }
        }
        // The mount below a cover, by a descriptor of the folder.
        let folder = File::open("/proc").unwrap();
        // SAFETY: a C string; the calls return a descriptor or fail.
        let tree = unsafe {
            libc::syscall(
                libc::SYS_open_tree,
                folder.as_raw_fd(),
                c"kcore".as_ptr(),
                1,
            )
        };
        fails_with("a copy of the mount", libc::EPERM, tree)
    }),
];

/// Has no content, or only what was made up.
fn tells_nothing(path: &Path) -> Outcome {
    let made_up = [
        "cmdline",
        "cpuinfo",
        "diskstats",
        "loadavg",
        "meminfo",
        "partitions",
        "stat",
        "swaps",
        "sys",
        "uptime",
        "vmstat",
    ];
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("?");
    if made_up.contains(&name) {
        return Ok(());
    }
    let shown = if path.is_dir() {
        fs::read_dir(path).map_or(0, Iterator::count)
    } else {
        fs::read(path).map_or(0, |bytes| bytes.len())
    };
    match shown {
        0 => Ok(()),
        shown => Err(format!("{}: {shown}", path.display())),
    }
}

fn made_up() {
    let mut stage = Stage::new();
    stage.limits.memory_mb = Some(512);
    stage.limits.pids = Some(77);
    let script = "grep -c ^processor /proc/cpuinfo; grep MemTotal /proc/meminfo; grep -c ^cpu[0-9] /proc/stat; \
        cut -d. -f1 /proc/uptime; cat /sys/devices/system/cpu/online /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max \
        /proc/sys/kernel/ostype /proc/loadavg /proc/cmdline; cat /proc/cpuinfo /proc/meminfo";
    let seen = stage.run(haft_sandbox::CommandSpec::line(script, stage.path()));
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
    let lines: Vec<_> = seen.out.lines().collect();
    let count = rustix::thread::sched_getaffinity(None)
        .unwrap()
        .count()
        .to_string();
    assert_eq!((lines[0], lines[2]), (&*count, &*count), "{}", seen.out);
    assert_eq!(lines[1], "MemTotal:         524288 kB");
    assert!(lines[3].parse::<u64>().unwrap() > 0, "{}", lines[3]);
    assert_eq!(
        lines[5..10],
        ["536870912", "77", "Linux", "0.00 0.00 0.00 1/1 1", ""],
        "{}",
        seen.out
    );
    for secret in ["microcode", "Serial"] {
        assert!(!seen.out.contains(secret), "{secret}");
    }
}
