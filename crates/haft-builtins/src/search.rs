//! What list, glob and grep share: a walk below a folder of the workspace, and the pattern matching of ripgrep's crates.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::workspace::{EntryKind, Workspace};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::search::walk::{FileWalk, WalkEntry};

pub mod glob;
pub mod grep;
pub mod list;
mod pattern;
mod source;
pub mod tools;
mod walk;

/// Number of threads per search: more gain nothing on small trees and would starve other calls.
pub(crate) const THREADS: usize = 2;
/// Maximum number of paths collected for a listing before it is sorted and cut; a larger tree is cut where the walk is by then.
pub(crate) const MAX_GATHERED: usize = 50_000;

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundEntry {
    /// Its path below the workspace root.
    pub path: String,
    /// `file`, `directory`, `link`, `pipe`, `socket` or `device`.
    pub kind: &'static str,
    /// The size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What a listing gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntriesData {
    /// What was found, sorted by path.
    pub entries: Vec<FoundEntry>,
    /// Whether there are more entries.
    pub truncated: bool,
}

/// Stops a search when it has enough results or its call has ended.
#[derive(Debug, Default)]
pub(crate) struct StopFlag(AtomicBool);

impl StopFlag {
    pub(crate) fn pull(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_pulled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sorts by path, byte by byte like a list of strings.
pub(crate) fn sort(entries: &mut [FoundEntry]) {
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
}

/// Collects the entries of a walk that `wanted` accepts, in no particular order, and returns whether there are more. After the first
/// `limit` files of each thread it skips the sizes, because most of those entries will be cut.
pub(crate) fn gather(
    walk: &FileWalk<'_>,
    limit: usize,
    stop: &(dyn Fn() -> bool + Sync),
    wanted: &(dyn Fn(&WalkEntry<'_>) -> bool + Sync),
) -> (Vec<FoundEntry>, bool) {
    let all = Mutex::new(Vec::new());
    let more = StopFlag::default();
    walk.run(|| {
        let mut mine = EntryBatch {
            all: &all,
            entries: Vec::new(),
            seen: 0,
        };
        let more = &more;
        move |found: &WalkEntry<'_>| {
            if wanted(found) {
                mine.take(found, limit);
            }
            if mine.entries.len() == 256 && mine.flush_entries() >= MAX_GATHERED {
                more.pull();
            }
            if more.is_pulled() || stop() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    });
    (all.into_inner(), more.is_pulled())
}

/// The entries found by one thread, handed over in batches so that the threads do not wait for each other.
struct EntryBatch<'a> {
    all: &'a Mutex<Vec<FoundEntry>>,
    entries: Vec<FoundEntry>,
    seen: usize,
}

impl EntryBatch<'_> {
    fn take(&mut self, found: &WalkEntry<'_>, limit: usize) {
        self.seen += 1;
        let mut kind = found.kind;
        let mut bytes = None;
        if kind == EntryKind::File && self.seen <= limit {
            let Some(now) = found.folder.look(found.name) else {
                return;
            };
            kind = now.0;
            bytes = (kind == EntryKind::File).then_some(now.1);
        }
        self.entries.push(FoundEntry {
            path: found.path.to_string_lossy().into_owned(),
            kind: kind.as_str(),
            bytes,
        });
    }

    fn flush_entries(&mut self) -> usize {
        let mut all = self.all.lock();
        all.append(&mut self.entries);
        all.len()
    }
}

impl Drop for EntryBatch<'_> {
    fn drop(&mut self) {
        self.flush_entries();
    }
}

/// Looks up the sizes that `gather` skipped.
pub(crate) fn complete(workspace: &Workspace, entries: &mut [FoundEntry]) {
    for entry in entries {
        if entry.kind == EntryKind::File.as_str() && entry.bytes.is_none() {
            let now = workspace.look(Path::new(&entry.path));
            entry.bytes = now.map(|(_, bytes)| bytes);
        }
    }
}
