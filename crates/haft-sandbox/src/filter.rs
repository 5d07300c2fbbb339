//! System call filters: what commands are denied and what scripts are allowed.

pub(crate) mod command;
mod outside;
pub(crate) mod script;
mod tree;

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use self::tree::SyscallVerdict;

pub(crate) type Error = seccompiler::BackendError;
pub(crate) type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// The first Landlock ABI that separates a command's abstract sockets from the host's.
pub(crate) const SCOPES: u32 = 6;

/// The environment of a confined process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Isolation {
    /// A root and namespaces of its own: it can reach no file, process or socket of the host.
    Own,
    /// The host's. Landlock controls access to the content of files, and keeps signals inside.
    Host,
    /// The host's, with a Landlock that does not cover signals.
    HostOfOld,
}

impl Isolation {
    /// Returns the environment of a process for its level and Landlock ABI.
    pub(crate) fn of(namespaces: bool, landlock: u32) -> Self {
        match (namespaces, landlock >= SCOPES) {
            (true, _) => Self::Own,
            (false, true) => Self::Host,
            (false, false) => Self::HostOfOld,
        }
    }
}

/// Flags of `clone` that create namespaces.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // CLONE_NEWTIME shares its bit with the exit signal's mask in `clone`, where it has no effect.
];

/// Calls whose flags lie in memory, where no filter can look; every C library works without them.
const ABSENT: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Calls that create a file with a mode, and the index of the mode argument.
const MAKING: &[(i64, u8)] = &[
    (libc::SYS_openat, 3),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that change a file's mode, and the index of the mode argument.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
];

/// Calls that change a file's timestamps.
const TIMES: &[i64] = &[
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
];

/// Bits that run a program as another user.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// The argument equals `value` in the bits of `mask` (in its low 32 bits, which are those that the kernel uses).
fn has(index: u8, mask: u32, value: u32) -> Result<SeccompCondition, Error> {
    let op = SeccompCmpOp::MaskedEq(u64::from(mask));
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, u64::from(value))
}

fn is(index: u8, value: u64) -> Result<SeccompCondition, Error> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(index: u8, value: i32) -> Result<SeccompCondition, Error> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// The argument differs from `value`, compared in all 64 bits.
fn differs(index: u8, value: i32) -> Result<SeccompCondition, Error> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, value)
}

fn is_null(index: u8) -> Result<SeccompCondition, Error> {
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

/// Adds a rule that matches if all conditions hold.
fn rule(rules: &mut SyscallRules, call: i64, all: Vec<SeccompCondition>) -> Result<(), Error> {
    rules.entry(call).or_default().push(SeccompRule::new(all)?);
    Ok(())
}

/// Adds rules that match if the argument has one of these values.
fn is_one_of(rules: &mut SyscallRules, call: i64, index: u8, values: &[u64]) -> Result<(), Error> {
    for value in values {
        rule(rules, call, vec![is(index, value & 0xFFFF_FFFF)?])?;
    }
    Ok(())
}

fn wide(values: &[i32]) -> Vec<u64> {
    values
        .iter()
        .map(|value| u64::from(value.cast_unsigned()))
        .collect()
}

/// Assembles the whole filter: by call number if that decides, else by `rules`: the answer is `matched` if one matches,
/// and the opposite answer if none does.
fn assemble(
    mut answers: BTreeMap<i64, SyscallVerdict>,
    otherwise: SyscallVerdict,
    mut rules: SyscallRules,
    matched: SyscallVerdict,
) -> Result<BpfProgram, Error> {
    answers.extend(ABSENT.iter().map(|call| (*call, SyscallVerdict::Absent)));
    for (call, conditions) in &rules {
        let answer = if conditions.is_empty() {
            matched
        } else {
            SyscallVerdict::ByArguments
        };
        answers.insert(*call, answer);
    }
    rules.retain(|_, conditions| !conditions.is_empty());
    let action = |answer| match answer {
        SyscallVerdict::Allowed => SeccompAction::Allow,
        _ => SeccompAction::Errno(libc::EPERM.cast_unsigned()),
    };
    let unmatched = match matched {
        SyscallVerdict::Allowed => SyscallVerdict::Denied,
        _ => SyscallVerdict::Allowed,
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let conditions = SeccompFilter::new(rules, action(unmatched), action(matched), arch)?;
    let mut filter = prelude();
    tree::lead(&answers, otherwise, conditions.try_into()?, &mut filter)?;
    Ok(filter)
}

/// The first instructions on `x86_64`: a call by an x32 number, which the rules would not recognise, kills.
/// (The filters themselves kill calls of another architecture.)
fn prelude() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        line(LOAD_WORD, 0, 0, 0),
        line(JUMP_AT_LEAST, 0, 1, X32_BIT),
        line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
    ]
}
