//! `HeldPlaces`: what exists outside a jail only as long as the jail: placeholders in the workspace, and a private folder.

use std::io;
use std::path::{Path, PathBuf};

mod git_exclude;
pub(crate) mod placeholder;
mod replaced;
pub(crate) mod scratch;

use git_exclude::ExcludedNames;
use placeholder::{Placeholder, Placeholders};
use scratch::ScratchFolder;

/// What one command holds outside its jail; dropping it removes all of it.
#[derive(Debug, Default)]
pub(crate) struct HeldPlaces {
    placeholders: Placeholders,
    scratch: Option<ScratchFolder>,
    /// Dropped after the placeholders.
    excluded: Option<Box<ExcludedNames>>,
}

impl HeldPlaces {
    /// Creates a private folder in place of `/tmp`, for the level that has none of its own.
    pub(crate) fn make_scratch(&mut self) -> io::Result<PathBuf> {
        let scratch = ScratchFolder::make()?;
        let path = scratch.0.clone();
        self.scratch = Some(scratch);
        Ok(path)
    }

    /// Keeps the git of the user from showing the placeholders of this workspace.
    pub(crate) fn hide_from_git(&mut self, workspace: &Path) {
        let files: Vec<PathBuf> = self.placeholders.files_below(workspace).collect();
        if files.is_empty() {
            // What a killed host left.
            git_exclude::refresh(workspace, &[]);
        } else {
            self.excluded = Some(Box::new(ExcludedNames::add(workspace, &files)));
        }
    }

    /// Holds one more placeholder.
    pub(crate) fn push(&mut self, placeholder: Placeholder) {
        self.placeholders.push(placeholder);
    }
}
