//! `SqliteHeartbeat`: what this process attends and runs, and when its lease is due for renewal.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use haft::clock;
use rusqlite::{Connection, params};

use crate::lease::Lease;
use crate::number::nanoseconds;

/// Number of beats between searches for forgotten requests.
const BEATS_PER_SEARCH: u32 = 40;

const RENEW: &str = "INSERT INTO approval_processes (id, alive_until) VALUES (?, ?) \
    ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until";
/// A lease that ends later than any lease can was written before the clock was set back; a live process renews it soon.
const ALIVE: &str = "SELECT id FROM approval_processes WHERE alive_until > ? AND alive_until <= ?";
const STILL: &str = "SELECT (waiter = ?2 AND status IN ('pending', 'approved', 'answered', 'running')) \
    OR (claimed_by = ?2 AND status = 'running') FROM approvals WHERE id = ?1";
const LEAVE: &str = "DELETE FROM approval_processes WHERE id = ?";

/// This process's lease as other processes see it.
#[derive(Debug)]
pub(super) struct SqliteHeartbeat {
    /// This process's name: random, new with each inbox.
    pub(super) me: String,
    pub(super) lease: Lease,
    held: HashSet<String>,
    last: Option<Instant>,
    /// When a renewal last failed.
    failed: Option<Instant>,
    beats: u32,
}

impl SqliteHeartbeat {
    pub(super) fn new(lease: Lease) -> Self {
        Self {
            me: String::new(),
            lease,
            held: HashSet::new(),
            last: None,
            failed: None,
            beats: 0,
        }
    }

    /// Notes that this process attends or runs a request.
    pub(super) fn hold(&mut self, id: &str) {
        self.held.insert(id.to_owned());
    }

    /// Notes that it is done with the request.
    pub(super) fn release(&mut self, id: &str) {
        self.held.remove(id);
    }

    /// Returns the number of requests that it attends or runs.
    pub(super) fn holds(&self) -> usize {
        self.held.len()
    }

    /// Returns the time until the next renewal; `None` while nothing is held.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.held.is_empty() {
            return None;
        }
        let beat = self.lease.beat;
        let since = self.last.map_or(beat, |last| last.elapsed());
        Some(beat.saturating_sub(since))
    }

    /// Returns the time until the thread tries the next renewal, at least a beat after one that failed; `None` while nothing is held.
    pub(super) fn next_try(&self) -> Option<Duration> {
        let since = self.failed.map_or(Duration::MAX, |at| at.elapsed());
        Some(self.due()?.max(self.lease.beat.saturating_sub(since)))
    }

    /// Notes that a renewal failed. A file that is gone would otherwise keep the thread busy.
    pub(super) fn note_failure(&mut self) {
        self.failed = Some(Instant::now());
    }

    /// Notes that the last renewal is void: the file was replaced, or the transaction failed.
    pub(super) fn invalidate_renewal(&mut self) {
        self.last = None;
    }

    /// Renews the lease if due.
    pub(super) fn renew(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.due().is_none_or(|due| !due.is_zero()) {
            return Ok(());
        }
        let until = self.lease.until(nanoseconds(clock::now()));
        connection
            .prepare_cached(RENEW)?
            .execute(params![self.me, until])?;
        self.last = Some(Instant::now());
        self.beats = self.beats.wrapping_add(1);
        if self.beats.is_multiple_of(BEATS_PER_SEARCH) {
            self.forget(connection)?;
        }
        Ok(())
    }

    /// Releases requests that ended without notice to this process.
    fn forget(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut still = connection.prepare_cached(STILL)?;
        let mut held = HashSet::new();
        for id in self.held.drain() {
            let mut rows = still.query(params![id, self.me])?;
            let holds = rows.next()?.map(|row| row.get::<_, Option<bool>>(0));
            if holds.transpose()?.flatten() == Some(true) {
                held.insert(id);
            }
        }
        self.held = held;
        Ok(())
    }

    /// Removes this process.
    pub(super) fn leave(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute(LEAVE, [&self.me]).map(drop)
    }
}

/// Returns the processes that are alive now.
pub(super) fn alive(connection: &Connection, lease: Lease) -> rusqlite::Result<HashSet<String>> {
    let now = nanoseconds(clock::now());
    let mut query = connection.prepare_cached(ALIVE)?;
    let rows = query.query_map(params![now, lease.until(now)], |row| row.get(0))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_try_when_a_renewal_failed_comes_a_beat_later() {
        let beat = Duration::from_secs(3600);
        let lease = Lease {
            beat,
            ..Lease::default()
        };
        let mut held = SqliteHeartbeat::new(lease);
        assert_eq!(held.next_try(), None);
        held.hold("ap-1");
        assert_eq!(held.next_try(), Some(Duration::ZERO));
        held.note_failure();
        held.invalidate_renewal();
        assert!(held.next_try().is_some_and(|next| next > beat / 2));
    }
}
