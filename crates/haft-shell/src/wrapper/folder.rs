//! `LayerFolder`: the folder in which a wrapper runs its command.

use crate::options::Operands;
use crate::word::AsWord;

/// The folder in which a command runs, seen from the line that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerFolder<'a> {
    /// The folder of the line.
    Same,
    /// This folder, which may be relative to that of the line: `env -C FOLDER`.
    In(&'a str),
    /// Any folder.
    Anywhere,
}

/// Wrappers that run their command in the folder that they are in, whatever their options. Every other one may change it.
const KEEPING: &[&str] = &[
    "builtin", "busybox", "chrt", "command", "doas", "exec", "fakeroot", "flock", "ionice", "jobs",
    "ltrace", "nice", "noglob", "nohup", "prlimit", "script", "setarch", "setpriv", "setsid",
    "stdbuf", "strace", "taskset", "time", "timeout", "watch", "xargs",
];

impl<'a> LayerFolder<'a> {
    /// Returns the folder behind a wrapper with these options; `None` for options that are not all known.
    pub(crate) fn behind<W: AsWord>(self, wrapper: &str, given: Option<&Operands<'a, W>>) -> Self {
        if KEEPING.contains(&wrapper) {
            return self;
        }
        let Some(given) = given.filter(|_| matches!(wrapper, "env" | "sudo")) else {
            return Self::Anywhere;
        };
        // `sudo -i` goes to the home of the user, `-R` into another root.
        if wrapper == "sudo"
            && (given.flags.contains(&"i") || given.values.iter().any(|one| one.name == "R"))
        {
            return Self::Anywhere;
        }
        let named: &[&str] = if wrapper == "env" {
            &["C", "chdir"]
        } else {
            &["D"]
        };
        let mut folders = given.values.iter().filter(|one| named.contains(&one.name));
        match (folders.next(), folders.next()) {
            (None, _) => self,
            (Some(one), None) if one.is_known => self.below(one.value),
            // The last one counts, or a value that only the shell knows.
            _ => Self::Anywhere,
        }
    }

    /// Returns this folder below it.
    fn below(self, folder: &'a str) -> Self {
        match self {
            Self::Same => Self::In(folder),
            Self::In(_) | Self::Anywhere if folder.starts_with('/') => Self::In(folder),
            Self::In(_) | Self::Anywhere => Self::Anywhere,
        }
    }
}
