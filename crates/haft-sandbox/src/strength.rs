//! How strong the jail is on this machine, what is missing from it, and how to get that.

use std::fmt;
use std::str::FromStr;

use crate::StartError;
use crate::memory::MemoryBound;

/// How well a command is confined, weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Not at all (passthrough).
    None,
    /// No namespaces: Landlock decides about files, seccomp forbids sockets.
    LandlockSeccomp,
    /// Own namespaces and root, but a fresh `/proc` or Landlock is refused; `/proc` is empty or the
    /// second layer is missing.
    #[default]
    NoProc,
    /// Own namespaces, root and `/proc`, Landlock and seccomp.
    Full,
}

impl Strength {
    /// The word used in settings, results and audit lines.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::LandlockSeccomp => "landlock+seccomp",
            Self::NoProc => "no-proc",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Strength {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        [Self::None, Self::LandlockSeccomp, Self::NoProc, Self::Full]
            .into_iter()
            .find(|strength| strength.word() == word)
            .ok_or_else(|| {
                format!("`{word}` is not a strength (full, no-proc, landlock+seccomp, none)")
            })
    }
}

/// One thing the machine does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What, e.g. `user namespaces`.
    pub what: String,
    /// What the system said when it was tried.
    pub why: String,
    /// What to do to get it.
    pub fix: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.what, self.why, self.fix)
    }
}

/// What the machine gives, found by doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The strongest confinement that really worked.
    pub strength: Strength,
    /// The Landlock ABI that is used; 0 = none.
    pub landlock_abi: u32,
    /// What bounds the memory of a command's whole tree of processes.
    pub memory: MemoryBound,
    /// How the number of processes is limited: `pid_max` (of the jail's own pid namespace),
    /// `rlimit (per user)` or `nothing`.
    pub pids: &'static str,
    /// What is missing from [`Strength::Full`] or from limits by cgroup.
    pub missing: Vec<Missing>,
    /// What is set up; above `strength` where Landlock alone is missing.
    pub(crate) level: Strength,
    pub(crate) entered: bool,
}

impl Probe {
    /// One line for a result or a doctor, e.g. `full (landlock 7, memory by rlimit (per process), …)`.
    pub fn detail(&self) -> String {
        format!(
            "{} (landlock {}, memory by {}, pids by {})",
            self.strength, self.landlock_abi, self.memory, self.pids
        )
    }

    /// Refuses below the floor, saying what is missing.
    pub(crate) fn admit(&self, need: Strength) -> Result<(), StartError> {
        if !self.entered {
            return Err(StartError::NotEntered);
        }
        // Nothing starts unconfined here whatever the floor says: that is passthrough, by name.
        let need = need.max(Strength::LandlockSeccomp);
        if self.strength >= need {
            return Ok(());
        }
        let why = self
            .missing
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(". ");
        Err(StartError::TooWeak {
            have: self.strength,
            need,
            why,
        })
    }
}
