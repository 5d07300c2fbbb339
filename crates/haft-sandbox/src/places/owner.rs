//! Checks whether anyone but the user and the administrator could change a file, or which file its name leads to.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{getegid, geteuid};

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Checks a canonical path and every folder above it.
///
/// # Errors
/// Why it is not trusted, with the path that another user can change.
pub fn check_owner(real: &Path) -> Result<(), String> {
    real.ancestors().try_for_each(check_owner_of_entry)
}

/// Checks this file, folder or link alone, and not what is above it.
///
/// # Errors
/// As for [`check_owner`].
pub fn check_owner_of_entry(path: &Path) -> Result<(), String> {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return Err(format!("cannot be examined at {}", path.display()));
    };
    if ![0, geteuid().as_raw()].contains(&meta.uid()) {
        return Err(format!("belongs to another user ({})", path.display()));
    }
    if may_be_changed(&meta) {
        return Err(format!(
            "may be changed by other users ({})",
            path.display()
        ));
    }
    Ok(())
}

/// In a sticky folder, users cannot replace what belongs to another user. The mode of a link says nothing.
fn may_be_changed(meta: &Metadata) -> bool {
    let mode = meta.mode();
    let sticky = meta.is_dir() && mode & STICKY != 0;
    let by_others = mode & OTHERS_WRITE != 0;
    let by_group = mode & GROUP_WRITES != 0 && ![0, getegid().as_raw()].contains(&meta.gid());
    !sticky && !meta.is_symlink() && (by_others || by_group)
}
