//! Checks whether anyone but the user and the administrator could change a program.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{getegid, geteuid};

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Checks a canonical path and every folder above it; the error says why it is not trusted.
pub(super) fn check(real: &Path) -> Result<(), String> {
    for path in real.ancestors() {
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
    }
    Ok(())
}

/// In a sticky folder, users cannot replace what belongs to another user.
fn may_be_changed(meta: &Metadata) -> bool {
    let mode = meta.mode();
    let sticky = meta.is_dir() && mode & STICKY != 0;
    let by_others = mode & OTHERS_WRITE != 0;
    let by_group = mode & GROUP_WRITES != 0 && ![0, getegid().as_raw()].contains(&meta.gid());
    !sticky && (by_others || by_group)
}
