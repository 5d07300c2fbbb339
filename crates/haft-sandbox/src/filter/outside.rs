//! Calls denied to a command that can reach the host's files and processes: every call that changes
//! one of them and that Landlock does not control.
//!
//! Landlock controls reading, writing, creating, renaming and removing files. It does not control modes,
//! owners, times, attributes, flags of file systems, other processes' limits and priorities, or System V
//! and POSIX message objects; elsewhere, namespaces keep those of the host out of reach.

use super::{Error, Isolation, MODES, SyscallRules, TIMES, has, is_not, rule};

/// Calls that libc has no number for yet.
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

/// Owners and attributes of files; timestamps by a call name that is no longer in use.
const OWNERS_AND_ATTRIBUTES: &[i64] = &[
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Shared memory, semaphores and queues: those in the host's namespace belong to the user's other programs. Queues with a name are absent
/// from every command.
const IPC: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// Calls that change the process given as their first argument; 0 is the caller.
const OF_A_PROCESS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
];

/// Calls that send a signal.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Requests of `fcntl` and `ioctl` that make the kernel send a signal.
const SIGNAL_OWNERS: &[(i64, u32)] = &[
    (libc::SYS_fcntl, libc::F_SETOWN.cast_unsigned()),
    (libc::SYS_fcntl, F_SETSIG),
    (libc::SYS_fcntl, F_SETOWN_EX),
    (libc::SYS_ioctl, FIOSETOWN),
    (libc::SYS_ioctl, SIOCSPGRP),
];
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;

/// The types of requests by which file systems change flags, versions, projects, encryption and
/// snapshots of a file that is open only for reading.
const FILE_SYSTEM_REQUESTS: &[u8] = b"fXv\x94";

/// Adds the rules that deny these calls.
pub(super) fn deny(rules: &mut SyscallRules, around: Isolation) -> Result<(), Error> {
    if around == Isolation::Own {
        return Ok(());
    }
    let modes = MODES.iter().map(|(call, _)| call);
    for call in modes.chain(TIMES).chain(OWNERS_AND_ATTRIBUTES).chain(IPC) {
        rules.insert(*call, Vec::new());
    }
    for kind in FILE_SYSTEM_REQUESTS {
        let kind = u32::from(*kind) << 8;
        rule(rules, libc::SYS_ioctl, vec![has(1, 0xFF00, kind)?])?;
    }
    for call in OF_A_PROCESS {
        rule(rules, *call, vec![is_not(0, 0)?])?;
    }
    let own = [
        (libc::SYS_setpriority, libc::PRIO_PROCESS.cast_signed()),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ];
    for (call, process) in own {
        rule(rules, call, vec![is_not(0, process)?])?;
        rule(rules, call, vec![is_not(1, 0)?])?;
    }
    if around == Isolation::HostOfOld {
        for call in SIGNALS {
            rules.insert(*call, Vec::new());
        }
        for (call, request) in SIGNAL_OWNERS {
            rule(rules, *call, vec![has(1, u32::MAX, *request)?])?;
        }
    }
    Ok(())
}

const IOPRIO_WHO_PROCESS: i32 = 1;
