//! `SqliteStore`: the connection to `haft.db`, haft's own database file, which several processes share.

use std::path::{Path, PathBuf};

use crate::error::StoreError;

pub(crate) mod file;
mod holder;
pub(crate) mod worker;

pub use crate::inbox::sqlite::SqliteInbox;
use file::FILE;
use worker::SqliteWorker;

/// haft's database in its state folder: one connection per process, opened on first use.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) worker: SqliteWorker,
}

impl SqliteStore {
    /// Creates a store for `haft.db` in `home`; does not create or open the file yet.
    pub fn new(home: &Path) -> Self {
        Self::at(home.join(FILE))
    }

    /// Creates a store for a database file with any name.
    pub fn at(path: PathBuf) -> Self {
        Self {
            worker: SqliteWorker::new(path),
        }
    }

    /// Closes the connection and merges the write-ahead log into the file. Dropping without it loses nothing.
    ///
    /// # Errors
    /// The database's error, such as a full disk.
    pub async fn shut_down(&self) -> Result<(), StoreError> {
        self.worker.close().await
    }
}
