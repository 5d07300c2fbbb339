//! Whether a repository that a `.git` file names without a back link is that of the folder: a submodule, or one that was made apart.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::{display, object_hash, setting};
use crate::git_index::Index;
use crate::workspace::GIT;

/// Maximum number of entries of an index that are compared with files.
const MAX_COMPARED: usize = 1_000;
/// How much of an index is read for that, in bytes.
const MAX_READ: u64 = 256 * 1024;

/// Fails unless the repository in `own` has `tree` as its work tree.
///
/// A submodule's settings name the work tree. `git init --separate-git-dir` leaves no back link, but the index records time, size and
/// inode of each file of its work tree: no archive can bring files along that agree with an index that it has never seen.
pub(super) fn check(own: &Path, tree: &Path) -> Result<(), String> {
    if let Some(named) = setting(own, "core", "worktree")? {
        let to = own.join(&named).canonicalize();
        return if to.is_ok_and(|to| to == tree) {
            Ok(())
        } else {
            Err(format!(
                "the work tree of {} is {}",
                display(own),
                display(Path::new(&named))
            ))
        };
    }
    let is_bare = setting(own, "core", "bare")?.is_some_and(|bare| is_true(&bare));
    if is_bare || own.file_name().is_some_and(|name| name == GIT) {
        return Err(format!(
            "{} is not the repository of {}",
            display(own),
            display(tree)
        ));
    }
    if is_unused(own) || knows_files(own, tree).unwrap_or(false) {
        return Ok(());
    }
    Err(format!(
        "nothing in {} says that {} is its work tree: `git status` there renews its index, or set core.worktree in its config",
        display(own),
        display(tree)
    ))
}

fn is_true(value: &str) -> bool {
    matches!(
        &*value.to_ascii_lowercase(),
        "" | "true" | "yes" | "on" | "1"
    )
}

/// Whether a repository has neither an index nor a branch: there is nothing in it to show.
fn is_unused(own: &Path) -> bool {
    let is_empty = |name: &str| {
        let entries = own.join(name).read_dir();
        entries.is_ok_and(|mut entries| entries.next().is_none())
    };
    let is_missing = |name: &str| own.join(name).symlink_metadata().is_err();
    is_missing("index")
        && is_missing("packed-refs")
        && is_missing("reftable")
        && is_empty("refs/heads")
        && is_empty("refs/tags")
}

/// Whether the index records a file of the work tree as it is.
fn knows_files(own: &Path, tree: &Path) -> Option<bool> {
    let flags = OFlags::NONBLOCK.bits();
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.cast_signed());
    let file = options.open(own.join("index")).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes).ok()?;
    let hash = object_hash(own).ok()?;
    let (mut known, mut left) = (false, MAX_COMPARED);
    // The last entry that was read may be cut.
    let _ = Index::of(&bytes, hash)?.each(&mut |entry| {
        let path = tree.join(std::ffi::OsStr::from_bytes(entry.name()));
        if let Ok(meta) = path.symlink_metadata() {
            let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or_default();
            let (seconds, nanoseconds) = entry.modified();
            let same_time = low(meta.mtime().cast_unsigned()) == seconds
                && low(meta.mtime_nsec().cast_unsigned()) == nanoseconds;
            let same_file = low(meta.ino()) == entry.inode() || nanoseconds != 0;
            known |= meta.is_file() && same_time && same_file && low(meta.len()) == entry.size();
        }
        left -= 1;
        !known && left > 0
    });
    Some(known)
}
