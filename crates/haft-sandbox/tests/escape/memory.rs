//! J8: memory of a whole process tree, of every kind that the kernel has, with and without a control group.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

mod held;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use haft_sandbox::{CommandSpec, Config, MemoryBound, Mounts, Sandbox, Strength};

use crate::runner::Test;
use crate::{Attempt, INSIDE, Outcome, binary, runtime};

pub(crate) const TESTS: &[Test] = &[
    ("j8_a_tree_that_is_watched_ends_above_its_limit", || {
        every(Strength::Full, false);
    }),
    ("j8_so_does_one_without_namespaces", || {
        every(Strength::LandlockSeccomp, false);
    }),
    ("j8_a_tree_in_a_control_group_stays_below_its_limit", || {
        every(Strength::Full, true);
    }),
    ("j8_what_processes_share_counts_once", shared_counts_once),
    (
        "t1_address_space_that_is_only_reserved_does_not_count",
        || {
            runtime().block_on(async {
                for cgroups in [false, true] {
                    let sandbox = sandbox(Strength::Full, cgroups);
                    let (exit, bound, said) = start(&sandbox, &["reserve"]).await;
                    assert!(exit.success(), "{bound}: {exit:?} {said}");
                }
            });
        },
    ),
    ("idle_sockets_for_datagrams_hold_nothing", || {
        runtime().block_on(async {
            let (exit, _, said) = start(&sandbox(Strength::Full, false), &["idle_sockets"]).await;
            assert!(exit.success(), "{exit:?} {said}");
        });
    }),
    ("aj14_orphans_that_have_ended_are_gone", orphans_are_gone),
    ("j8_the_kernel_takes_memory_from_a_jail_first", || {
        crate::stopped("oom_score", &[]);
    }),
];

const MIB: usize = 1 << 20;
/// The limit in MiB, and what each attempt tries to allocate.
pub(crate) const LIMIT: u64 = 192;
const WANTED: usize = 768;

/// The ways to hold memory; the last column says whether it is available without namespaces.
const KINDS: &[(&str, bool)] = &[
    ("one process", true),
    ("many processes", true),
    ("shared anonymous", true),
    ("shared by many", true),
    ("system v", false),
    ("memory files", true),
    ("files in tmp", false),
    ("files and processes", false),
    ("deep tree", true),
    ("AJ2 local sockets", false),
    ("AJ2 local sockets whose senders are closed", false),
    ("AJ2 internet sockets", false),
    ("AJ2 message queues", false),
    ("AJ2 semaphores", false),
    ("AJ2 page tables", true),
    ("AJ3 orphans", true),
    ("AJ2 names in tmp", false),
    ("AJ7 connections that nobody accepts", false),
    ("AJ7 datagrams behind an empty one", false),
    ("AJ7 empty messages whose senders are closed", false),
    ("AJ7 undoing of semaphores", false),
    ("AJ3 heirs", true),
    ("AJ11 empty sockets", false),
    ("T4 netlink sockets", false),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("hold", |words| {
        hold(&words[0])?;
        println!("held");
        // slow on purpose: long enough to be noticed on the busiest machine; an attempt that gets here succeeded.
        std::thread::sleep(Duration::from_secs(120));
        Err(words[0].clone())
    }),
    ("fork_shared", |_| {
        map(libc::MAP_PRIVATE, 96 * MIB);
        let children: Vec<_> = (0..8)
            .map(|_| child(|| loop_for(Duration::from_secs(2))))
            .collect();
        for child in children {
            let mut status = 0;
            // SAFETY: the status outlives the call.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            if status != 0 {
                return Err(format!("a child ended by {status}"));
            }
        }
        Ok(())
    }),
    ("reserve", |_| {
        // As WebAssembly engines and sanitizers do it: far more than the limit, of which almost nothing is used.
        for access in [libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE] {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let size = 8 << 40;
            // SAFETY: a new mapping that nothing else uses.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
            if at == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error().to_string());
            }
        }
        Ok(())
    }),
    ("idle_sockets", |_| {
        let sockets: Vec<_> = (0..500).map(|_| UnixDatagram::unbound()).collect();
        loop_for(Duration::from_secs(2));
        let made = sockets.iter().filter(|socket| socket.is_ok()).count();
        if made < 500 {
            return Err(format!("{made} sockets"));
        }
        Ok(())
    }),
    ("orphan_ends", |_| {
        let (mut told, mut tells) = std::io::pipe().map_err(|error| error.to_string())?;
        let parent = child(|| {
            let orphan = child(|| {});
            let _ = tells.write_all(&orphan.to_ne_bytes());
        });
        let mut number = [0; 4];
        told.read_exact(&mut number)
            .map_err(|error| error.to_string())?;
        // SAFETY: a null pointer asks for no status.
        unsafe { libc::waitpid(parent, std::ptr::null_mut(), 0) };
        // The parent is not in this process: until it is reaped elsewhere, the child remains a process.
        // SAFETY: signal 0 only checks.
        while unsafe { libc::kill(i32::from_ne_bytes(number), 0) } == 0 {
            std::thread::yield_now();
        }
        Ok(())
    }),
    ("oom_score", |_| {
        let score = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
        match score.trim() {
            "1000" => Ok(()),
            other => Err(format!("oom_score_adj {other:?}")),
        }
    }),
];

