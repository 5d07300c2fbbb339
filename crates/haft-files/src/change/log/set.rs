//! `OpenSet`: a change set that is written down in parts, so that one of 200,000 changes takes no more memory than a small one.

use std::io;
use std::sync::atomic::Ordering;

use crate::change::log::{ChangeLog, ChangeLogLine, MAX_LINE, MAX_SYNCED, NEXT_DRAFT, too_much};
use crate::change::{ChangeEntry, EntryState, FileHash};
use haft_types::call::{CallId, RunId};
use haft_types::clock;

/// Number of changes in a line.
const MAX_CHANGES: usize = 1_000;

/// A change set that is written down.
pub(in crate::change) struct BegunSet {
    pub(super) name: String,
    /// Number of paths that it changes.
    pub(in crate::change) paths: usize,
}

/// A change set to which changes are added.
pub(in crate::change) struct OpenSet<'a> {
    log: &'a ChangeLog,
    run: &'a RunId,
    call: &'a CallId,
    set: BegunSet,
    /// The changes that are not written yet.
    changes: Vec<ChangeEntry>,
    /// Bytes of its lines.
    bytes: u64,
    /// Saved files of its changes; one more than are synced one by one stands for any number.
    saved: Vec<FileHash>,
}

impl ChangeLog {
    /// Records what a call is about to change.
    pub(in crate::change) fn begin(
        &self,
        run: &RunId,
        call: &CallId,
        changes: Vec<ChangeEntry>,
    ) -> io::Result<BegunSet> {
        let mut set = self.open_set(run, call);
        set.set.paths = changes.len();
        set.changes = changes;
        set.write()?;
        Ok(set.set)
    }

    /// Begins a set to which changes are added. Nothing is written yet.
    pub(in crate::change) fn open_set<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> OpenSet<'a> {
        let (now, number) = (clock::now(), NEXT_DRAFT.fetch_add(1, Ordering::Relaxed));
        OpenSet {
            log: self,
            run,
            call,
            set: BegunSet {
                name: format!("{now:x}-{}-{number}", std::process::id()),
                paths: 0,
            },
            changes: Vec::new(),
            bytes: 0,
            saved: Vec::new(),
        }
    }
}

impl OpenSet<'_> {
    /// Adds a change.
    ///
    /// # Errors
    /// The set is too large, or the log cannot be written.
    pub(in crate::change) fn add(&mut self, change: ChangeEntry) -> io::Result<()> {
        if let Some(EntryState::File {
            sha256: Some(sha256),
            ..
        }) = &change.before
            && self.saved.len() <= MAX_SYNCED
        {
            self.saved.push(*sha256);
        }
        self.set.paths += 1;
        self.changes.push(change);
        if self.changes.len() < MAX_CHANGES {
            return Ok(());
        }
        self.write()
    }

    /// Writes what is not written yet, and syncs the set and the files that were saved for it to disk.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(in crate::change) fn close(mut self) -> io::Result<BegunSet> {
        let written = self
            .write()
            .and_then(|()| self.log.sync(self.run, &self.saved));
        if let Err(error) = written {
            self.abandon();
            return Err(error);
        }
        Ok(self.set)
    }

    /// Records that nothing of the set is made.
    pub(in crate::change) fn abandon(&self) {
        if self.bytes > 0
            && let Err(error) = self.log.end(self.run, &self.set, false)
        {
            // The set then counts as possibly done; an undo compares it with the files.
            tracing::warn!(%error, run = %self.run, "record that a change was not made");
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let changes = std::mem::take(&mut self.changes);
        let set = self.set.name.clone();
        let line = if self.bytes == 0 {
            ChangeLogLine::Set {
                v: 1,
                set,
                call: self.call.to_string(),
                at: clock::rfc3339(clock::now()),
                changes,
            }
        } else if changes.is_empty() {
            return Ok(());
        } else {
            ChangeLogLine::More { set, changes }
        };
        self.bytes += self.log.append(self.run, &line)?;
        if self.bytes > MAX_LINE {
            return Err(too_much());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::change::net::net_changes;

    fn entry(number: usize) -> ChangeEntry {
        ChangeEntry {
            path: Path::new(&format!("out/{number}")).into(),
            from: None,
            before: None,
            after: Some(EntryState::Folder { mode: None }),
        }
    }

    #[test]
    fn set_of_very_many_changes_is_written_in_lines_and_read_as_one() {
        for (count, lines) in [(0, 1), (1, 1), (999, 1), (1_000, 1), (1_001, 2), (2_500, 3)] {
            let home = tempfile::tempdir().unwrap();
            let folder = home.path().join("runs/r1");
            fs::create_dir_all(&folder).unwrap();
            let log = ChangeLog::new(home.path());
            let (run, call) = (RunId::new("r1"), CallId::new("call-1"));
            let (other, text) = (entry(1_000_000), folder.join("changes/log.jsonl"));
            let mut set = log.open_set(&run, &call);
            for number in 0..count {
                set.add(entry(number)).unwrap();
            }
            // Another set may begin while the first is written.
            let between = log.begin(&run, &call, vec![other.clone()]).unwrap();
            let set = set.close().unwrap();
            log.end(&run, &between, true).unwrap();
            log.end(&run, &set, true).unwrap();
            assert_eq!(set.paths, count);
            let written = fs::read_to_string(&text).unwrap();
            assert_eq!(written.lines().count(), lines + 3, "{count}");
            let mut sets = log.read(&run).unwrap();
            sets.sort_by_key(|set| set.changes.first() == Some(&other));
            let (ours, theirs) = (&sets[0], &sets[1]);
            assert_eq!((ours.done, theirs.changes.len()), (Some(true), 1));
            let expect: Vec<_> = (0..count).map(entry).collect();
            assert_eq!(ours.changes, expect);
            assert_eq!(log.count_paths(&run).unwrap(), count as u64 + 1);
        }
    }

    #[test]
    fn set_that_fails_while_it_is_written_counts_as_not_made() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("runs/r1")).unwrap();
        let log = ChangeLog::new(home.path());
        let (run, call) = (RunId::new("r1"), CallId::new("call-1"));
        let mut small = log.open_set(&run, &call);
        small.add(entry(0)).unwrap();
        small.abandon();
        assert_eq!(log.read(&run).unwrap(), []);
        let mut large = log.open_set(&run, &call);
        for number in 0..1_500 {
            large.add(entry(number)).unwrap();
        }
        large.abandon();
        let sets = log.read(&run).unwrap();
        assert_eq!((sets.len(), sets[0].done), (1, Some(false)));
        assert_eq!(net_changes(&sets), []);
    }
}
