//! Journals in `SQLite`.

use std::path::PathBuf;

use haft::clock;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::{JournalBackend, JournalJobError, JournalJobResult};
use crate::lease::Lease;
use crate::number::nanoseconds;
use crate::sqlite::file::{CommitDurability, DbFile};

/// Also replaces a lease from before the clock was set back: a live holder renews it soon.
const HOLD: &str = "INSERT INTO journal_runs (run, holder, alive_until) VALUES (?1, ?2, ?4) \
    ON CONFLICT (run) DO UPDATE SET holder = ?2, alive_until = ?4 \
    WHERE holder = ?2 OR alive_until <= ?3 OR alive_until > ?4";
const OLD: &str = "SELECT EXISTS (SELECT 1 FROM journal_lines WHERE run = ?)";
const ADD: &str = "INSERT INTO journal_lines (run, line) VALUES (?, ?)";
const RENEW: &str = "UPDATE journal_runs SET alive_until = ?3 WHERE run = ?1 AND holder = ?2";
const LEAVE: &str = "DELETE FROM journal_runs WHERE run = ? AND holder = ?";
const WIPE: &str = "DELETE FROM journal_lines WHERE run = ?";
const BUSY: &str =
    "SELECT 1 FROM journal_runs WHERE run = ? AND alive_until > ? AND alive_until <= ?";
const LINES: &str = "SELECT line FROM journal_lines WHERE run = ? ORDER BY row";

/// The journal tables in a file.
pub(super) struct SqliteJournal {
    file: DbFile,
    me: String,
    lease: Lease,
}

impl SqliteJournal {
    pub(super) fn new(path: PathBuf, lease: Lease) -> Self {
        Self {
            // A written line survives this process; it need not survive a power cut.
            file: DbFile::new(path, CommitDurability::Deferred),
            me: String::new(),
            lease,
        }
    }

    /// Uses the connection; after a failure, the next use opens a new one.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection, &str) -> rusqlite::Result<JournalJobResult<T>>,
    ) -> JournalJobResult<T> {
        let (connection, _) = self.file.connection().map_err(JournalJobError::Failed)?;
        let named = if self.me.is_empty() {
            let sql = "SELECT lower(hex(randomblob(12)))";
            connection.query_row(sql, [], |row| row.get::<_, String>(0))
        } else {
            Ok(self.me.clone())
        };
        let done = named.and_then(|me| {
            self.me = me;
            work(connection, &self.me)
        });
        done.unwrap_or_else(|error| {
            let why = self.file.failure(error);
            self.file.disconnect();
            Err(JournalJobError::Failed(why))
        })
    }
}

/// Returns the current time and the end of a lease that begins now.
fn begin(lease: Lease) -> (i64, i64) {
    let now = nanoseconds(clock::now());
    (now, lease.until(now))
}

impl JournalBackend for SqliteJournal {
    fn add(&mut self, run: &str, line: &str, held: bool) -> JournalJobResult<bool> {
        let lease = self.lease;
        self.with(|connection, me| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (now, until) = begin(lease);
            let got = all
                .prepare_cached(HOLD)?
                .execute(params![run, me, now, until])?;
            if got == 0 {
                return Ok(Err(JournalJobError::Busy));
            }
            let old = held
                || all
                    .prepare_cached(OLD)?
                    .query_row([run], |row| row.get(0))?;
            all.prepare_cached(ADD)?.execute(params![run, line])?;
            all.commit()?;
            Ok(Ok(old))
        })
    }

    fn release_run(&mut self, run: &str, wipe: bool) -> JournalJobResult<()> {
        self.with(|connection, me| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let left = all.prepare_cached(LEAVE)?.execute(params![run, me])?;
            if wipe && left == 1 {
                all.prepare_cached(WIPE)?.execute([run])?;
            }
            all.commit()?;
            Ok(Ok(()))
        })
    }

    fn renew(&mut self, runs: &mut dyn Iterator<Item = &str>) -> JournalJobResult<()> {
        let lease = self.lease;
        self.with(|connection, me| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (_, until) = begin(lease);
            for run in runs {
                all.prepare_cached(RENEW)?
                    .execute(params![run, me, until])?;
            }
            all.commit()?;
            Ok(Ok(()))
        })
    }

    fn lines(&mut self, run: &str, ours: bool) -> JournalJobResult<Vec<Vec<u8>>> {
        let lease = self.lease;
        self.with(|connection, _| {
            let all = connection.transaction()?;
            let (now, until) = begin(lease);
            let busy: Option<i64> = all
                .prepare_cached(BUSY)?
                .query_row(params![run, now, until], |row| row.get(0))
                .optional()?;
            if busy.is_some() && !ours {
                return Ok(Err(JournalJobError::Busy));
            }
            let mut query = all.prepare_cached(LINES)?;
            let lines = query.query_map([run], |row| row.get::<_, String>(0))?;
            let lines = lines.map(|line| line.map(String::into_bytes));
            Ok(Ok(lines.collect::<rusqlite::Result<_>>()?))
        })
    }
}
