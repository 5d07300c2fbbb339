//! A skill to load into a run, the result of loading it, and the skill while it is active.

use std::path::{Path, PathBuf};

use crate::policy::Restriction;

/// A skill to load into a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activation<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its instructions, which count against the run's token budget.
    pub body: &'a str,
    /// Its folder, which commands may read while it is active.
    pub folder: Option<&'a Path>,
    /// Rules of which a call must match at least one while it is active; `None` restricts nothing.
    pub restricts_to: Option<&'a [String]>,
    /// Rules that no call may match while it is active.
    pub excludes: &'a [String],
}

/// The result of loading a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivationResult {
    /// Whether it was already active with the same text and limits, so that nothing changed.
    pub already: bool,
    /// Number of tokens of its instructions.
    pub tokens: usize,
    /// Skills that were evicted to stay within the budget, oldest first, together with their limits.
    pub evicted: Vec<String>,
    /// Rules of its limits that could not be parsed.
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
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its folder.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the number of tokens of its instructions.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Returns its restriction of the run.
    pub fn restriction(&self) -> &Restriction {
        &self.restriction
    }
}
