//! `ScriptFiles`: the files that the script of a command names, besides the command's own.

use crate::path_use::{PathAccess, PathUse};

/// The files that a script names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScriptFiles {
    /// Files that it reads.
    pub(crate) reads: Vec<String>,
    /// Files that it writes.
    pub(crate) writes: Vec<String>,
    /// Whether it may read files that it does not name.
    pub(crate) more: bool,
}

impl ScriptFiles {
    /// Returns those of a script that may read any file.
    pub(crate) fn any() -> Self {
        Self {
            more: true,
            ..Self::default()
        }
    }

    /// Returns what the command does with these files.
    pub(crate) fn uses(&self) -> impl Iterator<Item = PathUse> {
        let reads = self.reads.iter();
        let reads = reads.map(|path| PathUse::known(path, PathAccess::Reads));
        let writes = self.writes.iter();
        reads.chain(writes.map(|path| PathUse::known(path, PathAccess::Edits)))
    }
}
