//! `SqliteStore`: haft's own database, one file that several processes share.

use std::path::{Path, PathBuf};

use crate::approvals::Sweeps;
use crate::error::StoreError;

pub(crate) mod file;
mod inbox;
mod memory;
mod runs;
mod suspended;
mod worker;

pub use inbox::SqliteInbox;
use worker::Worker;

/// The database's file below haft's state folder.
const FILE: &str = "haft.db";

/// Haft's database in its state folder: one connection in this process, opened at first use.
#[derive(Debug)]
pub struct SqliteStore {
    worker: Worker,
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
            worker: Worker::new(path),
            sweeps: Sweeps::default(),
        }
    }

    /// Closes the connection and folds the write-ahead log into the file. Dropping without it loses nothing.
    ///
    /// # Errors
    /// What the database says, such as a disk that is full.
    pub async fn shut(&self) -> Result<(), StoreError> {
        self.worker.close().await
    }
}

/// `SQLite`'s integers have 64 bits with a sign: enough for nanoseconds until 2262.
pub(crate) fn nanoseconds(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

pub(crate) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
