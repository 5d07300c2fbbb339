//! How strong the jail is on this machine, what is missing, and how to get it.

use std::fmt;
use std::str::FromStr;

use crate::StartError;
use crate::memory::MemoryBound;

/// How strongly a command is confined, weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Not at all (passthrough).
    None,
    /// No namespaces: Landlock controls file access, seccomp forbids sockets.
    LandlockSeccomp,
    /// Its own namespaces and root, but the machine refuses a fresh `/proc` or Landlock: `/proc` is empty, or the
    /// second layer is missing.
    #[default]
    NoProc,
    /// Its own namespaces, root and `/proc`, Landlock and seccomp.
    Full,
}

impl Strength {
    /// Returns the word used in settings, results and audit lines.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::LandlockSeccomp => "landlock+seccomp",
            Self::NoProc => "no-proc",
            Self::Full => "full",
        }
    }
}

impl Strength {
    /// Says what a command is confined by.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::None => "no jail",
            Self::LandlockSeccomp => "a jail of Landlock and seccomp",
            Self::NoProc => "a jail with namespaces",
            Self::Full => "a jail with namespaces, its own /proc, Landlock and seccomp",
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

/// One thing that the machine does not provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFeature {
    /// Its name, e.g. `user namespaces`.
    pub what: String,
    /// Why it is missing.
    pub why: String,
    /// How to get it: numbered steps, one a line, or a sentence.
    pub fix: String,
    /// Whether confinement is weaker without it; otherwise only a limit is missing.
    pub decides: bool,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.what, self.why, self.fix)
    }
}

/// The bounds of a jail of which nothing is missing, in the order in which lines number them.
const KEPT_BOUNDS: [MemoryBound; 3] = [
    MemoryBound::Watched,
    MemoryBound::CgroupV1,
    MemoryBound::CgroupV2,
];

/// What the machine provides, found by trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The strongest confinement that actually worked.
    pub strength: Strength,
    /// The Landlock ABI in use; 0 = none.
    pub landlock_abi: u32,
    /// What limits the memory of a command's whole process tree.
    pub memory: MemoryBound,
    /// How the number of processes is limited: `pid_max` (of the jail's own pid namespace),
    /// `rlimit (per user)` or `nothing`.
    pub pids: &'static str,
    /// What is missing from [`Strength::Full`] or from limits by cgroup.
    pub missing: Vec<MissingFeature>,
    /// The level that is set up; higher than `strength` if only Landlock is missing.
    pub(crate) level: Strength,
    pub(crate) entered: bool,
}

/// What limits the number of processes in a jail with a pid namespace of its own.
pub(crate) const PID_MAX: &str = "pid_max";

impl Probe {
    /// Returns the line that [`from_line`](Self::from_line) reads; `None` if something is missing, which may be mended meanwhile.
    pub(crate) fn to_line(&self) -> Option<String> {
        let memory = KEPT_BOUNDS.iter().position(|bound| *bound == self.memory)?;
        let is_whole = self.strength == Strength::Full
            && self.level == Strength::Full
            && self.missing.is_empty()
            && self.pids == PID_MAX;
        is_whole.then(|| format!("{} {memory}", self.landlock_abi))
    }

    /// Returns what was found, from its line.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (landlock, memory) = line.split_once(' ')?;
        Some(Self {
            strength: Strength::Full,
            landlock_abi: landlock.parse().ok()?,
            memory: *KEPT_BOUNDS.get(memory.parse::<usize>().ok()?)?,
            pids: PID_MAX,
            missing: Vec::new(),
            level: Strength::Full,
            entered: true,
        })
    }

    /// Returns one line for a result or the doctor command, e.g. `full (landlock 7, memory by rlimit (per process), …)`.
    pub fn detail(&self) -> String {
        format!(
            "{} (landlock {}, memory by {}, pids by {})",
            self.strength, self.landlock_abi, self.memory, self.pids
        )
    }

    /// Returns an error that says what is missing if the strength is below `need`.
    pub(crate) fn admit(&self, need: Strength) -> Result<(), StartError> {
        if !self.entered {
            return Err(StartError::NotEntered);
        }
        // Nothing runs unconfined here, whatever the minimum: that takes passthrough, chosen by name.
        let need = need.max(Strength::LandlockSeccomp);
        if self.strength >= need {
            return Ok(());
        }
        Err(StartError::TooWeak {
            have: self.strength,
            need,
            why: format!("the jail needs {}", self.needs()),
        })
    }

    /// Names what would make confinement stronger: `user namespaces`. Why it is missing, and how to get it, is in [`Probe::missing`] alone.
    pub fn needs(&self) -> String {
        let decisive = self.missing.iter().filter(|missing| missing.decides);
        let names: Vec<&str> = decisive.map(|missing| missing.what.as_str()).collect();
        names.join(", ")
    }
}
