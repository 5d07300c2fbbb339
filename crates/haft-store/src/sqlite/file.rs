//! `DbFile`: a connection of one's own to the database file, opened when needed and again when the file is another one.

use haft::error::Failure;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// The database's file below haft's state folder.
pub(crate) const FILE: &str = "haft.db";

/// How long a statement waits for another process's write.
const BUSY: Duration = Duration::from_secs(5);

/// How long before the file is tried again that others were opening.
const AGAIN: Duration = Duration::from_millis(10);

/// What brings the schema from each version to the next; each ends by setting `user_version`.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_runs.sql"),
    include_str!("migrations/0002_memory.sql"),
    include_str!("migrations/0003_approvals.sql"),
    include_str!("migrations/0004_journal.sql"),
    include_str!("migrations/0005_approvals_lean.sql"),
    include_str!("migrations/0006_suspended.sql"),
    include_str!("migrations/0007_suspended_age.sql"),
    include_str!("migrations/0008_run_notes.sql"),
];

/// Statements that are kept prepared.
const STATEMENTS: usize = 64;

/// Pages of the write-ahead log after which it is folded into the file and begun anew: to write over what is there costs the
/// disk less than to make a file grow, which four times as many lost a fifth of a lone writer's speed to.
const LOG: u32 = 1000;

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// The disk: what was answered survives a power cut.
    Synced,
    /// Nothing: it survives this process; a power cut may take the last moments, never the soundness of the file.
    Deferred,
}

impl Commit {
    /// Lets a connection's commits wait for this; not within a transaction.
    pub(crate) fn set(self, connection: &Connection) -> rusqlite::Result<()> {
        let mode = match self {
            Self::Synced => "FULL",
            Self::Deferred => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", mode)
    }
}

/// Where the database is, and a connection while there is one.
#[derive(Debug)]
pub(crate) struct DbFile {
    path: PathBuf,
    commit: Commit,
    open: Option<Open>,
    /// It was there once: from then on its absence is an error, never an empty database.
    seen: bool,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// Device and number of the file that is open.
    identity: (u64, u64),
}

impl DbFile {
    /// The file at this path; nothing is made or opened yet.
    pub(crate) fn new(path: PathBuf, commit: Commit) -> Self {
        Self {
            path,
            commit,
            open: None,
            seen: false,
        }
    }

    /// The connection to the file that is there now, and whether it is a new one.
    pub(crate) fn connection(&mut self) -> Result<(&mut Connection, bool), Failure> {
        let identity = self.identity();
        // `SQLite` would go on writing to a file that was deleted or replaced, and all of it would be lost.
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
                return Err(Failure::new(format!(
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

    /// Gives up the connection: what comes next begins with a fresh one.
    pub(crate) fn let_go(&mut self) {
        self.open = None;
    }

    /// Closes the connection where there is one, and with the last one folds the write-ahead log into the file.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let closed = open.connection.close();
        closed.map_err(|(_, error)| self.failure(error))
    }

    /// Whether there is a connection.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// What went wrong, in words that say what to do.
    pub(crate) fn reason(&self, error: &rusqlite::Error) -> String {
        let path = self.path.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => format!("{path}: the disk is full; make room"),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                format!("{path} is locked by another process for over 5 s")
            }
            Some(ErrorCode::ReadOnly) => format!("{path} cannot be written"),
            _ => format!("{path}: {error}"),
        }
    }

    /// The same, with the error that it came from.
    pub(crate) fn failure(&self, error: rusqlite::Error) -> Failure {
        Failure::new(self.reason(&error)).with_source(error)
    }

    fn identity(&self) -> Option<(u64, u64)> {
        let meta = fs::metadata(&self.path).ok()?;
        Some((meta.dev(), meta.ino()))
    }
}

/// Opens the file, private and with the schema up to date.
fn open(path: &Path, commit: Commit) -> Result<Open, Failure> {
    let named = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
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
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Nobody is waited for while the mode changes: of several that open a new file, one does it and the others try again.
        let newer = patiently(|| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            commit.set(&connection)?;
            connection.pragma_update(None, "wal_autocheckpoint", LOG)?;
            migrate(&mut connection)
        })?;
        Ok((connection, newer))
    });
    match opened {
        Ok((connection, None)) => Ok(Open {
            connection,
            identity: (meta.dev(), meta.ino()),
        }),
        Ok((_, Some(version))) => Err(named(&format!(
            "version {version} of a newer haft, this one knows {}",
            MIGRATIONS.len()
        ))),
        Err(error) => Err(named(&error).with_source(error)),
    }
}

/// Makes the file before `SQLite` would make it readable to others; its log and index take over its mode.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(home) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)?;
    Ok(())
}

/// Tries again while others are at the file.
fn patiently<T>(mut step: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        let done = step();
        let busy = done.as_ref().is_err_and(|error| {
            let code = error.sqlite_error_code();
            matches!(
                code,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            )
        });
        if !busy || begun.elapsed() > BUSY {
            return done;
        }
        std::thread::sleep(AGAIN);
    }
}

/// Brings the schema up to date; the version of a newer one that is left alone.
fn migrate(connection: &mut Connection) -> rusqlite::Result<Option<usize>> {
    if version(connection)? == MIGRATIONS.len() {
        return Ok(None);
    }
    // Another process may be at it: only one holds the write lock, the others then find it done.
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
