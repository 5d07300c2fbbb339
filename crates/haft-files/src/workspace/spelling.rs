//! Names that are the same text in another Unicode form (`é` composed or decomposed): found where the written one does not exist.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

use crate::paths::composed;
use crate::workspace::Workspace;

/// Maximum number of names in a folder that are compared; in a larger one nothing is found, since a second such name could be there.
const MAX_NAMES: usize = 100_000;

impl Workspace {
    /// Returns the one name in a folder that is the same text as a name that is not in it. An ASCII name has only one form, and is never
    /// found by another: what is protected by its name keeps it.
    pub(super) fn same_name(&self, folder: &Path, name: &OsStr) -> Option<OsString> {
        let name = name.to_str().filter(|name| !name.is_ascii())?;
        let wanted = composed(name);
        // Most texts beyond ASCII have one form: then there is nothing to look for.
        if wanted == name && name.nfd().eq(name.chars()) {
            return None;
        }
        let names = self.names(folder, MAX_NAMES + 1).ok()?;
        if names.len() > MAX_NAMES {
            return None;
        }
        let mut same = names
            .iter()
            .filter(|other| !other.is_ascii() && composed(other) == wanted);
        let one = same.next()?;
        same.next().is_none().then(|| one.into())
    }
}
