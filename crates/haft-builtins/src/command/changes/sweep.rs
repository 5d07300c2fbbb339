//! Removes views left by killed processes, and views and caches that are no longer needed.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haft::approval;
use haft::change::ChangeLog;

use crate::command::changes::folder::{STARTED_MARK, is_folder, lock, remove};
use crate::command::changes::note::NOTE;
use crate::command::changes::{CommandChanges, additions};

/// Age at which an unlocked view without a pending decision counts as left by a killed process.
const ABANDONED_AGE: Duration = Duration::from_hours(1);
/// Age at which a run's unused cache additions are removed.
const UNUSED_CACHE_AGE: Duration = Duration::from_hours(24);
/// The file in haft's state folder whose modification time is that of the last sweep.
const SWEEP_MARK: &str = "views-swept";

impl CommandChanges {
    /// Calls [`sweep`](Self::sweep), unless the last one, by any process, was less than `every` ago.
    ///
    /// # Errors
    /// If the runs cannot be listed, or the time of the sweep cannot be recorded.
    pub fn sweep_if_due(&self, now: SystemTime, every: Duration) -> io::Result<Option<u64>> {
        let mark = self.views.options.log.home().join(SWEEP_MARK);
        // A time in the future, from a clock that was set back, does not delay the sweep.
        let passed = |last: SystemTime| now.duration_since(last).ok();
        let last = fs::metadata(&mark).and_then(|meta| meta.modified());
        if last
            .ok()
            .and_then(passed)
            .is_some_and(|passed| passed < every)
        {
            return Ok(None);
        }
        let log = &self.views.options.log;
        if !(log.all_views()?.is_empty() && log.all_caches()?.is_empty()) {
            File::create(&mark)?.set_modified(now)?;
        }
        self.sweep(now).map(Some)
    }

    /// Removes what is no longer used: views that a killed process left before it began to apply them, views whose request has
    /// expired, and cache additions that no command used for a day. `now` is the wall-clock time. Returns the number of removed
    /// folders.
    ///
    /// # Errors
    /// If the runs cannot be listed.
    pub fn sweep(&self, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        let log = &self.views.options.log;
        for views in log.all_views()? {
            for view in fs::read_dir(views)?.flatten() {
                removed += u64::from(sweep_view(&view.path(), now));
            }
        }
        for caches in log.all_caches()? {
            removed +=
                u64::from(is_older(&caches, UNUSED_CACHE_AGE, now) && additions::forget(&caches));
        }
        Ok(removed)
    }

    /// Removes what the commands of a group of runs added to caches, unless one still runs: then the sweep removes it.
    pub fn forget_additions(log: &ChangeLog, group: &str) {
        if let Ok(folder) = log.group_caches_folder(group) {
            additions::forget(&folder);
        }
    }
}

fn sweep_view(folder: &Path, now: SystemTime) -> bool {
    // Half-applied changes may exist nowhere else.
    if !is_folder(folder) || folder.join(STARTED_MARK).exists() {
        return false;
    }
    let note = folder.join(NOTE);
    let over = if note.exists() {
        // A decision would come too late.
        is_older(&note, approval::STANDS + ABANDONED_AGE, now)
    } else {
        is_older(folder, ABANDONED_AGE, now)
    };
    over && remove_unlocked(folder)
}

fn is_older(path: &Path, age: Duration, now: SystemTime) -> bool {
    let modified = fs::metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|modified| {
        now.duration_since(modified)
            .is_ok_and(|passed| passed > age)
    })
}

fn remove_unlocked(folder: &Path) -> bool {
    let Ok(_lock) = lock(folder) else {
        return false;
    };
    remove(folder);
    true
}
