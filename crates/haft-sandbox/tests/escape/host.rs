//! Without namespaces: calls that Landlock does not control must not change any file, process or object of
//! the host.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};

use haft_sandbox::{CommandSpec, Config, Mounts, Sandbox, Strength};

use crate::runner::Test;
use crate::{Attempt, Outcome, binary, fails_with, runtime};

pub(crate) const TESTS: &[Test] = &[
    ("j6_no_file_of_the_host_is_changed", files_stay),
    ("j6_no_process_of_the_host_is_changed", processes_stay),
    ("j6_no_message_or_memory_of_the_host_is_reached", || {
        stopped("host_ipc", &[]);
    }),
    ("j6_no_pair_of_sockets_reaches_the_host", || {
        stopped("host_pairs", &[]);
    }),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("host_files", host_files),
    ("host_processes", host_processes),
    ("host_ipc", host_ipc),
    ("host_pairs", host_pairs),
];

fn all(calls: &[(&str, i64, [i64; 6])]) -> Outcome {
    for (name, call, [a, b, c, d, e, f]) in calls {
        // SAFETY: pointers are to values that outlive the call; it must be refused.
        let done = unsafe { libc::syscall(*call, *a, *b, *c, *d, *e, *f) };
        fails_with(name, libc::EPERM, done)?;
    }
    Ok(())
}

/// Arguments: a file of the host, and one that may be read.
fn host_files(words: &[String]) -> Outcome {
    words
        .iter()
        .try_for_each(|word| by_name(word).and_then(|()| by_descriptor(word)))
}

fn by_name(word: &str) -> Outcome {
    let text = CString::new(word).unwrap();
    let path = text.as_ptr() as i64;
    let at = i64::from(libc::AT_FDCWD);
    let (name, value) = (c"user.x".as_ptr() as i64, c"x".as_ptr() as i64);
    let times = [0_i64; 4];
    let times = times.as_ptr() as i64;
    let long = [value, 1, 0, 0];
    let long = long.as_ptr() as i64;
    all(&[
        ("chmod", libc::SYS_chmod, [path, 0o777, 0, 0, 0, 0]),
        ("fchmodat", libc::SYS_fchmodat, [at, path, 0o777, 0, 0, 0]),
        ("fchmodat2", libc::SYS_fchmodat2, [at, path, 0o777, 0, 0, 0]),
        ("chown", libc::SYS_chown, [path, -1, -1, 0, 0, 0]),
        ("lchown", libc::SYS_lchown, [path, -1, -1, 0, 0, 0]),
        ("fchownat", libc::SYS_fchownat, [at, path, -1, -1, 0, 0]),
        ("utime", libc::SYS_utime, [path, 0, 0, 0, 0, 0]),
        ("utimes", libc::SYS_utimes, [path, times, 0, 0, 0, 0]),
        ("futimesat", libc::SYS_futimesat, [at, path, times, 0, 0, 0]),
        ("utimensat", libc::SYS_utimensat, [at, path, times, 0, 0, 0]),
        ("setxattr", libc::SYS_setxattr, [path, name, value, 1, 0, 0]),
        (
            "lsetxattr",
            libc::SYS_lsetxattr,
            [path, name, value, 1, 0, 0],
        ),
        (
            "removexattr",
            libc::SYS_removexattr,
            [path, name, 0, 0, 0, 0],
        ),
        (
            "lremovexattr",
            libc::SYS_lremovexattr,
            [path, name, 0, 0, 0, 0],
        ),
        ("setxattrat", 463, [at, path, 0, name, long, 16]),
        ("removexattrat", 466, [at, path, 0, name, 0, 0]),
        ("file_setattr", 469, [at, path, long, 24, 0, 0]),
    ])
}

fn by_descriptor(word: &str) -> Outcome {
    let (name, value) = (c"user.x".as_ptr() as i64, c"x".as_ptr() as i64);
    let times = [0_i64; 4];
    let times = times.as_ptr() as i64;
    let Ok(file) = std::fs::File::open(word) else {
        return Ok(());
    };
    let file = i64::from(file.as_raw_fd());
    all(&[
        ("fchmod", libc::SYS_fchmod, [file, 0o777, 0, 0, 0, 0]),
        ("fchown", libc::SYS_fchown, [file, -1, -1, 0, 0, 0]),
        ("futimens", libc::SYS_utimensat, [file, 0, times, 0, 0, 0]),
        (
            "fsetxattr",
            libc::SYS_fsetxattr,
            [file, name, value, 1, 0, 0],
        ),
        (
            "fremovexattr",
            libc::SYS_fremovexattr,
            [file, name, 0, 0, 0, 0],
        ),
        (
            "set flags",
            libc::SYS_ioctl,
            [file, 0x4008_6602, times, 0, 0, 0],
        ),
        (
            "set project",
            libc::SYS_ioctl,
            [file, 0x401C_5820, times, 0, 0, 0],
        ),
        (
            "set version",
            libc::SYS_ioctl,
            [file, 0x4008_7602, times, 0, 0, 0],
        ),
        ("clone", libc::SYS_ioctl, [file, 0x4004_9409, file, 0, 0, 0]),
    ])
}

