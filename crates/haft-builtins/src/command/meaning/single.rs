//! What the change of a single file amounts to: packages, cells, a picture, or a file that no person reads line by line.

use haft::approval::meaning::Meaning;

use super::budget::Budget;
use super::{folded, lockfile, notebook};

/// Returns true if a file of this name may have a meaning of its own.
pub(super) fn may_mean(path: &str) -> bool {
    lockfile::is_named(path) || notebook::is_named(path)
}

/// Returns true if a file of this name is read at this size, with what it was before.
pub(super) fn may_be_read(path: &str, bytes: u64) -> bool {
    bytes <= lockfile::MAX_LOCKFILE as u64 || !lockfile::is_named(path)
}

/// Returns what a change means; `None` if the file itself says it best.
pub(super) fn meaning(
    path: &str,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    budget: &mut Budget,
) -> Option<Meaning> {
    if let Some(packages) = lockfile::meaning(path, before, after, budget) {
        return Some(packages);
    }
    notebook::meaning(path, before, after, budget)
}

/// Returns why a file's content is not shown, as the end of a sentence; `None` if it is.
pub(super) fn fold(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<String> {
    Some(folded::fold(path, before, after)?.why)
}
