//! What tests of installs need: steps that stop as if the process were killed, and what is on the disk then.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clients::install::step::Step;
use crate::problem::Problem;

/// Steps until so many are taken; then the process is as good as killed.
pub(crate) fn stopping(after: usize) -> impl FnMut(Step<'_>) -> Result<(), Problem> {
    let mut left = after;
    move |step| {
        if left == 0 {
            return Err(Problem::failed("killed"));
        }
        left -= 1;
        Step::take(step)
    }
}

/// Everything below a folder.
pub(crate) fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        walk(&entry.path(), found);
    }
}

/// A file's text, if it is there.
pub(crate) fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}