/// Argument: the ID of a process of the same user.
fn host_processes(words: &[String]) -> Outcome {
    let pid: i64 = words[0].parse().unwrap();
    let numbers = [0_u64; 16];
    let numbers = numbers.as_ptr() as i64;
    all(&[
        ("prlimit64", libc::SYS_prlimit64, [pid, 7, numbers, 0, 0, 0]),
        (
            "setaffinity",
            libc::SYS_sched_setaffinity,
            [pid, 8, numbers, 0, 0, 0],
        ),
        (
            "setscheduler",
            libc::SYS_sched_setscheduler,
            [pid, 3, numbers, 0, 0, 0],
        ),
        (
            "setparam",
            libc::SYS_sched_setparam,
            [pid, numbers, 0, 0, 0, 0],
        ),
        (
            "setattr",
            libc::SYS_sched_setattr,
            [pid, numbers, 0, 0, 0, 0],
        ),
        ("setpriority", libc::SYS_setpriority, [0, pid, 19, 0, 0, 0]),
        (
            "setpriority group",
            libc::SYS_setpriority,
            [1, 0, 19, 0, 0, 0],
        ),
        (
            "setpriority user",
            libc::SYS_setpriority,
            [2, 0, 19, 0, 0, 0],
        ),
        ("ioprio_set", libc::SYS_ioprio_set, [1, pid, 0, 0, 0, 0]),
        ("ioprio_set user", libc::SYS_ioprio_set, [3, 0, 0, 0, 0, 0]),
        ("ptrace", libc::SYS_ptrace, [16, pid, 0, 0, 0, 0]),
        (
            "migrate_pages",
            libc::SYS_migrate_pages,
            [pid, 1, numbers, numbers, 0, 0],
        ),
        ("kill", libc::SYS_kill, [pid, 15, 0, 0, 0, 0]),
        ("tkill", libc::SYS_tkill, [pid, 15, 0, 0, 0, 0]),
        ("tgkill", libc::SYS_tgkill, [pid, pid, 15, 0, 0, 0]),
    ])?;
    // It may lower its own priority.
    // SAFETY: takes numbers only.
    let own = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
    if own == 0 {
        Ok(())
    } else {
        Err("its own priority".into())
    }
}

fn host_ipc(_: &[String]) -> Outcome {
    all(&[
        ("shmget", libc::SYS_shmget, [1, 4096, 0o1600, 0, 0, 0]),
        ("shmat", libc::SYS_shmat, [0, 0, 0, 0, 0, 0]),
        ("shmctl", libc::SYS_shmctl, [0, 0, 0, 0, 0, 0]),
        ("semget", libc::SYS_semget, [1, 1, 0o1600, 0, 0, 0]),
        ("semctl", libc::SYS_semctl, [0, 0, 0, 0, 0, 0]),
        ("msgget", libc::SYS_msgget, [1, 0o1600, 0, 0, 0, 0]),
        ("msgctl", libc::SYS_msgctl, [0, 0, 0, 0, 0, 0]),
    ])?;
    for (what, call) in [
        ("mq_open", libc::SYS_mq_open),
        ("mq_unlink", libc::SYS_mq_unlink),
    ] {
        // SAFETY: refused; the name is valid in any case.
        let done = unsafe { libc::syscall(call, c"/haft".as_ptr(), 0o102, 0o600, 0) };
        fails_with(what, libc::ENOSYS, done)?;
    }
    Ok(())
}

fn host_pairs(_: &[String]) -> Outcome {
    for kind in 0..16 {
        let mut pair = [0; 2];
        // SAFETY: the pair outlives the call.
        let done = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) };
        let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].contains(&kind);
        if (done == 0) != connected {
            return Err(format!("kind {kind} gave {done}"));
        }
    }
    Ok(())
}

/// An attempt without namespaces must be stopped.
fn stopped(name: &str, words: &[&str]) {
    let strength = Strength::LandlockSeccomp;
    let sandbox = Sandbox::new(Config {
        require: strength,
        at_most: Some(strength),
        ..Config::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let mut mounts = Mounts::workspace(folder.path());
    mounts.read_only.push(binary().to_owned());
    let mut argv = vec![
        binary().display().to_string(),
        crate::INSIDE.into(),
        name.into(),
    ];
    argv.extend(words.iter().map(ToString::to_string));
    let spec = CommandSpec::argv(argv, folder.path()).with_mounts(mounts);
    runtime().block_on(async {
        let running = sandbox
            .start(spec)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let exit = running.wait().await;
        assert!(
            exit.success(),
            "{exit:?} {}",
            running.stderr().text(0, 4096).text
        );
    });
}

/// A file out of reach, one that may be read, and one in the workspace.
fn files_stay() {
    let secret = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    std::fs::write(secret.path(), "secret").unwrap();
    let before = secret.path().metadata().unwrap();
    let path = secret.path().display().to_string();
    stopped(
        "host_files",
        &[&path, binary().to_str().unwrap(), "/usr", "."],
    );
    let after = secret.path().metadata().unwrap();
    let facts =
        |meta: &std::fs::Metadata| (meta.mode(), meta.uid(), meta.mtime(), meta.ctime_nsec());
    assert_eq!(facts(&before), facts(&after));
}

fn processes_stay() {
    let mut victim = Victim::new();
    let status = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed:"));
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        (line.unwrap().to_owned(), limits)
    };
    let pid = victim.0.id();
    let before = status(pid);
    stopped("host_processes", &[&pid.to_string()]);
    assert!(victim.0.try_wait().unwrap().is_none());
    assert_eq!(status(pid), before);
}

/// An idle process outside.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a process of the host to be attacked"
        )]
        let mut command = std::process::Command::new("/bin/sleep");
        Self(command.arg("600").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
