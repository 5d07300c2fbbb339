//! T9: what a command may trace, its own processes, and what it gains by that: nothing.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::ffi::CString;
use std::fs;
use std::path::Path;

use haft_sandbox::{CommandSpec, Config, Sandbox, Strength};

use crate::runner::Test;
use crate::{Attempt, INSIDE, Outcome, Stage, binary, fails_with, refused, runtime, stopped};

pub(crate) const TESTS: &[Test] = &[
    ("proc_29_the_first_process_is_not_traced_or_read", || {
        stopped("trace_first", &[]);
    }),
    ("proc_t9_own_processes_are_traced", || {
        stopped("trace_own", &[]);
    }),
    #[cfg(target_arch = "x86_64")]
    (
        "proc_t9_a_traced_process_gets_no_other_call_through",
        || {
            stopped("trace_calls", &[]);
        },
    ),
    ("proc_t9_a_traced_program_gains_nothing_by_its_bits", || {
        stopped("trace_set_id", &[]);
    }),
    (
        "proc_t9_a_child_that_asks_the_first_process_to_trace_it_goes_on",
        traced_by_first,
    ),
    ("proc_29_without_namespaces_nothing_is_traced", bare),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("trace_first", |_| {
        let mut byte = [0_u8; 8];
        let mine = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: 8,
        };
        let mine = (&raw const mine) as i64;
        for request in [libc::PTRACE_ATTACH, libc::PTRACE_SEIZE] {
            let done = trace(request, 1, 0, 0);
            fails_with("ptrace", libc::EPERM, done)?;
        }
        let one = 1_i64;
        for call in [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev] {
            // SAFETY: both vectors are this process's; the first process's memory is refused before.
            let done = unsafe { libc::syscall(call, one, mine, one, mine, one, 0_i64) };
            fails_with("its memory", libc::EPERM, done)?;
        }
        // SAFETY: takes numbers only.
        let first = unsafe { libc::syscall(libc::SYS_pidfd_open, 1, 0) };
        // SAFETY: as above.
        let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, first, 0, 0) };
        fails_with("its descriptors", libc::EPERM, taken)?;
        for name in [
            "mem",
            "maps",
            "environ",
            "auxv",
            "syscall",
            "stack",
            "personality",
        ] {
            let path = Path::new("/proc/1").join(name);
            if fs::read(&path).is_ok_and(|bytes| !bytes.is_empty()) {
                return Err(path.display().to_string());
            }
        }
        // Root may list the numbers.
        for number in 0..64 {
            let path = format!("/proc/1/fd/{number}");
            refused(&path, fs::read_link(&path))?;
            refused(&path, fs::File::open(&path))?;
        }
        refused("/proc/1/exe", fs::read_link("/proc/1/exe"))
    }),
    ("trace_own", |_| {
        let secret: u64 = 0x5EC2_E7C0_FFEE;
        let child = stopped_child(|| {});
        let at = (&raw const secret) as i64;
        let mut copy = 0_u64;
        let into = libc::iovec {
            iov_base: (&raw mut copy).cast(),
            iov_len: 8,
        };
        let from = libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: 8,
        };
        // SAFETY: one value of this process, and its copy in the child.
        let read =
            unsafe { libc::process_vm_readv(child, &raw const into, 1, &raw const from, 1, 0) };
        let peeked = trace(libc::PTRACE_PEEKDATA, child, at, (&raw mut copy) as i64);
        // A process that is traced already has no second tracer.
        let again = trace(libc::PTRACE_ATTACH, child, 0, 0);
        let ended = end(child);
        if read == 8 && peeked == 0 && copy == secret && again < 0 && ended {
            return Ok(());
        }
        Err(format!(
            "read {read}, peeked {peeked} {copy:x}, again {again}, ended {ended}"
        ))
    }),
    #[cfg(target_arch = "x86_64")]
    ("trace_calls", |_| {
        for call in [
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_bpf,
            libc::SYS_keyctl,
            libc::SYS_io_uring_setup,
            libc::SYS_pivot_root,
        ] {
            replaced(call)?;
        }
        // The filters of a process that is traced stay on.
        let child = stopped_child(|| {});
        let suspended = trace(libc::PTRACE_SETOPTIONS, child, 0, PTRACE_O_SUSPEND_SECCOMP);
        let read = trace(PTRACE_SECCOMP_GET_FILTER, child, 0, 0);
        end(child);
        if suspended < 0 && read < 0 {
            return Ok(());
        }
        Err(format!("suspended {suspended}, read {read}"))
    }),
    ("trace_set_id", |_| {
        // SAFETY: takes nothing.
        let own = unsafe { libc::geteuid() };
        for program in [
            "/usr/bin/su",
            "/usr/bin/passwd",
            "/usr/bin/mount",
            "/bin/ping",
        ] {
            if !Path::new(program).exists() {
                continue;
            }
            let name = CString::new(program).unwrap();
            let child = stopped_child(move || {
                let words = [name.as_ptr(), std::ptr::null()];
                // SAFETY: a list that ends, of texts that outlive the call.
                unsafe { libc::execv(name.as_ptr(), words.as_ptr()) };
            });
            // It stops again when it has executed the program.
            trace(libc::PTRACE_CONT, child, 0, 0);
            let mut status = 0;
            // SAFETY: the status outlives the call.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            let told = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
            end(child);
            let column = |name: &str, at| {
                let line = told.lines().find(|line| line.starts_with(name));
                line.and_then(|line| line.split_whitespace().nth(at).map(str::to_owned))
            };
            let user = column("Uid:", 2).and_then(|id| id.parse().ok());
            let none = |name| column(name, 1).is_some_and(|set| set.trim_matches('0').is_empty());
            if user != Some(own) || !none("CapEff:") || !none("CapPrm:") {
                return Err(format!("{program}: {status} {told}"));
            }
        }
        Ok(())
    }),
    ("trace_me", |_| {
        // This process is the child of the first one, which then is its tracer.
        if trace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
            return Err(std::io::Error::last_os_error().to_string());
        }
        // SAFETY: takes a number only.
        unsafe { libc::raise(libc::SIGCHLD) };
        println!("goes on");
        Ok(())
    }),
    ("trace_nothing", |_| {
        let child = stopped_by_itself();
        let traced = trace(libc::PTRACE_ATTACH, child, 0, 0);
        let refused = fails_with("ptrace", libc::EPERM, traced);
        // SAFETY: takes numbers only.
        unsafe { libc::kill(child, libc::SIGKILL) };
        refused
    }),
];

