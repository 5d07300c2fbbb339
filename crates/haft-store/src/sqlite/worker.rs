//! `SqliteWorker`: the connection for runs and memory, which runs one job at a time.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::file::{CommitDurability, DbFile};
use crate::blocking::may_block;
use crate::error::StoreError;
use crate::lane::{JobLane, Jobs, NextJob};

/// Why a job failed: it was refused, or the database failed.
#[derive(Debug)]
pub(crate) enum JobError<E> {
    /// The database worked, and the answer is no.
    Refused(E),
    /// The database failed.
    Database(rusqlite::Error),
}

impl<E> From<rusqlite::Error> for JobError<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// A job for the thread.
type DatabaseJob = Box<dyn FnOnce(&mut DbFile) + Send>;

/// The connection, and the thread that uses it when the caller's thread may not block on a disk.
pub(crate) struct SqliteWorker {
    file: Arc<Mutex<DbFile>>,
    lane: JobLane<DatabaseJob>,
}

impl std::fmt::Debug for SqliteWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteWorker")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl SqliteWorker {
    /// Creates a worker for the file at this path; does not create or open the file yet. A power cut may lose the last moments
    /// but never corrupts the file; what must survive one is written by [`SqliteInbox`](super::SqliteInbox).
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            file: Arc::new(Mutex::new(DbFile::new(path, CommitDurability::Deferred))),
            lane: JobLane::new(),
        }
    }

    /// Runs `work` with the connection; after a database failure, the next job opens a new one. `bytes` is roughly what the job
    /// holds in memory while it is queued.
    pub(crate) async fn with<T, E>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut Connection) -> Result<T, JobError<E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.run(bytes, move |file| with(file, work))
            .await
            .map_err(E::from)?
    }

    /// Closes the connection once the queue is done and merges the write-ahead log into the file.
    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        let closed = self.run(0, DbFile::close).await?;
        self.lane.end();
        closed.map_err(StoreError)
    }

    async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut DbFile) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        // Handing a job to another thread and back costs as much as most jobs take.
        if may_block()
            && let Some(mut file) = self.file.try_lock()
        {
            return Ok(tokio::task::block_in_place(|| work(&mut file)));
        }
        let (answer, heard) = oneshot::channel();
        let job: DatabaseJob = Box::new(move |file| {
            // The caller may be gone.
            let _ = answer.send(work(file));
        });
        let file = Arc::clone(&self.file);
        let given = self.lane.give(job, bytes, |jobs| start(file, jobs));
        given.await.map_err(StoreError)?;
        heard
            .await
            .map_err(|_| StoreError("the thread of the database ended".into()))
    }
}

fn with<T, E: From<StoreError>>(
    file: &mut DbFile,
    work: impl FnOnce(&mut Connection) -> Result<T, JobError<E>>,
) -> Result<T, E> {
    let (connection, _) = file.connection().map_err(StoreError)?;
    work(connection).map_err(|fault| match fault {
        JobError::Refused(refused) => refused,
        JobError::Database(error) => {
            let why = file.failure(error);
            file.disconnect();
            StoreError(why).into()
        }
    })
}

fn start(file: Arc<Mutex<DbFile>>, jobs: Jobs<DatabaseJob>) -> io::Result<()> {
    let thread = thread::Builder::new().name("haft-store".to_owned());
    let work = move || {
        while let NextJob::Job(job) = jobs.next(None) {
            job(&mut file.lock());
        }
    };
    thread.spawn(work).map(drop)
}

/// Returns whether the error says that a unique name is taken.
pub(crate) fn is_taken(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(error, _) = error else {
        return false;
    };
    [
        rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE,
        rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
    ]
    .contains(&error.extended_code)
}
