//! The files that a command shows or edits, as far as its words tell: clause 14 of the shell rules.

use haft_shell::{AsWord, Layer, cleaned};

use crate::path_use::PathAccess;
use crate::programs::uses_of;

/// The files that a command names and that rules on files therefore cover.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TouchedFiles {
    /// Files that it shows.
    pub reads: Vec<String>,
    /// Files that it changes in place.
    pub edits: Vec<String>,
    /// Folders below which it may also read.
    pub below: Vec<String>,
    /// Whether it also uses files that are only known at run time.
    pub unknown: bool,
}

impl TouchedFiles {
    /// Creates those of a command that may use any file.
    pub fn unknown() -> Self {
        Self {
            unknown: true,
            ..Self::default()
        }
    }

    /// Adds the files of another command.
    pub fn add(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.edits.extend(other.edits);
        self.below.extend(other.below);
        self.unknown |= other.unknown;
    }

    /// Whether a rule on a file that is not named could apply.
    pub fn is_open(&self) -> bool {
        self.unknown || !self.below.is_empty()
    }
}

/// Returns the files that a command shows or edits. Their words are cleaned; what is not known of them stays as written.
pub fn touched<W: AsWord>(layer: Layer<'_, W>) -> TouchedFiles {
    let mut found = TouchedFiles::default();
    let meaning = uses_of(layer);
    if !meaning.shows {
        return found;
    }
    for one in meaning.uses {
        let path = cleaned(one.path);
        match one.how {
            PathAccess::ReadsBelow { .. } | PathAccess::ReadsTracked => {
                if path != "/dev/null" {
                    found.below.push(path.clone());
                }
                found.reads.push(path);
            }
            PathAccess::Names
            | PathAccess::NamesBelow
            | PathAccess::Reads
            | PathAccess::ReadsHistory
            | PathAccess::Moves => found.reads.push(path),
            PathAccess::Edits => found.edits.push(path),
            PathAccess::Writes
            | PathAccess::Removes
            | PathAccess::Carries
            | PathAccess::Goes
            | PathAccess::MayUse
            | PathAccess::Connects => {}
        }
    }
    found.unknown = meaning.shows_more
        || !layer.is_known()
        || found.reads.iter().any(|file| leads_through_process(file));
    found
}

/// Whether the path leads through a process, such as `/proc/PID/cwd/…` or `/proc/PID/root/…`, and so may be any file.
fn leads_through_process(file: &str) -> bool {
    file.strip_prefix("/proc/")
        .is_some_and(|rest| rest.split('/').count() > 2)
}
