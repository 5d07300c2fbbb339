//! Finds a call's answer by binary search on the number, instead of comparing with one call after another.
//!
//! The calls themselves do not need this, because the kernel caches their answers. But when a filter is installed, the
//! kernel runs it once for every number there is. With a list that took most of a millisecond for every new child;
//! a tree takes a quarter.

use std::collections::BTreeMap;

use seccompiler::{BackendError, BpfProgram, sock_filter};

/// The answer to a call by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyscallVerdict {
    Allowed,
    /// `EPERM`.
    Denied,
    /// `ENOSYS`.
    Absent,
    /// Its arguments decide.
    ByArguments,
}

const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// The offset of the architecture in the data that a filter sees.
const ARCHITECTURE: u32 = 4;
#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xC000_00B7;

fn line(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Appends the tree, with `otherwise` for every other number, followed by `conditions`, a complete filter for
/// the calls that are decided by arguments.
pub(super) fn lead(
    answers: &BTreeMap<i64, SyscallVerdict>,
    otherwise: SyscallVerdict,
    conditions: BpfProgram,
    filter: &mut BpfProgram,
) -> Result<(), BackendError> {
    filter.extend([
        line(LOAD_WORD, 0, 0, ARCHITECTURE),
        line(JUMP_EQUAL, 1, 0, OURS),
        line(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        line(LOAD_WORD, 0, 0, 0),
    ]);
    let mut tree = grow(&runs(answers, otherwise))?;
    let length = tree.len();
    for (at, line) in tree.iter_mut().enumerate() {
        if line.code == JUMP {
            let over = u32::try_from(length - at - 1);
            line.k = over.map_err(|_| BackendError::FilterTooLarge(length))?;
        }
    }
    filter.extend(tree);
    filter.extend(conditions);
    Ok(())
}

/// Groups neighbours with the same answer, by their first number; the first run starts at 0.
fn runs(
    answers: &BTreeMap<i64, SyscallVerdict>,
    otherwise: SyscallVerdict,
) -> Vec<(u32, SyscallVerdict)> {
    let mut runs = vec![(0, otherwise)];
    let mut next = 0;
    let mut push = |at: u32, answer: SyscallVerdict| match runs.last_mut() {
        Some((_, last)) if *last == answer => {}
        Some((start, last)) if *start == at => *last = answer,
        _ => runs.push((at, answer)),
    };
    for (call, answer) in answers {
        let Ok(call) = u32::try_from(*call) else {
            continue;
        };
        if call > next {
            push(next, otherwise);
        }
        push(call, *answer);
        next = call + 1;
    }
    push(next, otherwise);
    runs
}

fn grow(runs: &[(u32, SyscallVerdict)]) -> Result<BpfProgram, BackendError> {
    let (left, right) = runs.split_at(runs.len() / 2);
    let Some((middle, answer)) = right.first() else {
        return Ok(BpfProgram::new());
    };
    if left.is_empty() {
        let error = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
        return Ok(vec![match answer {
            SyscallVerdict::Allowed => line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
            SyscallVerdict::Denied => line(RETURN, 0, 0, error(libc::EPERM)),
            SyscallVerdict::Absent => line(RETURN, 0, 0, error(libc::ENOSYS)),
            SyscallVerdict::ByArguments => line(JUMP, 0, 0, 0),
        }]);
    }
    let (left, right) = (grow(left)?, grow(right)?);
    let over = u8::try_from(left.len()).map_err(|_| BackendError::FilterTooLarge(left.len()))?;
    let mut tree = vec![line(JUMP_AT_LEAST, over, 0, *middle)];
    tree.extend(left);
    tree.extend(right);
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{JUMP_AT_LEAST, RETURN, SyscallVerdict, grow, runs};

    #[test]
    fn every_number_finds_its_answer() {
        let mut answers = BTreeMap::new();
        for number in (0..300_i64).filter(|number| number % 7 < 3 || number % 11 == 0) {
            answers.insert(
                number,
                if number % 2 == 0 {
                    SyscallVerdict::Allowed
                } else {
                    SyscallVerdict::Absent
                },
            );
        }
        for otherwise in [SyscallVerdict::Denied, SyscallVerdict::Allowed] {
            finds(&answers, otherwise);
        }
    }

    fn finds(answers: &BTreeMap<i64, SyscallVerdict>, otherwise: SyscallVerdict) {
        let tree = grow(&runs(answers, otherwise)).unwrap();
        for number in 0..700_u32 {
            let mut at = 0;
            let answer = loop {
                let line = &tree[at];
                match line.code {
                    RETURN => break line.k,
                    JUMP_AT_LEAST if number >= line.k => at += 1 + usize::from(line.jt),
                    _ => at += 1,
                }
            };
            let expect = match answers.get(&i64::from(number)).unwrap_or(&otherwise) {
                SyscallVerdict::Allowed => libc::SECCOMP_RET_ALLOW,
                SyscallVerdict::Absent => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned(),
                _ => libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned(),
            };
            assert_eq!(answer, expect, "{number}");
        }
    }
}
