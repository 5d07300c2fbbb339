//! Terminals of a jail: no key typed into one, no terminal of the host, none taken from another session, not more than there should be.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use haft_sandbox::{CommandSpec, TerminalSpec};

use crate::runner::Test;
use crate::{Attempt, INSIDE, Outcome, Stage, binary, fails_with, refused, stopped};

pub(crate) const TESTS: &[Test] = &[
    ("tty_1_no_key_is_typed_into_the_jails_own_terminals", || {
        stopped("own_keys", &[]);
        on_terminal("own_keys");
    }),
    ("tty_2_no_terminal_of_the_host_is_in_reach", || {
        stopped("host_terminals", &[]);
        on_terminal("host_terminals");
    }),
    ("tty_3_no_terminal_is_taken_from_another_session", || {
        stopped("steal", &[]);
        on_terminal("steal_own");
    }),
    ("tty_4_a_jail_has_few_terminals", || {
        stopped("many_terminals", &[]);
    }),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("own_keys", |_| {
        let (outer, inner) = open()?;
        let ends = [outer.as_raw_fd(), inner.as_raw_fd(), 0, 1, 2];
        for request in [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD] {
            for fd in ends {
                for request in [request, request | 1 << 32] {
                    control("type a key", fd, request, libc::EPERM)?;
                }
            }
        }
        // Console output, for the machine's administrator alone; a hang-up of the terminal.
        for request in [libc::TIOCCONS, libc::TIOCVHANGUP] {
            control("console", inner.as_raw_fd(), request, libc::EPERM)?;
        }
        Ok(())
    }),
    ("host_terminals", |_| {
        let own = fs::read_dir("/dev/pts").map_err(|error| error.to_string())?;
        let names: Vec<_> = own.flatten().map(|entry| entry.file_name()).collect();
        // What is there is the device that opens them and, if it runs on one, its own.
        if names.iter().any(|name| name != "ptmx" && name != "0") {
            return Err(format!("terminals of others: {names:?}"));
        }
        for number in 0..64 {
            let name = format!("/tmp/terminal{number}");
            let path = CString::new(name.clone()).unwrap();
            let device = libc::makedev(136, number);
            // SAFETY: the path is a C string that outlives the call.
            let made = unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o600, device) };
            fails_with(&name, libc::EPERM, made.into())
                .or_else(|_| refused(&name, File::open(&name)))?;
        }
        for name in [
            "/dev/tty0",
            "/dev/tty1",
            "/dev/console",
            "/dev/ttyS0",
            "/proc/1/fd/0",
        ] {
            refused(name, File::open(name))?;
        }
        Ok(())
    }),
    ("steal", |_| {
        let (_outer, inner) = open()?;
        // SAFETY: takes no pointers; the child only sleeps until it is killed.
        let holder = unsafe { libc::fork() };
        if holder == 0 {
            // SAFETY: takes no pointers.
            unsafe {
                libc::setsid();
                libc::ioctl(inner.as_raw_fd(), libc::TIOCSCTTY, 0);
                libc::kill(libc::getpid(), libc::SIGSTOP);
                libc::_exit(0);
            }
        }
        let mut status = 0;
        // SAFETY: the status outlives the call.
        unsafe { libc::waitpid(holder, &raw mut status, libc::WUNTRACED) };
        let stolen = taken_by_a_child(inner.as_raw_fd());
        // SAFETY: takes no pointers.
        unsafe { libc::kill(holder, libc::SIGKILL) };
        stolen
    }),
    // The terminal that this command itself runs on.
    ("steal_own", |_| taken_by_a_child(0)),
    ("many_terminals", |_| {
        let mut all = Vec::new();
        for _ in 0..5_000 {
            match open() {
                Ok(ends) => all.push(ends),
                Err(_) => break,
            }
        }
        match all.len() {
            1..=64 => Ok(()),
            count => Err(format!("{count} terminals")),
        }
    }),
];

/// Makes an attempt in a command that runs on a terminal.
fn on_terminal(name: &str) {
    let stage = Stage::new();
    let argv = [&binary().display().to_string(), INSIDE, name].map(String::from);
    let mut spec = CommandSpec::argv(argv, stage.path());
    spec.terminal = Some(TerminalSpec::default());
    let seen = stage.run(spec);
    assert!(
        seen.exit.success(),
        "{:?} {}{}",
        seen.exit,
        seen.out,
        seen.err
    );
}

/// Opens a terminal of the jail: its outer and its inner end.
fn open() -> Result<(OwnedFd, OwnedFd), String> {
    let flags = libc::O_RDWR | libc::O_NOCTTY;
    // SAFETY: no pointers; the descriptor is owned by nothing else.
    let outer = unsafe { libc::posix_openpt(flags) };
    if outer < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: just opened.
    let outer = unsafe { OwnedFd::from_raw_fd(outer) };
    // SAFETY: no pointers.
    unsafe { libc::unlockpt(outer.as_raw_fd()) };
    // SAFETY: no pointers.
    let inner = unsafe { libc::ioctl(outer.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    if inner < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: just opened.
    Ok((outer, unsafe { OwnedFd::from_raw_fd(inner) }))
}

/// The request must fail with this error.
fn control(what: &str, fd: i32, request: libc::c_ulong, errno: i32) -> Outcome {
    let byte = b'x';
    // SAFETY: the byte outlives the call.
    let done = unsafe { libc::syscall(libc::SYS_ioctl, fd, request, &raw const byte) };
    fails_with(what, errno, done)
}

/// A child with a session of its own must not get this terminal.
fn taken_by_a_child(fd: i32) -> Outcome {
    // SAFETY: takes no pointers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes no pointers.
        let leads = unsafe { libc::setsid() } > 0;
        let code = i32::from(!leads || take(fd).is_err());
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the status outlives the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        _ => Err("a child took the terminal".into()),
    }
}

/// Making another session's terminal the own one must fail, by asking and by force.
fn take(fd: i32) -> Outcome {
    for force in [0, 1] {
        // SAFETY: no pointers.
        let done = unsafe { libc::ioctl(fd, libc::TIOCSCTTY, force) };
        fails_with("take a terminal", libc::EPERM, done.into())?;
    }
    Ok(())
}
