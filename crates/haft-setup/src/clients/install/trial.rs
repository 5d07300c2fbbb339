//! Helpers for tests of installs: steps that stop as if the process were killed, and the files on disk afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clients::install::step::EditStep;
use crate::problem::Problem;

/// Performs this many steps; then the process counts as killed.
pub(crate) fn stopping(after: usize) -> impl FnMut(EditStep<'_>) -> Result<(), Problem> {
    let mut left = after;
    move |step| {
        if left == 0 {
            return Err(Problem::failed("killed"));
        }
        left -= 1;
        EditStep::take(step)
    }
}

/// Collects everything below a folder.
pub(crate) fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        walk(&entry.path(), found);
    }
}

/// Returns a file's text, if it exists.
pub(crate) fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}
