//! Creates, locks and removes the folders for commands' changes in haft's state folder.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use haft::file_lock::FileLock;

/// The overlay's upper folder, which holds the changes.
pub(super) const UPPER: &str = "upper";
/// The overlay's work folder.
pub(super) const WORK: &str = "work";

/// The upper folder of the overlay over a repository outside of the workspace, until its changes join the others.
pub(super) const GIT_UPPER: &str = "git";
/// The work folder of that overlay.
pub(super) const GIT_WORK: &str = "git-work";
/// The file that marks that haft has begun to apply the changes.
pub(super) const STARTED_MARK: &str = "begun";

/// Creates a folder that only its owner can enter, with its parents.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Locks a folder for this process.
pub(super) fn lock(folder: &Path) -> io::Result<FileLock> {
    FileLock::try_exclusive(File::open(folder)?)?
        .ok_or_else(|| io::Error::other("another process is deciding it"))
}

/// Returns true if the path is a folder, not a link to one.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Removes a view's folder.
pub(super) fn remove(folder: &Path) {
    for work in [WORK, GIT_WORK] {
        let work = folder.join(work);
        if is_folder(&work) && is_folder(&work.join("work")) {
            // The overlay removes all permissions from its own folder.
            let _ = fs::set_permissions(work.join("work"), fs::Permissions::from_mode(0o700));
        }
    }
    let removed = fs::remove_dir_all(folder).or_else(|_| {
        // A command may have removed its owner's permissions from folders.
        open_folders(folder);
        fs::remove_dir_all(folder)
    });
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.display(), "remove the view of a command");
    }
}

/// Restores the owner's access to every folder that lacks it.
fn open_folders(folder: &Path) {
    let mut left = vec![folder.to_path_buf()];
    while let Some(folder) = left.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let path = entry.path();
                let closed = entry.metadata().map(|meta| meta.permissions());
                if let Ok(mut mode) = closed
                    && mode.mode() & 0o700 != 0o700
                {
                    mode.set_mode(0o700);
                    let _ = fs::set_permissions(&path, mode);
                }
                left.push(path);
            }
        }
    }
}
