//! What the commands of a run, or of an agent's session, added to caches: locked for one command at a time, and bounded.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use haft::file_lock::FileLock;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};

use crate::command::changes::folder::{is_folder, lock, make_folder, remove};

/// Maximum size of the additions, in bytes; larger ones are removed before the next command starts.
const MAX_BYTES: u64 = 16 << 30;
/// Maximum number of their files and folders.
const MAX_ENTRIES: u64 = 1_000_000;
/// The file whose modification time is that of the last measurement.
const MEASURED: &str = "measured";
/// How often they are measured: a million of them take about a second.
const MEASURED_EVERY: Duration = Duration::from_hours(1);

const NOW: Timestamps = Timestamps {
    last_access: NOW_TIME,
    last_modification: NOW_TIME,
};
const NOW_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW,
};

/// Locks the folder of shared additions for one command, and makes it if there is none. `None` if another command uses it.
pub(super) fn take(folder: &Path) -> io::Result<Option<FileLock>> {
    make_folder(folder)?;
    let Ok(mut lock) = lock(folder) else {
        return Ok(None);
    };
    if is_too_large(folder) {
        tracing::warn!(folder = %folder.display(), "what commands added to caches is too large, and removed");
        remove(folder);
        make_folder(folder)?;
        let Ok(again) = self::lock(folder) else {
            return Ok(None);
        };
        lock = again;
    }
    // The sweep checks this time.
    futimens(&*lock, &NOW)?;
    Ok(Some(lock))
}

/// Measures the additions if that is due.
fn is_too_large(folder: &Path) -> bool {
    let mark = folder.join(MEASURED);
    let age = fs::metadata(&mark)
        .and_then(|meta| meta.modified())
        .map(|measured| measured.elapsed().unwrap_or_default());
    match age {
        Ok(age) if age < MEASURED_EVERY => return false,
        // A new folder is empty.
        Err(_) if fs::read_dir(folder).is_ok_and(|mut all| all.next().is_none()) => {
            let _ = File::create(&mark);
            return false;
        }
        _ => {}
    }
    let _ = File::create(&mark).and_then(|mark| mark.set_modified(haft::clock::wall()));
    exceeds(folder, MAX_BYTES, MAX_ENTRIES)
}

/// Returns whether the files below a folder exceed one of these bounds. Follows no links.
fn exceeds(folder: &Path, max_bytes: u64, max_entries: u64) -> bool {
    let (mut bytes, mut entries) = (0_u64, 0_u64);
    let mut left = vec![folder.to_path_buf()];
    while let Some(folder) = left.pop() {
        // One that a command closed counts as what it is: an entry.
        let Ok(all) = fs::read_dir(folder) else {
            continue;
        };
        for entry in all.flatten() {
            entries += 1;
            let Ok(meta) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(meta.len());
            if bytes > max_bytes || entries > max_entries {
                return true;
            }
            if meta.is_dir() {
                left.push(entry.path());
            }
        }
    }
    false
}

/// Removes the folder of shared additions, unless a command uses it.
pub(super) fn forget(folder: &Path) -> bool {
    if !is_folder(folder) {
        return false;
    }
    let Ok(_lock) = lock(folder) else {
        return false;
    };
    remove(folder);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_beyond_a_bound_are_found() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("c"), vec![0; 20_000]).unwrap();
        std::os::unix::fs::symlink("/", below.join("d")).unwrap();
        for (bytes, entries, expect) in [
            (MAX_BYTES, MAX_ENTRIES, false),
            (19_999, MAX_ENTRIES, true),
            (MAX_BYTES, 3, true),
            (MAX_BYTES, 4, false),
        ] {
            assert_eq!(exceeds(home.path(), bytes, entries), expect);
        }
    }

    #[test]
    fn additions_that_a_command_uses_are_taken_and_forgotten_by_no_other() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("additions");
        let lock = take(&folder).unwrap();
        assert!(lock.is_some());
        assert!(take(&folder).unwrap().is_none() && !forget(&folder));
        drop(lock);
        assert!(forget(&folder) && !folder.exists() && !forget(&folder));
    }
}
