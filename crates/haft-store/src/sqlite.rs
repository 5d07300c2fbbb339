//! `SqliteStore`: haft's own database, one file that several processes share.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::approvals::Sweeps;
use crate::error::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

pub(crate) mod file;
mod inbox;
mod memory;
mod runs;
mod suspended;

pub use inbox::SqliteInbox;

/// The database's file below haft's state folder.
const FILE: &str = "haft.db";

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
];

/// Haft's database in its state folder: one connection in this process, opened at first use.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    connection: Mutex<Option<SqliteConnection>>,
    sweeps: Sweeps,
}

impl SqliteStore {
    /// The database `haft.db` in `home`; nothing is made or opened yet.
    pub fn new(home: &Path) -> Self {
        Self::at(home.join(FILE))
    }

    /// The database in a file of any name.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            connection: Mutex::new(None),
            sweeps: Sweeps::default(),
        }
    }

    /// The connection, once nobody else uses it.
    async fn connection(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, StoreError> {
        let mut guard = self.connection.lock().await;
        if guard.is_none() {
            let connected = connect(&self.path).await;
            let named = |why| StoreError(format!("{}: {why}", self.path.display()));
            *guard = Some(connected.map_err(named)?);
        }
        MutexGuard::try_map(guard, Option::as_mut).map_err(|_| StoreError("no connection".into()))
    }

    /// Closes the connection and folds the write-ahead log into the file. Dropping without it loses nothing.
    pub async fn shut(&self) -> Result<(), StoreError> {
        match self.connection.lock().await.take() {
            Some(connection) => connection.close().await.map_err(|e| StoreError(reason(e))),
            None => Ok(()),
        }
    }
}

/// `SQLite`'s integers have 64 bits with a sign: enough for nanoseconds until 2262.
pub(crate) fn nanoseconds(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

pub(crate) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Opens the file, private and with the schema up to date.
async fn connect(path: &Path) -> Result<SqliteConnection, String> {
    make_private(path).map_err(|e| e.to_string())?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        // A power cut may take the last moments of the index, never its soundness; the record itself is synced.
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(BUSY);
    // Nobody is waited for while the journal's mode changes: of several that open a new file, one does it and the others
    // try again.
    let begun = Instant::now();
    loop {
        let opened = async {
            let mut connection = options.connect().await?;
            migrate(&mut connection).await?;
            Ok(connection)
        };
        match opened.await {
            Ok(connection) => return Ok(connection),
            Err(error) if is_busy(&error) && begun.elapsed() < BUSY => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(reason(error)),
        }
    }
}

/// Whether others were at the file (`SQLITE_BUSY` and its kinds).
fn is_busy(error: &sqlx::Error) -> bool {
    const SQLITE_BUSY: u32 = 5;
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == SQLITE_BUSY)
}

/// What went wrong, without sqlx's words for the class of error where the cause says it all.
fn reason(error: sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(e) => e.to_string(),
        sqlx::Error::Configuration(e) => e.to_string(),
        other => other.to_string(),
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

/// Brings the schema up to date.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    if version(connection).await? == MIGRATIONS.len() {
        return Ok(());
    }
    // Another process may be at it: only one holds the write lock, the others then find it done.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let from = version(&mut transaction).await?;
    let Some(steps) = MIGRATIONS.get(from..) else {
        let newer = format!(
            "version {from} of a newer haft, this one knows {}",
            MIGRATIONS.len()
        );
        return Err(sqlx::Error::Configuration(newer.into()));
    };
    for step in steps {
        sqlx::raw_sql(*step).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

async fn version(connection: &mut SqliteConnection) -> Result<usize, sqlx::Error> {
    let version: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(connection)
        .await?;
    usize::try_from(version).map_err(|e| sqlx::Error::Decode(e.into()))
}
