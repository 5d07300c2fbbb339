//! `DbFile`: one connection to the database file, opened when needed and reopened when the file was replaced.

use haft::error::HostFailure;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::sqlite::holder::writer_of;

/// Name of the database file in haft's state folder.
pub(crate) const FILE: &str = "haft.db";

/// How long a statement waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before retrying a file that other processes are opening.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// Migrations from each schema version to the next; each ends by setting `user_version`.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_runs.sql"),
    include_str!("migrations/0002_memory.sql"),
    include_str!("migrations/0003_approvals.sql"),
    include_str!("migrations/0004_journal.sql"),
    include_str!("migrations/0005_approvals_lean.sql"),
    include_str!("migrations/0006_suspended.sql"),
    include_str!("migrations/0007_suspended_age.sql"),
    include_str!("migrations/0008_run_notes.sql"),
    include_str!("migrations/0009_approval_reasons.sql"),
    include_str!("migrations/0010_approval_reviews.sql"),
];

/// Capacity of the cache of prepared statements.
const STATEMENT_CACHE: usize = 64;

/// Pages of the write-ahead log after which it is merged into the file and restarted. Overwriting costs the disk less than
/// growing a file: with four times as many pages, a lone writer was a fifth slower.
const WAL_PAGES: u32 = 1000;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitDurability {
    /// The disk: a confirmed change survives a power cut.
    Synced,
    /// Nothing: a change survives this process. A power cut may lose the last moments but never corrupts the file.
    Deferred,
}

impl CommitDurability {
    /// Applies this setting to a connection's commits; not allowed within a transaction.
    pub(crate) fn set(self, connection: &Connection) -> rusqlite::Result<()> {
        let mode = match self {
            Self::Synced => "FULL",
            Self::Deferred => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", mode)
    }
}

/// The location of the database, and the connection while it is open.
#[derive(Debug)]
pub(crate) struct DbFile {
    path: PathBuf,
    commit: CommitDurability,
    open: Option<OpenDatabase>,
    /// Whether the file has existed: from then on, a missing file is an error and not an empty database.
    seen: bool,
}

#[derive(Debug)]
struct OpenDatabase {
    connection: Connection,
    /// Device and inode of the open file.
    identity: (u64, u64),
}

impl DbFile {
    /// Creates a `DbFile` for this path; does not create or open the file yet.
    pub(crate) fn new(path: PathBuf, commit: CommitDurability) -> Self {
        Self {
            path,
            commit,
            open: None,
            seen: false,
        }
    }

    /// Returns the connection to the present file, and whether it was just opened.
    pub(crate) fn connection(&mut self) -> Result<(&mut Connection, bool), HostFailure> {
        let identity = self.identity();
        // `SQLite` would continue to write to a file that was deleted or replaced, and all of it would be lost.
        if self
            .open
            .as_ref()
            .is_some_and(|open| Some(open.identity) != identity)
        {
            self.open = None;
        }
        let new = self.open.is_none();
        if new {
            if self.seen && identity.is_none() {
                let path = self.path.display();
                return Err(HostFailure::new(format!(
                    "{path} is gone; put it back, or restart to begin with an empty one"
                )));
            }
            self.open = Some(open(&self.path, self.commit)?);
            self.seen = true;
        }
        match &mut self.open {
            Some(open) => Ok((&mut open.connection, new)),
            None => Err("no connection".into()),
        }
    }

    /// Drops the connection; the next use opens a new one.
    pub(crate) fn disconnect(&mut self) {
        self.open = None;
    }

    /// Closes the connection if it is open; closing the last one merges the write-ahead log into the file.
    pub(crate) fn close(&mut self) -> Result<(), HostFailure> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let closed = open.connection.close();
        closed.map_err(|(_, error)| self.failure(error))
    }

    /// Returns whether the connection is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Describes the error and says what to do.
    pub(crate) fn reason(&self, error: &rusqlite::Error) -> String {
        reason(&self.path, error)
    }

    /// Like [`DbFile::reason`], with the original error as the source.
    pub(crate) fn failure(&self, error: rusqlite::Error) -> HostFailure {
        HostFailure::new(self.reason(&error)).with_source(error)
    }

    fn identity(&self) -> Option<(u64, u64)> {
        let meta = fs::metadata(&self.path).ok()?;
        Some((meta.dev(), meta.ino()))
    }
}

/// Describes an error and says what to do.
fn reason(path: &Path, error: &rusqlite::Error) -> String {
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => format!("{shown}: the disk is full; make room"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let holder = writer_of(path);
            let holder = holder.as_deref().unwrap_or("another process");
            let seconds = BUSY_TIMEOUT.as_secs();
            format!(
                "{shown} has been locked by {holder} for more than {seconds} s; wait until that process is done, or end it, then try again"
            )
        }
        Some(ErrorCode::ReadOnly) => {
            format!("{shown} cannot be written; make the file and its folder writable")
        }
        _ => format!("{shown}: {error}"),
    }
}

/// Opens the file with private permissions and an up-to-date schema.
fn open(path: &Path, commit: CommitDurability) -> Result<OpenDatabase, HostFailure> {
    let named =
        |why: &dyn std::fmt::Display| HostFailure::new(format!("{}: {why}", path.display()));
    let refused = |error: io::Error| named(&error).with_source(error);
    let fresh = !path.exists();
    make_private(path).map_err(refused)?;
    if fresh && let Some(folder) = path.parent() {
        // The new name must survive a power cut as the rows do.
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(refused)?;
    }
    let meta = fs::metadata(path).map_err(refused)?;
    let opened = Connection::open(path).and_then(|mut connection| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
        // `SQLite` does not wait for a lock while the journal mode changes: of several processes that open a new file, one
        // succeeds and the others retry.
        let newer = retry_while_busy(|| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            commit.set(&connection)?;
            connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
            migrate(&mut connection)
        })?;
        Ok((connection, newer))
    });
    match opened {
        Ok((connection, None)) => Ok(OpenDatabase {
            connection,
            identity: (meta.dev(), meta.ino()),
        }),
        Ok((_, Some(version))) => Err(named(&format!(
            "version {version} of a newer haft, this one knows {}",
            MIGRATIONS.len()
        ))),
        Err(error) => Err(HostFailure::new(reason(path, &error)).with_source(error)),
    }
}

/// Creates the file before `SQLite` would make it readable to others; its log and index inherit its mode.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(home) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)?;
    Ok(())
}

/// Retries a step while other processes lock the file.
fn retry_while_busy<T>(mut step: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let started = Instant::now();
    loop {
        let done = step();
        let busy = done.as_ref().is_err_and(|error| {
            let code = error.sqlite_error_code();
            matches!(
                code,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            )
        });
        if !busy || started.elapsed() > BUSY_TIMEOUT {
            return done;
        }
        std::thread::sleep(RETRY_DELAY);
    }
}

/// Brings the schema up to date; returns the version of a newer schema, which it leaves alone.
fn migrate(connection: &mut Connection) -> rusqlite::Result<Option<usize>> {
    if version(connection)? == MIGRATIONS.len() {
        return Ok(None);
    }
    // Another process may be migrating: only one holds the write lock, and the others then find it done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?;
    let Some(steps) = MIGRATIONS.get(from..) else {
        return Ok(Some(from));
    };
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.commit()?;
    Ok(None)
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}
