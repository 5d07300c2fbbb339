//! `WatchedFiles`: the settings files, and whether they were changed and have been unchanged since. Editors empty or remove a file for a moment
//! before they write it: what haft reads in that moment is not what the user wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::plain_file::{Stamp, stamp};

/// Maximum number of looks at files that keep changing; then they are loaded as they are.
const MAX_UNSETTLED_CHECKS: u32 = 10;

/// A stamp that no file has.
const UNKNOWN_STAMP: Stamp = [-1; 5];

/// Files that are watched for changes.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    paths: Vec<PathBuf>,
    /// The stamps when they were last loaded.
    loaded: Vec<Option<Stamp>>,
    /// The stamps at the last look, if they differ.
    seen: Option<Vec<Option<Stamp>>>,
    /// Number of looks at which they had changed again.
    restless: u32,
}

impl WatchedFiles {
    /// Returns files that count as changed until they are loaded.
    pub(super) fn new(paths: BTreeSet<PathBuf>) -> Self {
        Self {
            loaded: vec![Some(UNKNOWN_STAMP); paths.len()],
            paths: paths.into_iter().collect(),
            seen: None,
            restless: 0,
        }
    }

    /// Returns whether they have changed since they were loaded, and are the same as at the last look.
    pub(super) fn have_changed(&mut self) -> bool {
        let now = self.stamps();
        if now == self.loaded {
            self.seen = None;
            self.restless = 0;
            return false;
        }
        self.are_settled(now)
    }

    /// Returns, after a load, whether the files did not change while they were read. If so, the load counts.
    pub(super) fn confirm_loaded(&mut self) -> bool {
        let now = self.stamps();
        if !self.are_settled(now) {
            return false;
        }
        self.loaded = self.seen.take().unwrap_or_default();
        self.restless = 0;
        true
    }

    /// Watches these files from now on; a new one counts as changed.
    pub(super) fn follow(&mut self, paths: BTreeSet<PathBuf>) {
        let known: BTreeMap<PathBuf, Option<Stamp>> =
            self.paths.drain(..).zip(self.loaded.drain(..)).collect();
        let stamp = |path| known.get(path).copied().unwrap_or(Some(UNKNOWN_STAMP));
        self.loaded = paths.iter().map(stamp).collect();
        self.paths = paths.into_iter().collect();
        self.seen = None;
    }

    /// Returns whether a change was seen that is not loaded yet.
    pub(super) fn are_changing(&self) -> bool {
        self.seen.is_some()
    }

    fn are_settled(&mut self, now: Vec<Option<Stamp>>) -> bool {
        if self.seen.as_ref() == Some(&now) {
            return true;
        }
        self.seen = Some(now);
        self.restless += 1;
        self.restless > MAX_UNSETTLED_CHECKS
    }

    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.paths.iter().map(|path| stamp(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::{MAX_UNSETTLED_CHECKS, WatchedFiles};

    #[test]
    fn what_is_seen_for_a_moment_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.toml");
        let aside = folder.path().join("haft.toml~");
        fs::write(&path, "[policy]\n").unwrap();
        let mut files = WatchedFiles::new(BTreeSet::from([path.clone()]));
        assert!(!files.have_changed() && files.are_changing());
        assert!(files.have_changed() && files.confirm_loaded());
        assert!(!files.have_changed() && !files.are_changing());

        // Moved away and written again, as some editors do.
        fs::rename(&path, &aside).unwrap();
        assert!(!files.have_changed() && files.are_changing());
        fs::write(&path, "").unwrap();
        assert!(!files.have_changed(), "it was emptied since");
        fs::write(&path, "[policy]\ndeny = []\n").unwrap();
        assert!(!files.have_changed(), "it was written since");
        assert!(files.have_changed());

        // Written between the look and the end of the load.
        fs::write(&path, "").unwrap();
        assert!(!files.confirm_loaded(), "it was emptied while it was read");
        assert!(files.have_changed() && files.confirm_loaded());

        // Removed for good.
        fs::remove_file(&path).unwrap();
        assert!(!files.have_changed());
        assert!(files.have_changed() && files.confirm_loaded());
        assert!(!files.have_changed() && !files.are_changing());
    }

    #[test]
    fn files_that_are_written_without_a_pause_are_loaded_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.toml");
        let mut files = WatchedFiles::new(BTreeSet::from([path.clone()]));
        let mut looks = 0;
        loop {
            fs::write(&path, "#".repeat(looks)).unwrap();
            looks += 1;
            if files.have_changed() {
                break;
            }
        }
        assert_eq!(looks, MAX_UNSETTLED_CHECKS as usize + 1);
        fs::write(&path, "").unwrap();
        assert!(files.confirm_loaded());
    }
}
