//! The finished runs that have no leaf yet: an empty file for each, made before its record is closed, so that no kill loses one.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::audit::runs::run_dir;

use crate::plain_file;
use crate::record_log::file;

/// The folder of these files in that of the log.
const FOLDER: &str = "pending";

/// How long the record of a run may come after its note.
const OLD: Duration = Duration::from_secs(60);

/// The files.
#[derive(Debug, Clone)]
pub(super) struct PendingRuns(PathBuf);

impl PendingRuns {
    /// Returns those of a log's folder.
    pub(super) fn in_log(log: &Path) -> Self {
        Self(log.join(FOLDER))
    }

    /// Notes a run, which is about to be closed or is closed.
    ///
    /// The record is synced after this. File systems with a journal write the older entry with it, so a power cut does not lose it alone.
    pub(super) fn note(&self, run: &str) -> io::Result<()> {
        let path = self.0.join(run);
        let make = || file::open(&path, OpenOptions::new().append(true).create(true));
        match make() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                plain_file::private_folder(&self.0)?;
                make().map(drop)
            }
            made => made.map(drop),
        }
    }

    /// Notes every run of the state folder: those finished before there was a log get their leaves, too.
    pub(super) fn note_all(&self, home: &Path) -> io::Result<()> {
        plain_file::private_folder(&self.0)?;
        let runs = match fs::read_dir(home.join("runs")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            runs => runs?,
        };
        for run in runs {
            let name = run?.file_name();
            let name = name.to_str().filter(|name| run_dir(home, name).is_ok());
            name.map_or(Ok(()), |name| self.note(name))?;
        }
        Ok(())
    }

    /// Returns whether any run is noted.
    pub(super) fn has_any(&self) -> bool {
        self.list().is_ok_and(|runs| !runs.is_empty())
    }

    /// Returns the noted runs.
    pub(super) fn list(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| file::named(&self.0, &error))?,
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry?;
            // What is no file is no note: it could not be removed, and would have the log grow.
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                runs.extend(entry.file_name().to_str().map(str::to_owned));
            }
        }
        // Ids begin with the time.
        runs.sort_unstable();
        Ok(runs)
    }

    /// Removes the note of a run without a record, unless it is new: the record of a short run may come after its note.
    pub(super) fn forget_if_old(&self, run: &str) {
        let made = fs::symlink_metadata(self.0.join(run)).and_then(|meta| meta.modified());
        if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > OLD)) {
            self.forget(run);
        }
    }

    /// Removes the note of a run that has its leaf.
    pub(super) fn forget(&self, run: &str) {
        // One that stays gives the run a second leaf, which says the same.
        let _ = fs::remove_file(self.0.join(run));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_no_note() {
        let folder = tempfile::tempdir().unwrap();
        let pending = PendingRuns::in_log(&folder.path().canonicalize().unwrap());
        assert!(!pending.has_any());
        fs::create_dir_all(folder.path().join("pending/run-1")).unwrap();
        assert!(!pending.has_any());
        pending.note("run-2").unwrap();
        assert_eq!(pending.list().unwrap(), ["run-2"]);
    }
}