fn hold(kind: &str) -> Outcome {
    let part = 64 * MIB;
    let parts = WANTED / 64;
    let with_children = |flags| {
        for _ in 0..parts {
            child(|| {
                map(flags, part);
                std::thread::sleep(Duration::from_secs(120));
            });
        }
    };
    match kind {
        "one process" => {
            for _ in 0..parts {
                map(libc::MAP_PRIVATE, part);
            }
        }
        "many processes" => with_children(libc::MAP_PRIVATE),
        "shared anonymous" => {
            map(libc::MAP_SHARED, WANTED * MIB);
        }
        "shared by many" => with_children(libc::MAP_SHARED),
        "system v" => system_v(WANTED * MIB),
        "memory files" => memory_files(parts, part),
        "files in tmp" => tmp("a", WANTED)?,
        "files and processes" => {
            tmp("a", 128)?;
            map(libc::MAP_SHARED, 128 * MIB);
        }
        "deep tree" => deep(parts, part),
        other if held::hold(other) => {}
        other => return Err(format!("no kind {other}")),
    }
    Ok(())
}

/// Creates a mapping with all pages present.
fn map(flags: i32, size: usize) -> usize {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = flags | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping that nothing else uses, with its own length.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        refused();
    }
    // SAFETY: as above.
    unsafe { std::ptr::write_bytes(at.cast::<u8>(), 1, size) };
    at as usize
}

/// Memory that cannot be allocated counts as stopped, too.
fn refused() -> ! {
    // SAFETY: only ends this process.
    unsafe { libc::_exit(0) }
}

fn child(act: impl FnOnce()) -> i32 {
    // SAFETY: one thread; the child acts and leaves.
    match unsafe { libc::fork() } {
        0 => {
            act();
            // SAFETY: only ends this process.
            unsafe { libc::_exit(0) }
        }
        -1 => refused(),
        child => child,
    }
}

/// Each process is the child of the previous one, in its own session.
fn deep(left: usize, part: usize) {
    let at = map(libc::MAP_PRIVATE, part);
    if left > 1 {
        child(|| {
            // A limit per process counts what it has inherited from its parent.
            // SAFETY: created above, and nothing refers to it.
            unsafe { libc::munmap(at as *mut libc::c_void, part) };
            // SAFETY: no pointers.
            unsafe { libc::setsid() };
            deep(left - 1, part);
            // slow on purpose: it holds its memory until it is killed.
            std::thread::sleep(Duration::from_secs(120));
        });
    }
}

fn system_v(size: usize) {
    // SAFETY: takes numbers; the segment is mapped once and stays.
    unsafe {
        let segment = libc::shmget(libc::IPC_PRIVATE, size, 0o600);
        if segment < 0 {
            refused();
        }
        let at = libc::shmat(segment, std::ptr::null(), 0);
        if at as isize == -1 {
            refused();
        }
        std::ptr::write_bytes(at.cast::<u8>(), 1, size);
        libc::shmdt(at);
    }
}

