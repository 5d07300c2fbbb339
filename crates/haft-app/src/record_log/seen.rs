//! The last checkpoint of each state folder, kept outside of it: a log that was cut, replaced or removed no longer fits it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haft::text::hex;
use sha2::{Digest as _, Sha256};

use crate::plain_file;
use crate::record_log::checkpoint::MAX_BYTES;
use crate::record_log::file;

/// Maximum number of state folders whose checkpoints are kept; beyond it the one that was not used for longest goes.
const MOST: usize = 1024;

/// The file with the last checkpoint of a state folder.
#[derive(Debug, Clone)]
pub(super) struct SeenCheckpoint(PathBuf);

impl SeenCheckpoint {
    /// Returns the file for the state folder `home` in this folder.
    pub(super) fn in_folder(folder: &Path, home: &Path) -> Self {
        let digest = Sha256::digest(home.as_os_str().as_encoded_bytes());
        Self(folder.join(hex(digest.get(..16).unwrap_or_default())))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the checkpoint, if there is one.
    pub(super) fn read(&self) -> io::Result<Option<String>> {
        file::read(&self.0, MAX_BYTES)
    }

    /// Replaces the checkpoint.
    pub(super) fn write(&self, note: &str) -> io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("/"));
        if !self.0.exists() {
            plain_file::private_folder(folder)?;
            make_room(folder)?;
        }
        file::replace(&self.0, note)
    }
}

impl SeenCheckpoint {
    /// Removes what a killed process left beside the file; the caller must hold the log's lock.
    pub(super) fn sweep(&self) {
        if let (Some(folder), Some(name)) = (self.0.parent(), self.0.file_name()) {
            plain_file::sweep_drafts(folder, &name.to_string_lossy());
        }
    }
}

fn make_room(folder: &Path) -> io::Result<()> {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort_unstable();
    for (_, oldest) in files.iter().take((files.len() + 1).saturating_sub(MOST)) {
        fs::remove_file(oldest)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_old_state_folders_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MOST + 3 {
            let home = PathBuf::from(format!("/state/{number}"));
            let seen = SeenCheckpoint::in_folder(folder.path(), &home);
            // The time of a file may be coarse, so the first ones are made older.
            fs::write(seen.path(), "x").unwrap();
            if number < 10 {
                let long_ago =
                    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
                let file = fs::File::options().write(true).open(seen.path()).unwrap();
                file.set_modified(long_ago).unwrap();
            }
        }
        let last = SeenCheckpoint::in_folder(folder.path(), Path::new("/state/last"));
        last.write("note").unwrap();
        assert_eq!(last.read().unwrap().as_deref(), Some("note"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST);
        let first = SeenCheckpoint::in_folder(folder.path(), Path::new("/state/0"));
        assert_eq!(first.read().unwrap(), None);
    }
}