const PTRACE_O_SUSPEND_SECCOMP: i64 = 1 << 21;
#[cfg(target_arch = "x86_64")]
const PTRACE_SECCOMP_GET_FILTER: libc::c_uint = 0x420c;

fn trace(request: libc::c_uint, pid: i32, address: i64, data: i64) -> i64 {
    // SAFETY: requests that read or write this process's memory get an address of a live value.
    unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            i64::from(request),
            i64::from(pid),
            address,
            data,
        )
    }
}

/// Starts a child that this process traces; it has stopped, and acts when it continues.
fn stopped_child(act: impl FnOnce()) -> i32 {
    // SAFETY: one thread; the child acts and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        trace(libc::PTRACE_TRACEME, 0, 0, 0);
        // SAFETY: takes a number only.
        unsafe { libc::raise(libc::SIGSTOP) };
        act();
        // SAFETY: only ends this process.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status outlives the call.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    child
}

fn stopped_by_itself() -> i32 {
    // SAFETY: one thread; the child waits to be ended.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: takes nothing.
            unsafe { libc::pause() };
        }
    }
    child
}

fn end(child: i32) -> bool {
    let mut status = 0;
    // SAFETY: takes numbers; the status outlives the call.
    unsafe {
        libc::kill(child, libc::SIGKILL) == 0 && libc::waitpid(child, &raw mut status, 0) == child
    }
}

/// Lets a child call `getpid`, and makes another call of it: the filters must decide about that one.
#[cfg(target_arch = "x86_64")]
fn replaced(call: i64) -> Outcome {
    let child = stopped_child(|| {
        // SAFETY: takes nothing.
        unsafe { libc::syscall(libc::SYS_getpid) };
    });
    let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
    let at = registers.as_mut_ptr() as i64;
    let step = || {
        let mut status = 0;
        trace(libc::PTRACE_SYSCALL, child, 0, 0);
        // SAFETY: the status outlives the call.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        libc::WIFSTOPPED(status)
    };
    for _ in 0..100 {
        if !step() {
            break;
        }
        trace(libc::PTRACE_GETREGS, child, 0, at);
        // SAFETY: plain numbers, which the kernel has written.
        let registers = unsafe { &mut *registers.as_mut_ptr() };
        if registers.orig_rax.cast_signed() != libc::SYS_getpid {
            continue;
        }
        registers.orig_rax = call.cast_unsigned();
        (registers.rdi, registers.rsi) = (0, 0);
        trace(libc::PTRACE_SETREGS, child, 0, at);
        step();
        trace(libc::PTRACE_GETREGS, child, 0, at);
        let got = registers.rax.cast_signed();
        end(child);
        return match got {
            got if got == -i64::from(libc::EPERM) => Ok(()),
            got => Err(format!("call {call} in place of another: {got}")),
        };
    }
    end(child);
    Err("the call was not seen".into())
}

/// Outside, a shell would be the tracer, and say that its child has stopped.
fn traced_by_first() {
    let seen = Stage::new().attempt("trace_me", &[]);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
    assert_eq!(seen.out, "goes on\n");
}

/// Where the host's processes are in sight.
fn bare() {
    let sandbox = Sandbox::new(Config {
        require: Strength::LandlockSeccomp,
        at_most: Some(Strength::LandlockSeccomp),
        ..Config::default()
    });
    let stage = Stage::new();
    let argv = [
        binary().display().to_string(),
        INSIDE.into(),
        "trace_nothing".into(),
    ];
    let spec = CommandSpec::argv(argv, stage.path()).with_mounts(stage.mounts.clone());
    runtime().block_on(async {
        let running = sandbox.start(spec).await.unwrap();
        let exit = running.wait().await;
        assert!(
            exit.success(),
            "{exit:?} {}",
            running.stderr().text(0, 4096).text
        );
    });
}
