//! `FilingQueue`: the queue of requests to be written together, and state that one statement leaves for the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use haft::approval::inbox::{InboxError, Submission};
use parking_lot::{Mutex, MutexGuard};
use sqlx::{Connection as _, PgConnection};
use tokio::sync::{Semaphore, oneshot};

use crate::request_draft::RequestDraft;

/// Capacity of the queue, in KiB of text; each request counts for one more.
const QUEUE_CAPACITY: usize = 64 << 10;

/// Requests that wait for the previous statement to end.
#[derive(Debug)]
pub(crate) struct FilingQueue {
    pub(crate) waiting: Mutex<Vec<(RequestDraft, SubmissionSender)>>,
    /// Held while a statement runs.
    pub(crate) at_work: Arc<tokio::sync::Mutex<()>>,
    pub(crate) desk: Mutex<FilingState>,
    /// The previous statement's connection: the pool would make the server check each connection that it takes back.
    spare_connection: Mutex<Option<PgConnection>>,
    pub(crate) room: Arc<Semaphore>,
}

pub(crate) type SubmissionSender = oneshot::Sender<Result<Submission, InboxError>>;

/// State that one statement leaves for the next.
#[derive(Debug, Default)]
pub(crate) struct FilingState {
    /// How many more pending requests each tenant may have, as far as is known.
    pub(crate) left: HashMap<String, i64>,
    pub(crate) swept: Option<Instant>,
    /// Bytes of requests written since the last sweep.
    pub(crate) filed: usize,
}

impl Default for FilingQueue {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            at_work: Arc::default(),
            desk: Mutex::default(),
            spare_connection: Mutex::default(),
            room: Arc::new(Semaphore::new(QUEUE_CAPACITY)),
        }
    }
}

impl FilingQueue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<PgConnection>> {
        self.spare_connection.lock()
    }

    /// Closes its connection; the next statement opens a new one.
    pub(crate) async fn close(&self) -> Result<(), sqlx::Error> {
        let spare = self.lock().take();
        match spare {
            Some(connection) => connection.close().await,
            None => Ok(()),
        }
    }
}
