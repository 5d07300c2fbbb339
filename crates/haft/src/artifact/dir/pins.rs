//! Pins: the owners that have a live session. A process's pins end with the process, however it ends.
//!
//! Each process has a folder in `pins/` with an empty file for each owner, and holds a lock in it: the kernel releases
//! that lock when the process exits, and then its pins no longer count.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{disk, owners};
use crate::clock;
use crate::file_lock::FileLock;

/// The lock in a process's folder.
const LOCK_FILE: &str = "lock";

/// The pins of this process.
#[derive(Debug, Default)]
pub(super) struct ArtifactPins {
    /// This process's folder and the lock in it, once there is a pin.
    own: Option<(PathBuf, FileLock)>,
    /// Number of sessions that hold each owner.
    held: HashMap<String, usize>,
}

impl ArtifactPins {
    /// Adds a session that holds this owner. Requires the store's lock.
    pub(super) fn pin(&mut self, root: &Path, name: &str) -> io::Result<()> {
        let held = self.held.entry(name.to_owned()).or_default();
        *held += 1;
        if *held > 1 {
            return Ok(());
        }
        let own = match &self.own {
            Some((own, _)) => own,
            None => &self.own.insert(join(root)?).0,
        };
        private_file(&own.join(name)).map(drop)
    }

    /// Removes a session; returns whether it was the last. Requires the store's lock.
    pub(super) fn unpin(&mut self, name: &str) -> io::Result<bool> {
        let Some(held) = self.held.get_mut(name) else {
            return Ok(false);
        };
        *held -= 1;
        if *held > 0 {
            return Ok(false);
        }
        self.held.remove(name);
        if let Some((own, _)) = &self.own {
            super::remove(&own.join(name))?;
        }
        Ok(true)
    }
}

/// Creates a folder for the pins of this process.
fn join(root: &Path) -> io::Result<(PathBuf, FileLock)> {
    let own = root
        .join("pins")
        .join(format!("{}-{}", std::process::id(), clock::now()));
    disk::make_dir(&own)?;
    let lock = FileLock::try_exclusive(private_file(&own.join(LOCK_FILE))?)?;
    let lock = lock.ok_or_else(|| io::Error::other("the lock of our own pins is taken"))?;
    Ok((own, lock))
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)
}

/// Returns all owners with a live pin, and releases the pins of exited processes as of `now`. Requires the store's lock.
pub(super) fn live(root: &Path, now: i64) -> io::Result<HashSet<String>> {
    let mut pinned = HashSet::new();
    for process in disk::folders(&root.join("pins"))? {
        let lock = FileLock::try_exclusive(private_file(&process.join(LOCK_FILE))?)?;
        for pin in disk::entries(&process)? {
            let name = pin
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name == LOCK_FILE {
                continue;
            }
            if lock.is_none() {
                pinned.insert(name);
            } else if let Some(dir) = owners::pinned_dir(root, &name) {
                owners::release(&dir, now)?;
            }
        }
        if lock.is_some() {
            fs::remove_dir_all(&process)?;
        }
    }
    Ok(pinned)
}
