//! The agent's process that started a hook. It identifies the session if the agent gives its sessions no ids.

use std::fs;
use std::os::unix::process::parent_id;

/// Programs between an agent and its hook.
const STARTERS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "fish", "busybox", "env", "timeout", "setsid",
];
/// Maximum number of parent processes that are read.
const DEEP: usize = 8;
/// Maximum length of a process's name that another process sends, in bytes.
const LONGEST: usize = 64;

/// Returns a name for the agent's process: its id and, where the system tells it, when it started, since ids are reused.
pub(super) fn name() -> String {
    let mut id = parent_id();
    for _ in 0..DEEP {
        let Some(process) = ProcessStat::read(id) else {
            break;
        };
        if !STARTERS.contains(&&*process.program) || process.parent <= 1 {
            return format!("{id}-{}", process.started);
        }
        id = process.parent;
    }
    id.to_string()
}

/// Whether a text can be the name of a process.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits)
}

/// What Linux says about a process.
struct ProcessStat {
    program: String,
    parent: u32,
    started: u64,
}

impl ProcessStat {
    fn read(id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// Parses `PID (PROGRAM) STATE PARENT …`. The program's name may hold anything, so the fields begin after the last parenthesis.
    fn parse(stat: &str) -> Option<Self> {
        let (before, fields) = stat.rsplit_once(") ")?;
        let (_, program) = before.split_once(" (")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        Some(Self {
            program: program.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_program_is_called() {
        let rest = "S 41 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        for program in ["node", "a (b) c", ") S 1 (", ""] {
            let process = ProcessStat::parse(&format!("42 ({program}) {rest}\n")).unwrap();
            assert_eq!(
                (&*process.program, process.parent, process.started),
                (program, 41, 987_654)
            );
        }
        assert!(ProcessStat::parse("42 (node) S 41").is_none());
        assert!(is_name(&name()), "{}", name());
        assert!(!is_name("1/2") && !is_name(""));
    }
}
