//! `SetupSite`: where settings are looked for, and where haft records its edits of them.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};

/// Where settings are looked for, and where haft records its edits.
#[derive(Debug, Clone, Copy)]
pub struct SetupSite<'a> {
    /// The variables of the process at its start.
    pub environment: &'a Environment,
    /// The canonical path of the project.
    pub workspace: &'a Path,
    /// haft's state folder.
    pub home: StateFolder<'a>,
}

/// haft's state folder, which may not exist yet.
#[derive(Debug, Clone, Copy)]
pub struct StateFolder<'a>(pub &'a Path);

impl StateFolder<'_> {
    /// Returns the path of an entry of the folder.
    pub fn join(self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates the folder if it is missing, accessible only to its owner.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(self) -> Result<(), Problem> {
        plain_file::private_folder(self.0).map_err(|e| {
            Problem::settings(format!("cannot create the state folder: {e}"))
                .at(SourceLocation::file(self.0))
                .advise("choose another: --home DIR or HAFT_HOME")
        })
    }
}
