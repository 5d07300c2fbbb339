//! Removes what killed processes left of views, and views and caches that nothing asks for any more.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use haft::approval;

use crate::command::changes::CommandChanges;
use crate::command::changes::folder::{BEGUN, is_folder, lock, remove};
use crate::command::changes::note::NOTE;

/// From when on a view that nobody has locked and that waits for no decision was left by a killed process.
const LEFT: Duration = Duration::from_hours(1);
/// The same for what a run added to caches.
const UNUSED: Duration = Duration::from_hours(24);
/// The file of haft's state folder whose time is that of the last sweep.
const MARK: &str = "views-swept";

impl CommandChanges {
    /// [`sweep`](Self::sweep), unless the last one, of whatever process, is younger than `every`.
    ///
    /// # Errors
    /// The runs cannot be listed, or the time of the sweep cannot be noted.
    pub fn sweep_if_due(&self, now: SystemTime, every: Duration) -> io::Result<Option<u64>> {
        let mark = self.views.options.log.home().join(MARK);
        // A time in the future comes of a clock that was set back: it does not put sweeping off.
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

    /// Removes what nobody uses any more: views that a killed process left before
    /// it began to apply them, those whose request has expired, and what runs
    /// added to caches that no command used for a day. `now` is the time of the wall clock. Says how many folders went.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub fn sweep(&self, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        let log = &self.views.options.log;
        for views in log.all_views()? {
            for view in fs::read_dir(views)?.flatten() {
                removed += u64::from(sweep_view(&view.path(), now));
            }
        }
        for caches in log.all_caches()? {
            removed += u64::from(is_older(&caches, UNUSED, now) && remove_unlocked(&caches));
        }
        Ok(removed)
    }
}

fn sweep_view(folder: &Path, now: SystemTime) -> bool {
    // What was half applied may be nowhere else.
    if !is_folder(folder) || folder.join(BEGUN).exists() {
        return false;
    }
    let note = folder.join(NOTE);
    let over = if note.exists() {
        // Its decision, if there was one, comes too late.
        is_older(&note, approval::STANDS + LEFT, now)
    } else {
        is_older(folder, LEFT, now)
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
