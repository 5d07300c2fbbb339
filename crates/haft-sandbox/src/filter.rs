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

use self::tree::Answer;

pub(crate) type Error = seccompiler::BackendError;
pub(crate) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The Landlock ABI from which a command's abstract sockets are kept apart from the host's.
pub(crate) const SCOPES: u32 = 6;

/// What is around a confined process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Around {
    /// A root and namespaces of its own: no file, process or socket of the host is in reach.
    Own,
    /// The host's. Landlock decides about the content of files, and keeps signals inside.
    Host,
    /// The host's, and Landlock knows nothing of signals.
    HostOfOld,
}

impl Around {
    /// What is around a process by its level and the Landlock ABI.
    pub(crate) fn of(namespaces: bool, landlock: u32) -> Self {
        match (namespaces, landlock >= SCOPES) {
            (true, _) => Self::Own,
            (false, true) => Self::Host,
            (false, false) => Self::HostOfOld,
        }
    }
}

/// Bits of `clone` that make namespaces.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // CLONE_NEWTIME shares its bit with the exit signal's mask in `clone`, where it means nothing.
];

/// Calls whose flags lie in memory, where no filter can look, and which every C library does without.
const ABSENT: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Calls that make a file with a mode, and which argument that is.
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

/// Calls that change a file's mode, and which argument that is.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
];

/// Calls that change a file's times.
const TIMES: &[i64] = &[
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
];

/// Bits that run a program as another user.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// The argument has `value` in the bits of `mask` (its low 32 bits: what the kernel looks at).
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

/// All 64 bits differ.
fn differs(index: u8, value: i32) -> Result<SeccompCondition, Error> {
    let value = u64::from(value.cast_unsigned());
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, value)
}

fn is_null(index: u8) -> Result<SeccompCondition, Error> {
    SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

/// Adds a rule that holds where all conditions do.
fn rule(rules: &mut Rules, call: i64, all: Vec<SeccompCondition>) -> Result<(), Error> {
    rules.entry(call).or_default().push(SeccompRule::new(all)?);
    Ok(())
}

/// Adds rules that hold where the argument has one of these values.
fn is_one_of(rules: &mut Rules, call: i64, index: u8, values: &[u64]) -> Result<(), Error> {
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

/// The whole filter: by number where the number decides, else by `rules`, which get `matched` where one
/// holds and the other answer where none does.
fn assemble(
    mut answers: BTreeMap<i64, Answer>,
    otherwise: Answer,
    mut rules: Rules,
    matched: Answer,
) -> Result<BpfProgram, Error> {
    answers.extend(ABSENT.iter().map(|call| (*call, Answer::Absent)));
    for (call, conditions) in &rules {
        let answer = if conditions.is_empty() {
            matched
        } else {
            Answer::ByArguments
        };
        answers.insert(*call, answer);
    }
    rules.retain(|_, conditions| !conditions.is_empty());
    let action = |answer| match answer {
        Answer::Allowed => SeccompAction::Allow,
        _ => SeccompAction::Errno(libc::EPERM.cast_unsigned()),
    };
    let unmatched = match matched {
        Answer::Allowed => Answer::Denied,
        _ => Answer::Allowed,
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let conditions = SeccompFilter::new(rules, action(unmatched), action(matched), arch)?;
    let mut filter = prelude();
    tree::lead(&answers, otherwise, conditions.try_into()?, &mut filter)?;
    Ok(filter)
}

/// What comes first on `x86_64`: a call by the x32 numbers, which the rules would not recognise, kills.
/// (Another architecture is killed by the filters themselves.)
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