/// Nothing maps them: each is held only by a descriptor.
fn memory_files(parts: usize, part: usize) {
    let block = vec![1; MIB];
    for _ in 0..parts {
        // SAFETY: the name is a C string; the descriptor is the file's alone.
        let file = unsafe { libc::memfd_create(c"x".as_ptr(), 0) };
        if file < 0 {
            refused();
        }
        // SAFETY: created above.
        let mut file = unsafe { <fs::File as std::os::fd::FromRawFd>::from_raw_fd(file) };
        for _ in 0..part / MIB {
            if file.write_all(&block).is_err() {
                refused();
            }
        }
        std::mem::forget(file);
    }
}

fn tmp(name: &str, mib: usize) -> Outcome {
    let mut file = fs::File::create(format!("/tmp/{name}")).map_err(|error| error.to_string())?;
    let block = vec![1; MIB];
    for _ in 0..mib {
        if file.write_all(&block).is_err() {
            refused();
        }
    }
    Ok(())
}

fn loop_for(time: Duration) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until {
        std::thread::yield_now();
    }
}

fn sandbox(strength: Strength, cgroups: bool) -> Sandbox {
    Sandbox::new(Config {
        require: strength,
        at_most: Some(strength),
        cgroups,
        ..Config::default()
    })
}

async fn start(sandbox: &Sandbox, words: &[&str]) -> (haft_sandbox::Exit, MemoryBound, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut mounts = Mounts::workspace(folder.path());
    mounts.read_only.push(binary().to_owned());
    let mut argv = vec![binary().display().to_string(), INSIDE.into()];
    argv.extend(words.iter().map(ToString::to_string));
    let mut spec = CommandSpec::argv(argv, folder.path())
        .with_mounts(mounts)
        .with_timeout(Duration::from_secs(100));
    spec.limits.memory_mb = Some(LIMIT);
    let running = sandbox
        .start(spec)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let exit = running.wait().await;
    let said = running.stdout().text(0, 4096).text + &running.stderr().text(0, 4096).text;
    (exit, running.memory().0, said)
}

fn every(strength: Strength, cgroups: bool) {
    runtime().block_on(async {
        let sandbox = sandbox(strength, cgroups);
        let bound = sandbox.probe().await.memory;
        let grouped = [MemoryBound::CgroupV1, MemoryBound::CgroupV2].contains(&bound);
        if cgroups && !grouped {
            print!("(no control group can be made here: {bound}) ");
            return;
        }
        assert!(grouped || bound == MemoryBound::Watched, "{bound}");
        for (kind, bare) in KINDS {
            if strength == Strength::LandlockSeccomp && !bare {
                continue;
            }
            let (exit, held, said) = start(&sandbox, &["hold", kind]).await;
            assert_eq!(held, bound, "{kind}");
            // Killed for it, or told that there is no more memory.
            let stopped = exit.over_memory || exit.success();
            assert!(stopped && !exit.timed_out, "{kind}: {exit:?} {said}");
        }
        // And nothing is left behind: the next command has all its memory.
        let (exit, _, said) = start(&sandbox, &["memory", "private", "100"]).await;
        assert_eq!(exit.code, Some(1), "{said}");
    });
}

/// Nine processes that share 96 MiB use 96 MiB.
fn shared_counts_once() {
    runtime().block_on(async {
        for cgroups in [false, true] {
            let sandbox = sandbox(Strength::Full, cgroups);
            let (exit, bound, said) = start(&sandbox, &["fork_shared"]).await;
            assert!(exit.success(), "{bound}: {exit:?} {said}");
        }
    });
}

/// Only their adopter reaps them; otherwise each remains a process, and the living ones hide behind
/// them.
fn orphans_are_gone() {
    runtime().block_on(async {
        for strength in [Strength::Full, Strength::LandlockSeccomp] {
            let (exit, _, said) = start(&sandbox(strength, false), &["orphan_ends"]).await;
            assert!(exit.success(), "{strength}: {exit:?} {said}");
        }
    });
}
