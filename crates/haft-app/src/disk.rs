//! Disk use of haft's state, measured in the background now and then: folders with many files take long to measure.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::clock;
use parking_lot::Mutex;
use serde::Serialize;

/// A measurement is kept for this many times as long as it took, within these bounds.
const CACHE_FACTOR: u32 = 200;
const CACHE_BOUNDS: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(600));
/// Maximum number of files that are counted.
const MAX_FILES: usize = 2_000_000;

/// The disk use of haft's state, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskUse {
    /// Records of runs, including the data for undo.
    pub runs: u64,
    /// Large results.
    pub artifacts: u64,
    /// The database file.
    pub database: u64,
    /// The whole state folder.
    pub total: u64,
    /// The time of the measurement: RFC 3339, UTC.
    pub measured: String,
}

/// The last measurement.
#[derive(Debug, Default)]
pub(crate) struct Gauge(Arc<Mutex<Measurement>>);

#[derive(Debug, Default)]
struct Measurement {
    last: Option<(Instant, DiskUse)>,
    /// How long the last measurement is kept.
    fresh: Duration,
    /// Whether a measurement is in progress.
    busy: bool,
}

impl Gauge {
    /// Returns the last measurement; `None` until the first one, which this call starts, is done.
    pub(crate) fn last(&self, home: &Path) -> Option<DiskUse> {
        let mut measured = self.0.lock();
        let is_fresh = measured
            .last
            .as_ref()
            .is_some_and(|(at, _)| at.elapsed() < measured.fresh);
        if !is_fresh && !measured.busy {
            measured.busy = true;
            let (home, gauge) = (home.to_owned(), Arc::clone(&self.0));
            tokio::task::spawn_blocking(move || {
                let started = Instant::now();
                let disk_use = measure(&home);
                let took = started.elapsed().saturating_mul(CACHE_FACTOR);
                let mut measured = gauge.lock();
                measured.fresh = took.clamp(CACHE_BOUNDS.0, CACHE_BOUNDS.1);
                measured.last = Some((Instant::now(), disk_use));
                measured.busy = false;
            });
        }
        measured.last.as_ref().map(|(_, taken)| taken.clone())
    }
}

/// Measures the disk use; blocks.
fn measure(home: &Path) -> DiskUse {
    let mut usage = DiskUse {
        runs: 0,
        artifacts: 0,
        database: 0,
        total: 0,
        measured: clock::rfc3339(clock::now()),
    };
    let mut files = 0_usize;
    let mut folders: Vec<(PathBuf, Option<bool>)> = vec![(home.to_owned(), None)];
    while let Some((folder, of_runs)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            files += 1;
            if files > MAX_FILES {
                return usage;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let name = entry.file_name();
            if meta.is_dir() {
                let below = of_runs.or(match name.to_str() {
                    Some("runs") => Some(true),
                    Some("artifacts") => Some(false),
                    _ => None,
                });
                folders.push((entry.path(), below));
                continue;
            }
            let bytes = meta.len();
            usage.total += bytes;
            match of_runs {
                Some(true) => usage.runs += bytes,
                Some(false) => usage.artifacts += bytes,
                None if name.to_string_lossy().starts_with("haft.db") => usage.database += bytes,
                None => {}
            }
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_counts_where_it_belongs() {
        let home = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        for (path, bytes) in [
            ("runs/r1/events.jsonl", 10),
            ("runs/r1/artifacts/x", 5),
            ("artifacts/a/b", 7),
            ("haft.db", 3),
            ("haft.db-wal", 2),
            ("token", 1),
        ] {
            let path = home.path().join(path);
            let parent = path.parent().map(fs::create_dir_all);
            assert!(parent.is_some_and(|made| made.is_ok()));
            assert!(fs::write(&path, vec![b'x'; bytes]).is_ok());
        }
        let usage = measure(home.path());
        assert_eq!(
            (usage.runs, usage.artifacts, usage.database, usage.total),
            (15, 7, 5, 28)
        );
    }
}
