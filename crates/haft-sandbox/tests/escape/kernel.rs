//! Rows 37 to 47: parts of the kernel that no build or script needs.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use rustix::process::{Resource, getrlimit};

use crate::runner::Test;
use crate::{Attempt, Outcome, fails_with, refused, stopped};

/// What the kernel limits for all processes of a user together.
const SHARED: [Resource; 3] = [Resource::Sigpending, Resource::Msgqueue, Resource::Memlock];

pub(crate) const TESTS: &[Test] = &[
    ("kernel_37_no_namespace_is_made", || {
        stopped("namespaces", &[]);
    }),
    (
        "kernel_38_to_41_no_program_fault_handler_key_or_counter",
        || stopped("calls", &[]),
    ),
    ("kernel_42_other_call_numbers_kill", || stopped("abis", &[])),
    ("kernel_43_clone3_is_absent", || stopped("clone3", &[])),
    ("kernel_nothing_that_all_programs_share_is_used_up", || {
        let share = |limit| {
            let now = getrlimit(limit);
            let most = [now.current, now.maximum].into_iter().flatten().min();
            // What has no limit for the user has none for commands.
            most.map_or(u64::MAX, |most| most / 4)
        };
        let shares = SHARED.map(|limit| share(limit).to_string());
        stopped("shared_by_all", &shares.each_ref().map(String::as_str));
    }),
    ("kernel_46_no_module_other_kernel_or_setting", || {
        stopped("machine", &[]);
    }),
    (
        "kernel_47_a_program_in_memory_is_held_by_the_same_locks",
        || stopped("memory_file", &[]),
    ),
    ("kernel_no_capability_is_left_or_won_back", || {
        stopped("capabilities", &[]);
    }),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("namespaces", |_| {
        for flag in [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
            0,
        ] {
            // SAFETY: takes numbers only.
            let done = unsafe { libc::unshare(flag) };
            fails_with("unshare", libc::EPERM, done.into())?;
            if flag != 0 {
                // SAFETY: like fork; refused before it has any effect.
                let done =
                    unsafe { libc::syscall(libc::SYS_clone, flag | libc::SIGCHLD, 0, 0, 0, 0) };
                fails_with("clone", libc::EPERM, done)?;
            }
        }
        Ok(())
    }),
    ("calls", |_| {
        each(&[
            ("bpf", libc::SYS_bpf, [0, 0, 0]),
            ("userfaultfd", libc::SYS_userfaultfd, [0, 0, 0]),
            ("keyctl", libc::SYS_keyctl, [0, -3, 0]),
            ("add_key", libc::SYS_add_key, [0, 0, 0]),
            ("request_key", libc::SYS_request_key, [0, 0, 0]),
            ("perf_event_open", libc::SYS_perf_event_open, [0, 0, -1]),
            ("io_uring_enter", libc::SYS_io_uring_enter, [0, 0, 0]),
            ("io_uring_register", libc::SYS_io_uring_register, [0, 0, 0]),
            ("name_to_handle_at", libc::SYS_name_to_handle_at, [0, 0, 0]),
        ])
    }),
    ("abis", |_| {
        #[cfg(target_arch = "x86_64")]
        {
            killed("x32", || {
                // SAFETY: getpid by its x32 number; takes nothing.
                unsafe { libc::syscall(libc::SYS_getpid | 0x4000_0000) };
            })?;
            killed("i386", || {
                // SAFETY: getpid by its i386 number only changes the result register.
                unsafe {
                    std::arch::asm!("int 0x80", inout("eax") 20 => _, out("r8") _, out("r9") _,
                        out("r10") _, out("r11") _);
                };
            })?;
        }
        Ok(())
    }),
    ("shared_by_all", |words| {
        each(&[
            ("socketpair", libc::SYS_socketpair, [40, 1, 0]),
            ("socketpair", libc::SYS_socketpair, [2, 1, 262]),
            ("socketpair", libc::SYS_socketpair, [30, 2, 0]),
        ])?;
        let file = std::fs::File::open("/etc/os-release").unwrap();
        let lease = |kind: i32| {
            // SAFETY: takes numbers and an open descriptor.
            unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), 1024, kind) }
        };
        for kind in [libc::F_RDLCK, libc::F_WRLCK] {
            fails_with("F_SETLEASE", libc::EPERM, lease(kind).into())?;
        }
        let mut context = 0_u64;
        // SAFETY: refused; the pointer is valid in any case.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) };
        fails_with("io_setup", libc::ENOSYS, made)?;
        // SAFETY: refused; the name is valid in any case.
        let opened = unsafe { libc::syscall(libc::SYS_mq_open, c"q".as_ptr(), 0o102, 0o600, 0) };
        fails_with("mq_open", libc::ENOSYS, opened)?;
        for (limit, most) in SHARED.into_iter().zip(words) {
            let (now, most) = (getrlimit(limit).maximum, most.parse().unwrap());
            if now.unwrap_or(u64::MAX) > most {
                return Err(format!("{limit:?}: {now:?}, more than {most}"));
            }
        }
        Ok(())
    }),
    ("clone3", |_| {
        // SAFETY: refused before the pointer is read.
        let done = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u8>(), 0) };
        fails_with("clone3", libc::ENOSYS, done)
    }),
    ("machine", |_| {
        each(&[
            ("init_module", libc::SYS_init_module, [0, 0, 0]),
            ("finit_module", libc::SYS_finit_module, [0, 0, 0]),
            ("delete_module", libc::SYS_delete_module, [0, 0, 0]),
            ("kexec_load", libc::SYS_kexec_load, [0, 0, 0]),
            ("kexec_file_load", libc::SYS_kexec_file_load, [0, 0, 0]),
            ("reboot", libc::SYS_reboot, [0, 0, 0]),
            ("swapon", libc::SYS_swapon, [0, 0, 0]),
            ("acct", libc::SYS_acct, [0, 0, 0]),
            ("syslog", libc::SYS_syslog, [10, 0, 0]),
            ("settimeofday", libc::SYS_settimeofday, [0, 0, 0]),
            ("sethostname", libc::SYS_sethostname, [0, 0, 0]),
            ("fanotify_init", libc::SYS_fanotify_init, [0, 0, 0]),
            ("iopl", libc::SYS_iopl, [3, 0, 0]),
            ("ioperm", libc::SYS_ioperm, [0, 1, 1]),
            ("personality", libc::SYS_personality, [0x0040_0000, 0, 0]),
            ("personality", libc::SYS_personality, [0x0044_0000, 0, 0]),
        ])?;
        refused("sysrq", std::fs::write("/proc/sysrq-trigger", "h"))
    }),
    ("memory_file", |_| {
        let copy = std::fs::read("/proc/self/exe").unwrap();
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"program".as_ptr(), 0) };
        if fd < 0 {
            // If nothing would count such a file, it cannot be created.
            return fails_with("memfd_create", libc::ENOSYS, i64::from(fd));
        }
        // SAFETY: just created, owned by the file from here on.
        let mut file = unsafe { <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(fd) };
        std::io::Write::write_all(&mut file, &copy).unwrap();
        for attempt in ["mounts", "namespaces", "calls"] {
            let words = [
                c"x".to_owned(),
                c"--attempt".to_owned(),
                std::ffi::CString::new(attempt).unwrap(),
            ];
            let mut argv: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
            argv.push(std::ptr::null());
            let environ = [std::ptr::null()];
            let mut status = 0;
            // SAFETY: one thread; the child only executes; all pointers outlive the calls.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::fexecve(fd, argv.as_ptr(), environ.as_ptr());
                    libc::_exit(99);
                }
                libc::waitpid(child, &raw mut status, 0);
            }
            if libc::WEXITSTATUS(status) != 0 {
                return Err(format!("{attempt} from memory: {status}"));
            }
        }
        Ok(())
    }),
    ("capabilities", |_| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let value = |name: &str| {
            let line = status
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default();
            line.split_whitespace()
                .nth(1)
                .unwrap_or_default()
                .to_owned()
        };
        for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            if !value(name).trim_matches('0').is_empty() {
                return Err(format!("{name} {}", value(name)));
            }
        }
        if value("NoNewPrivs") != "1" || value("Seccomp") != "2" {
            return Err("locks are missing".into());
        }
        for id in [0, 1, 65534_u32] {
            if id != rustix::process::getuid().as_raw() {
                // SAFETY: takes a number only.
                let done = unsafe { libc::setuid(id) };
                refused("setuid", if done == 0 { Ok(()) } else { Err(()) })?;
            }
        }
        Ok(())
    }),
];

fn each(calls: &[(&str, i64, [i64; 3])]) -> Outcome {
    for (name, call, [a, b, c]) in calls {
        // SAFETY: pointers are null; every call is refused before it reads them.
        let done = unsafe { libc::syscall(*call, *a, *b, *c, 0, 0, 0) };
        fails_with(name, libc::EPERM, done)?;
    }
    Ok(())
}

/// The filter must kill a child that does this.
#[cfg(target_arch = "x86_64")]
fn killed(what: &str, act: fn()) -> Outcome {
    let mut status = 0;
    // SAFETY: one thread; the child makes one call and leaves.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            act();
            libc::_exit(0);
        }
        libc::waitpid(child, &raw mut status, 0);
    }
    let by_filter = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSYS;
    // A kernel built without that entry point answers with an error or a fault, never by executing the call.
    let absent = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV;
    if by_filter || absent {
        Ok(())
    } else {
        Err(format!("{what}: status {status}"))
    }
}
