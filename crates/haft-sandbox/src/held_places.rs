//! `HeldPlaces`: what exists outside a jail only as long as the jail: placeholders in the workspace, and a private folder.

use std::io;
use std::path::PathBuf;

pub(crate) mod placeholder;
pub(crate) mod scratch;

use placeholder::{Placeholder, Placeholders};
use scratch::ScratchFolder;

/// What one command holds outside its jail; dropping it removes all of it.
#[derive(Debug, Default)]
pub(crate) struct HeldPlaces {
    placeholders: Placeholders,
    scratch: Option<ScratchFolder>,
}

impl HeldPlaces {
    /// Creates a private folder in place of `/tmp`, for the level that has none of its own.
    pub(crate) fn make_scratch(&mut self) -> io::Result<PathBuf> {
        let scratch = ScratchFolder::make()?;
        let path = scratch.0.clone();
        self.scratch = Some(scratch);
        Ok(path)
    }

    /// Holds one more placeholder.
    pub(crate) fn push(&mut self, placeholder: Placeholder) {
        self.placeholders.push(placeholder);
    }
}
