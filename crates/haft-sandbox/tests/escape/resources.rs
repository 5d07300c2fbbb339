//! Rows 48 to 58: exhausting the machine's resources.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::fs;
use std::io::Write;
use std::time::Duration;

use crate::memory::LIMIT;
use crate::runner::Test;
use crate::{Attempt, Stage, stopped};

const MIB: usize = 1 << 20;

pub(crate) const TESTS: &[Test] = &[
    (
        "use_48_a_loop_ends_at_the_limit_of_processor_time",
        processor,
    ),
    ("use_49_memory_is_limited", memory),
    ("use_51_tmp_is_limited", tmp),
    ("use_52_a_file_is_limited", file),
    ("use_53_descriptors_are_limited", || {
        stopped("descriptor_bomb", &[]);
    }),
    ("use_54_j17_threads_are_limited", || {
        processes("thread_bomb");
    }),
    ("use_55_j17_processes_are_limited", || {
        processes("fork_bomb");
    }),
    ("use_aj5_no_core_is_dumped_to_the_machines_handler", || {
        stopped("core", &[]);
    }),
    ("use_aj8_nor_when_the_limit_is_lowered", || {
        stopped("core_lowered", &[]);
    }),
    ("use_58_files_in_tmp_are_limited", || stopped("inodes", &[])),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("loop", |_| {
        loop {
            std::hint::spin_loop();
        }
    }),
    ("memory", |words| {
        let kind = words[0].as_str();
        let flags = match kind {
            "shared" => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            _ => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        };
        let size: usize = words[1].parse::<usize>().unwrap() * MIB;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping that nothing else uses.
        let got = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
        if got == libc::MAP_FAILED {
            return Ok(());
        }
        // What is only reserved counts for nothing.
        for page in (0..size).step_by(4096) {
            // SAFETY: within the mapping, which is writable.
            unsafe { got.cast::<u8>().add(page).write_volatile(1) };
        }
        Err(format!("{size} bytes"))
    }),
    ("tmp_bytes", |words| {
        let most: usize = words[0].parse().unwrap();
        let mut file = fs::File::create("/tmp/large").unwrap();
        for written in 0..most * 2 {
            if file.write_all(&[1; MIB]).is_err() {
                return if written <= most {
                    Ok(())
                } else {
                    Err(format!("{written} MiB"))
                };
            }
        }
        Err("no end".into())
    }),
    ("file", |words| {
        let most: usize = words[0].parse().unwrap();
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let mut file = fs::File::create("large").unwrap();
        for _ in 0..=most {
            if file.write_all(&[1; MIB]).is_err() {
                return Ok(());
            }
        }
        Err("no end".into())
    }),
    ("core", |_| core_limit()),
    ("core_lowered", |_| {
        for (current, maximum) in [(0, 1), (0, 0)] {
            let (current, maximum) = (Some(current), Some(maximum));
            let limit = rustix::process::Rlimit { current, maximum };
            // It appears to succeed: programs that want no core files exit if it fails.
            rustix::process::setrlimit(rustix::process::Resource::Core, limit)
                .map_err(|errno| errno.to_string())?;
            core_limit()?;
            let limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: the limit outlives the call, and nothing is written to it.
            let done =
                unsafe { libc::syscall(libc::SYS_setrlimit, libc::RLIMIT_CORE, &raw const limit) };
            if done != 0 {
                return Err("setrlimit failed".into());
            }
            core_limit()?;
        }
        Ok(())
    }),
    ("descriptor_bomb", |_| {
        let mut open = Vec::new();
        while let Ok(file) = fs::File::open("/dev/null") {
            open.push(file);
            if open.len() > 5000 {
                return Err("5000 descriptors".into());
            }
        }
        Ok(())
    }),
    ("thread_bomb", |words| {
        let most: usize = words[0].parse().unwrap();
        for count in 0..most * 8 {
            // slow on purpose: they all exist at the same time.
            let sleep = || std::thread::sleep(Duration::from_secs(60));
            if std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(sleep)
                .is_err()
            {
                return if count <= most {
                    Ok(())
                } else {
                    Err(format!("{count} threads"))
                };
            }
        }
        Err("no end".into())
    }),
    ("fork_bomb", |words| {
        let most: usize = words[0].parse().unwrap();
        for count in 0..most * 8 {
            // SAFETY: one thread; the child only sleeps.
            match unsafe { libc::fork() } {
                0 => loop {
                    std::thread::sleep(Duration::from_secs(60));
                },
                -1 => {
                    return if count <= most {
                        Ok(())
                    } else {
                        Err(format!("{count} processes"))
                    };
                }
                _ => {}
            }
        }
        Err("no end".into())
    }),
    ("inodes", |_| {
        for count in 0..300_000 {
            if fs::File::create(format!("/tmp/{count}")).is_err() {
                return Ok(());
            }
        }
        Err("300,000 files".into())
    }),
];

/// The kernel's mark for "not to a handler either".
fn core_limit() -> crate::Outcome {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Core);
    match (limit.current, limit.maximum) {
        (Some(1), Some(1)) => Ok(()),
        other => Err(format!("limits {other:?}")),
    }
}

fn processor() {
    let mut stage = Stage::new();
    stage.limits.cpu_s = Some(1);
    let seen = stage.attempt("loop", &[]);
    assert!(
        !seen.exit.timed_out && seen.exit.signal.is_some(),
        "{:?}",
        seen.exit
    );
}

fn memory() {
    let mut stage = Stage::new();
    stage.limits.memory_mb = Some(LIMIT);
    for kind in ["one process", "shared anonymous"] {
        let seen = stage.attempt("hold", &[kind]);
        // Told that there is no more memory, or killed for it.
        let stopped = seen.exit.success() || seen.exit.over_memory;
        assert!(stopped, "{kind}: {:?} {}", seen.exit, seen.err);
    }
    let seen = stage.attempt("memory", &["private", "100"]);
    assert_eq!(seen.exit.code, Some(1), "{}", seen.err);
}

fn tmp() {
    let mut stage = Stage::new();
    stage.limits.tmp_mb = 16;
    let seen = stage.attempt("tmp_bytes", &["16"]);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
}

fn file() {
    let mut stage = Stage::new();
    stage.limits.file_mb = Some(4);
    let seen = stage.attempt("file", &["4"]);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
    assert!(fs::metadata(stage.path().join("large")).unwrap().len() <= 4 << 20);
}

/// Exactly this many: the IDs that the kernel reserves for early processes do not add to them.
fn processes(bomb: &str) {
    let mut stage = Stage::new();
    stage.limits.pids = Some(64);
    let seen = stage.attempt(bomb, &["64"]);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
    // And they are all gone: the next command can start processes again.
    let seen = stage.attempt(bomb, &["64"]);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
}
