//! A skill to be loaded into a run, what loading it came to, and the skill while it is active.

use std::path::{Path, PathBuf};

use crate::policy::Restriction;

/// A skill to be loaded into a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activation<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its instructions, which count against the run's budget of tokens.
    pub body: &'a str,
    /// Its folder, which commands may read while it is active.
    pub folder: Option<&'a Path>,
    /// The only rules a call may fall under while it is active; `None` restricts nothing.
    pub restricts_to: Option<&'a [String]>,
    /// Rules no call may fall under while it is active.
    pub excludes: &'a [String],
}

/// What loading a skill came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activated {
    /// It was active already, with the same text and the same limits: nothing changed.
    pub already: bool,
    /// Tokens of its instructions.
    pub tokens: usize,
    /// Skills that had to go to keep the budget, oldest first; their limits went with them.
    pub evicted: Vec<String>,
    /// Rules of its limits that could not be read.
    pub unread: Vec<String>,
}

/// A skill that is active in a run.
#[derive(Debug)]
pub struct ActiveSkill {
    pub(super) name: String,
    pub(super) folder: Option<PathBuf>,
    pub(super) tokens: usize,
    pub(super) digest: [u8; 32],
    pub(super) restriction: Restriction,
}

impl ActiveSkill {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Tokens of its instructions.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// What it narrows the run to.
    pub fn restriction(&self) -> &Restriction {
        &self.restriction
    }
}
