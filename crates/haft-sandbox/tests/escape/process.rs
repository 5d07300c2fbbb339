//! Rows 30 to 36: outliving the command, reaching other processes, the terminal, the environment.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::fs;
use std::time::{Duration, Instant};

use haft_sandbox::{CommandSpec, Config, Sandbox, StartError};

use crate::runner::Test;
use crate::{Attempt, Stage, fails_with, refused, stopped};

pub(crate) const TESTS: &[Test] = &[
    ("proc_30_a_daemon_does_not_outlive_its_command", || {
        outlives("daemon", Ends::ByItself);
    }),
    ("proc_30_a_daemon_does_not_outlive_the_deadline", || {
        outlives("daemon_stay", Ends::AtDeadline);
    }),
    ("proc_31_ignored_signals_do_not_help", || {
        outlives("deaf", Ends::AtDeadline);
    }),
    ("proc_28_the_first_process_is_not_killed", || {
        stopped("kill_init", &[]);
    }),
    ("proc_29_no_descriptor_of_a_process_is_taken", || {
        stopped("take", &[]);
    }),
    ("proc_aj12_the_program_of_the_jail_is_not_run_in_it", itself),
    ("proc_32_no_key_is_typed_into_a_terminal", || {
        stopped("terminal", &[]);
    }),
    ("proc_34_proc_is_not_written", || {
        stopped("proc_writes", &[]);
    }),
    (
        "proc_36_the_environment_holds_no_secret",
        no_secret_in_the_environment,
    ),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("daemon", |_| {
        hold();
        detach();
        Ok(())
    }),
    ("daemon_stay", |_| {
        hold();
        detach();
        // slow on purpose: it is killed before.
        std::thread::sleep(Duration::from_secs(30));
        Ok(())
    }),
    ("deaf", |_| {
        hold();
        for signal in 1..=64 {
            // SAFETY: ignoring a signal runs no code of ours.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        // SAFETY: no pointers.
        unsafe { libc::setsid() };
        // slow on purpose: it is killed before.
        std::thread::sleep(Duration::from_millis(900));
        fs::write("survived", "x").unwrap();
        Ok(())
    }),
    ("kill_init", |_| {
        for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGTERM, libc::SIGSEGV] {
            // SAFETY: takes numbers only. The signal may be delivered; it must not have an effect.
            unsafe { libc::kill(1, signal) };
        }
        // SAFETY: takes numbers only.
        let alive = unsafe { libc::kill(1, 0) };
        if alive == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) {
            return Ok(());
        }
        Err("pid 1 is gone".into())
    }),
    ("take", |_| {
        let own = i64::from(std::process::id());
        for (name, call, [a, b, c]) in [
            ("pidfd_getfd", libc::SYS_pidfd_getfd, [0, 0, 0]),
            ("process_madvise", libc::SYS_process_madvise, [0, 0, 0]),
            ("kcmp", libc::SYS_kcmp, [own, own, 0]),
        ] {
            // SAFETY: takes numbers only.
            let done = unsafe { libc::syscall(call, a, b, c, 0, 0, 0) };
            fails_with(name, libc::EPERM, done)?;
        }
        Ok(())
    }),
    ("terminal", |_| {
        for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD] {
            for fd in 0..3 {
                // Also with bits above those that the kernel looks at.
                for request in [request, request | 1 << 32] {
                    let byte = b'x';
                    // SAFETY: the byte outlives the call.
                    let done =
                        unsafe { libc::syscall(libc::SYS_ioctl, fd, request, &raw const byte) };
                    fails_with("ioctl", libc::EPERM, done)?;
                }
            }
        }
        refused("/dev/tty", fs::File::open("/dev/tty"))
    }),
    ("proc_writes", |_| {
        for path in [
            "/proc/1/mem",
            "/proc/1/oom_score_adj",
            "/proc/self/oom_score_adj",
            "/proc/self/mem",
            "/proc/self/uid_map",
            "/proc/self/setgroups",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/pid_max",
            "/proc/sys/kernel/hostname",
            "/proc/sysrq-trigger",
            "/proc/sys/vm/drop_caches",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/irq/default_smp_affinity",
        ] {
            refused(path, fs::OpenOptions::new().write(true).open(path))?;
        }
        Ok(())
    }),
    ("environment", |_| {
        let known = ["PATH", "HOME", "TMPDIR", "LANG", "TERM", "GIVEN"];
        for (name, value) in std::env::vars() {
            if !known.contains(&name.as_str()) || value.contains("top-secret") {
                return Err(name);
            }
        }
        let given = std::env::var("GIVEN").unwrap_or_default();
        if given == "yes" {
            Ok(())
        } else {
            Err("what was given is missing".into())
        }
    }),
];

/// Holds a lock as long as this process, or one that it starts, is alive.
fn hold() {
    let file = fs::File::create("held").unwrap();
    file.lock().unwrap();
    std::mem::forget(file);
}

/// Leaves the command's process group, session and parent, and writes a file later.
fn detach() -> i32 {
    // SAFETY: this process has one thread; the children only sleep, write and leave.
    unsafe {
        let child = libc::fork();
        if child != 0 {
            return child;
        }
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        libc::close(0);
        libc::close(1);
        libc::close(2);
    }
    // slow on purpose: it is killed before.
    std::thread::sleep(Duration::from_millis(900));
    let _ = fs::write("survived", "x");
    // SAFETY: only ends this process.
    unsafe { libc::_exit(0) }
}

#[derive(Clone, Copy, PartialEq)]
enum Ends {
    ByItself,
    AtDeadline,
}

fn outlives(attempt: &str, ends: Ends) {
    let mut stage = Stage::new();
    if ends == Ends::AtDeadline {
        stage.timeout = Duration::from_millis(300);
    }
    let seen = stage.attempt(attempt, &[]);
    assert_eq!(
        seen.exit.timed_out,
        ends == Ends::AtDeadline,
        "{:?} {}",
        seen.exit,
        seen.err
    );
    assert_eq!(
        seen.exit.success(),
        ends == Ends::ByItself,
        "{:?} {}",
        seen.exit,
        seen.err
    );
    let (held, began) = (
        fs::File::open(stage.path().join("held")).unwrap(),
        Instant::now(),
    );
    while held.try_lock().is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "it lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!stage.path().join("survived").exists());
}

fn no_secret_in_the_environment() {
    let stage = Stage::new();
    // Every test process has variables of its own (Cargo's, if nothing else); none may be passed on.
    assert!(std::env::vars().count() > 1);
    let words = [
        crate::binary().display().to_string(),
        "--attempt".into(),
        "environment".into(),
    ];
    let seen = stage.run(CommandSpec::argv(words, stage.path()).with_env("GIVEN", "yes"));
    assert!(seen.exit.success(), "{}", seen.err);
    let seen = stage.run(CommandSpec::line("cat /proc/1/environ; env", stage.path()));
    assert!(!seen.out.contains("CARGO"), "{}", seen.out);
}

/// `/proc/self/exe` before the command's program is executed.
fn itself() {
    let sandbox = Sandbox::new(Config::default());
    for program in ["/proc/self/exe", "/proc/thread-self/exe", "/proc/1/exe"] {
        let stage = Stage::new();
        let spec = CommandSpec::argv([program, crate::INSIDE, "daemon_stay"], stage.path());
        let spec = spec.with_mounts(stage.mounts.clone());
        let started = crate::runtime().block_on(sandbox.start(spec));
        let refused = matches!(started, Err(StartError::Program { .. }));
        assert!(refused, "{program}: {started:?}");
    }
}
