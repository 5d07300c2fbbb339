//! The code profile's system call filter: an allow list of what a Python without processes and sockets needs.
//!
//! A call that is not on the list fails with `EPERM`, which Python raises as a `PermissionError`; a call by another
//! architecture's number kills. Executable memory is allowed: loading libraries and creating callbacks need it, and native
//! code gains nothing that the script could not do with `ctypes`.

use std::collections::BTreeMap;

use seccompiler::BpfProgram;

use super::tree::SyscallVerdict;
use super::{Error, Isolation, MAKING, MODES, NAMESPACES, SyscallRules, TIMES};
use super::{assemble, has, is, is_null, is_one_of, rule, wide};

/// Calls that are allowed whatever their arguments.
const ALLOWED: &[i64] = &[
    // Reading, writing and seeking in open files.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    // File names; Landlock and the root decide which.
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getdents64,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_umask,
    // Memory.
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_brk,
    // Threads and signals of its own process.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getcpu,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_setitimer,
    libc::SYS_getitimer,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Identity and time.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // The bridge, and socket pairs.
    libc::SYS_recvfrom,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
];

/// The older names of these calls on `x86_64`.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[i64] = &[
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
    libc::SYS_getpgrp,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[i64] = &[];

/// Calls that create devices, pipes and sockets: none is allowed.
const NODES: &[i64] = &[
    libc::SYS_mknodat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
];

/// What an interpreter also needs between its execution and its first line.
const STARTING: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_set_tid_address,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
];

/// Requests that query a descriptor; none that changes a device.
const REQUESTS: &[u64] = &[
    libc::FIONREAD,
    libc::FIONBIO,
    libc::FIOCLEX,
    libc::FIONCLEX,
    libc::TCGETS,
    libc::TIOCGWINSZ,
];

/// No owner, signal or lease: those reach other processes.
const FILE_REQUESTS: &[i32] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_GETPIPE_SZ,
];

/// Properties of a socket, but not the identity of its peer.
const SOCKET_QUESTIONS: &[i32] = &[
    libc::SO_TYPE,
    libc::SO_DOMAIN,
    libc::SO_PROTOCOL,
    libc::SO_ERROR,
    libc::SO_ACCEPTCONN,
];

/// Allows files without the set-user-id and set-group-id bits.
fn files(rules: &mut SyscallRules, around: Isolation) -> Result<(), Error> {
    let own = around == Isolation::Own;
    let set_id = libc::S_ISUID | libc::S_ISGID;
    let making = MAKING.iter().filter(|(call, _)| !NODES.contains(call));
    for (call, mode) in making.chain(MODES.iter().filter(|_| own)) {
        rule(rules, *call, vec![has(*mode, set_id, 0)?])?;
    }
    for call in TIMES.iter().filter(|_| own) {
        rules.insert(*call, Vec::new());
    }
    is_one_of(rules, libc::SYS_ioctl, 1, REQUESTS)?;
    is_one_of(rules, libc::SYS_fcntl, 1, &wide(FILE_REQUESTS))
}

/// Allows pairs of connected local sockets. A datagram socket could send to any other by its name, so only
/// streams are allowed, and no sending to an address.
fn sockets(rules: &mut SyscallRules) -> Result<(), Error> {
    let stream = libc::SOCK_STREAM.cast_unsigned();
    let local = u64::from(libc::AF_UNIX.cast_unsigned());
    let pair = vec![is(0, local)?, has(1, 0xF, stream)?];
    rule(rules, libc::SYS_socketpair, pair)?;
    rule(rules, libc::SYS_sendto, vec![is_null(4)?])?;
    let level = u64::from(libc::SOL_SOCKET.cast_unsigned());
    for question in wide(SOCKET_QUESTIONS) {
        let both = vec![is(1, level)?, is(2, question)?];
        rule(rules, libc::SYS_getsockopt, both)?;
    }
    Ok(())
}

/// Allows file mappings and private memory. Shared memory without a file stays allocated while any part of it is
/// mapped, however small: nothing limits that.
fn mappings(rules: &mut SyscallRules) -> Result<(), Error> {
    for bit in [libc::MAP_SHARED, libc::MAP_ANONYMOUS] {
        rule(rules, libc::SYS_mmap, vec![has(3, bit.cast_unsigned(), 0)?])?;
    }
    Ok(())
}

/// Allows threads, and their names, limits and signals, within this process only.
fn own_process(rules: &mut SyscallRules, around: Isolation) -> Result<(), Error> {
    let thread = libc::CLONE_THREAD.cast_unsigned();
    let namespaces = NAMESPACES
        .iter()
        .fold(0, |all, flag| all | flag.cast_unsigned());
    let both = vec![has(0, thread, thread)?, has(0, namespaces, 0)?];
    rule(rules, libc::SYS_clone, both)?;
    let names = wide(&[libc::PR_SET_NAME, libc::PR_GET_NAME]);
    is_one_of(rules, libc::SYS_prctl, 0, &names)?;
    // To read a limit, not to change one.
    rule(rules, libc::SYS_prlimit64, vec![is(0, 0)?, is_null(2)?])?;
    match around {
        Isolation::Own => is_one_of(rules, libc::SYS_tgkill, 0, &[1]),
        Isolation::Host => {
            rules.insert(libc::SYS_tgkill, Vec::new());
            Ok(())
        }
        Isolation::HostOfOld => Ok(()),
    }
}

/// Returns the filter; `starting` if the interpreter is executed under it.
pub(crate) fn allow(around: Isolation, starting: bool) -> Result<BpfProgram, Error> {
    let more = if starting { STARTING } else { &[] };
    let mut rules = SyscallRules::new();
    files(&mut rules, around)?;
    sockets(&mut rules)?;
    mappings(&mut rules)?;
    own_process(&mut rules, around)?;
    let allowed = ALLOWED.iter().chain(ALLOWED_HERE).chain(more);
    let answers: BTreeMap<i64, SyscallVerdict> = allowed
        .map(|call| (*call, SyscallVerdict::Allowed))
        .collect();
    assemble(
        answers,
        SyscallVerdict::Denied,
        rules,
        SyscallVerdict::Allowed,
    )
}

#[cfg(test)]
mod tests {
    use super::{Isolation, allow};

    #[test]
    fn the_filters_compile_and_fit() {
        for around in [Isolation::Own, Isolation::Host, Isolation::HostOfOld] {
            for starting in [false, true] {
                let filter = allow(around, starting).unwrap();
                // The kernel accepts at most 4,096 instructions.
                assert!(filter.len() < 600, "{}", filter.len());
            }
        }
    }
}
