//! `Beat`: what this process attends and runs, and when it has to say again that it is alive.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use haft::clock;
use rusqlite::{Connection, params};

use crate::lease::Lease;
use crate::number::nanoseconds;

/// How many beats pass before what was forgotten is looked for.
const FORGOTTEN: u32 = 40;

const RENEW: &str = "INSERT INTO approval_processes (id, alive_until) VALUES (?, ?) \
    ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until";
/// A lease that ends later than leases do was written before the clock was set back: whoever is alive renews it soon.
const ALIVE: &str = "SELECT id FROM approval_processes WHERE alive_until > ? AND alive_until <= ?";
const STILL: &str = "SELECT (waiter = ?2 AND status IN ('pending', 'approved', 'answered', 'running')) \
    OR (claimed_by = ?2 AND status = 'running') FROM approvals WHERE id = ?1";
const LEAVE: &str = "DELETE FROM approval_processes WHERE id = ?";

/// The life of this process as others see it.
#[derive(Debug)]
pub(super) struct Beat {
    /// The name of this process: random, new with each inbox.
    pub(super) me: String,
    pub(super) lease: Lease,
    held: HashSet<String>,
    last: Option<Instant>,
    beats: u32,
}

impl Beat {
    pub(super) fn new(lease: Lease) -> Self {
        Self {
            me: String::new(),
            lease,
            held: HashSet::new(),
            last: None,
            beats: 0,
        }
    }

    /// Attends or runs this request.
    pub(super) fn hold(&mut self, id: &str) {
        self.held.insert(id.to_owned());
    }

    /// Has done with it.
    pub(super) fn release(&mut self, id: &str) {
        self.held.remove(id);
    }

    /// How many requests it attends or runs.
    pub(super) fn holds(&self) -> usize {
        self.held.len()
    }

    /// How long until it has to be said again; for ever while nothing is held.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.held.is_empty() {
            return None;
        }
        let beat = self.lease.beat;
        let since = self.last.map_or(beat, |last| last.elapsed());
        Some(beat.saturating_sub(since))
    }

    /// What was said is not there: the file is another one, or the transaction failed.
    pub(super) fn unsaid(&mut self) {
        self.last = None;
    }

    /// Says it where it is due.
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
        if self.beats.is_multiple_of(FORGOTTEN) {
            self.forget(connection)?;
        }
        Ok(())
    }

    /// Lets go of what ended without a word to this process.
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

    /// This process goes.
    pub(super) fn leave(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute(LEAVE, [&self.me]).map(drop)
    }
}

/// The processes that are alive now.
pub(super) fn alive(connection: &Connection, lease: Lease) -> rusqlite::Result<HashSet<String>> {
    let now = nanoseconds(clock::now());
    let mut query = connection.prepare_cached(ALIVE)?;
    let rows = query.query_map(params![now, lease.until(now)], |row| row.get(0))?;
    rows.collect()
}
