//! `ForeignChange`: a change that a program makes which haft does not run: recorded by what was there before and afterwards.

use std::path::PathBuf;

use crate::change::Changer;
use crate::change::changer::SavedStates;
use crate::workspace::WorkspaceError;

/// A change that another program is about to make. What it may destroy is saved.
#[derive(Debug)]
pub struct ForeignChange {
    changer: Changer,
    saved: SavedStates,
}

impl Changer {
    /// Saves what is at these paths, which are below the root and lead over no link, before a program changes them that haft does not run.
    ///
    /// # Errors
    /// They cannot be read or saved.
    pub fn foreign_change(&self, paths: &[PathBuf]) -> Result<ForeignChange, WorkspaceError> {
        Ok(ForeignChange {
            saved: self.save_states(paths)?,
            changer: self.clone(),
        })
    }
}

impl ForeignChange {
    /// Records what the program has changed by now. Returns the number of paths.
    ///
    /// # Errors
    /// The files cannot be read, or the change cannot be recorded.
    pub fn record(self) -> Result<usize, WorkspaceError> {
        self.changer.record_differences(self.saved)
    }
}
