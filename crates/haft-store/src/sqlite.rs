//! `haft.db`: haft's own database, one file that several processes share; how it is opened, and the connection to it.

use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::suspended::Sweeps;

pub(crate) mod file;
pub(crate) mod worker;

pub use crate::inbox::sqlite::SqliteInbox;
use file::FILE;
use worker::Worker;

/// Haft's database in its state folder: one connection in this process, opened at first use.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) worker: Worker,
    pub(crate) sweeps: Sweeps,
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
