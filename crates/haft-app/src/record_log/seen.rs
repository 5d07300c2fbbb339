//! The last checkpoint of each state folder, kept outside of it: a log that was cut, replaced or removed no longer fits it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haft::text::hex;
use sha2::{Digest as _, Sha256};

use crate::plain_file;
use crate::record_log::checkpoint::{MAX_BYTES, unproved};
use crate::record_log::file;

/// Maximum number of state folders whose checkpoints are kept; beyond it the one that was not used for longest goes.
const MOST: usize = 1024;

/// Where the last checkpoint of a state folder is kept.
#[derive(Debug, Clone)]
pub(super) struct SeenCheckpoints {
    folder: PathBuf,
    /// The file for the folder's real path.
    real: PathBuf,
    /// The file for its path as it is named, if a link leads from there: what lay there before has not left by that.
    named: Option<PathBuf>,
}

/// A checkpoint that was kept.
#[derive(Debug, Clone)]
pub(super) struct SeenCheckpoint {
    /// The file that it is in.
    pub(super) path: PathBuf,
    /// The checkpoint, which nobody has verified yet.
    pub(super) note: String,
}

impl SeenCheckpoint {
    /// Reads one, if there is any.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let path = path.to_owned();
        Ok(file::read(&path, MAX_BYTES)?.map(|note| Self { path, note }))
    }
}

impl SeenCheckpoints {
    /// Returns the files in this folder for the state folder that is named `home` and really is `real`.
    pub(super) fn in_folder(folder: PathBuf, home: &Path, real: &Path) -> Self {
        let file = |home: &Path| {
            let digest = Sha256::digest(home.as_os_str().as_encoded_bytes());
            folder.join(hex(digest.get(..16).unwrap_or_default()))
        };
        Self {
            real: file(real),
            named: (home != real).then(|| file(home)),
            folder,
        }
    }

    /// Returns the file for a log that has none yet.
    pub(super) fn path(&self) -> &Path {
        &self.real
    }

    /// Returns the checkpoints of the logs that were where this one is.
    pub(super) fn read(&self) -> io::Result<Vec<SeenCheckpoint>> {
        let files = [Some(&self.real), self.named.as_ref()];
        let read = files
            .into_iter()
            .flatten()
            .map(|path| SeenCheckpoint::read(path));
        read.filter_map(Result::transpose).collect()
    }

    /// Returns the checkpoint of most leaves that says it is of this log, wherever that was.
    pub(super) fn of_log(&self, origin: &str) -> io::Result<Option<SeenCheckpoint>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut most: Option<(u64, SeenCheckpoint)> = None;
        for entry in entries {
            let Some(seen) = SeenCheckpoint::read(&entry?.path())? else {
                continue;
            };
            let head = unproved(&seen.note).filter(|head| head.origin == origin);
            let size = head.map(|head| head.size);
            if size > most.as_ref().map(|(size, _)| *size) {
                most = size.map(|size| (size, seen));
            }
        }
        Ok(most.map(|(_, seen)| seen))
    }

    /// Replaces the checkpoint in one of the files.
    pub(super) fn write(&self, path: &Path, note: &str) -> io::Result<()> {
        if !path.exists() {
            plain_file::private_folder(&self.folder)?;
            make_room(&self.folder)?;
        }
        file::replace(path, note)
    }

    /// Removes what a killed process left beside the files; the caller must hold the log's lock.
    pub(super) fn sweep(&self) {
        for path in [Some(&self.real), self.named.as_ref()]
            .into_iter()
            .flatten()
        {
            if let Some(name) = path.file_name() {
                plain_file::sweep_drafts(&self.folder, &name.to_string_lossy());
            }
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

    fn of(folder: &Path, home: &str) -> SeenCheckpoints {
        SeenCheckpoints::in_folder(folder.to_owned(), Path::new(home), Path::new(home))
    }

    #[test]
    fn checkpoints_of_old_state_folders_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MOST + 3 {
            let seen = of(folder.path(), &format!("/state/{number}"));
            // The time of a file may be coarse, so the first ones are made older.
            fs::write(seen.path(), "x").unwrap();
            if number < 10 {
                let long_ago =
                    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
                let file = fs::File::options().write(true).open(seen.path()).unwrap();
                file.set_modified(long_ago).unwrap();
            }
        }
        let last = of(folder.path(), "/state/last");
        last.write(last.path(), "note").unwrap();
        assert_eq!(last.read().unwrap().len(), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST);
        assert!(of(folder.path(), "/state/0").read().unwrap().is_empty());
    }
}
