//! `Filing`: where requests wait to be written together, and what one statement leaves to the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use haft::approval::inbox::{InboxError, Submission};
use parking_lot::{Mutex, MutexGuard};
use sqlx::{Connection as _, PgConnection};
use tokio::sync::{Semaphore, oneshot};

use crate::inbox::Draft;

/// What may wait, in KiB of texts; each request counts for one more.
const ROOM: usize = 64 << 10;

/// Where requests wait for the statement before theirs to end.
#[derive(Debug)]
pub(crate) struct Filing {
    pub(super) waiting: Mutex<Vec<(Draft, Answer)>>,
    /// Held while a statement is made.
    pub(super) at_work: Arc<tokio::sync::Mutex<()>>,
    pub(super) desk: Mutex<Desk>,
    /// The connection of the statement before: the pool asks the server about each that it takes back.
    kept: Mutex<Option<PgConnection>>,
    pub(super) room: Arc<Semaphore>,
}

pub(super) type Answer = oneshot::Sender<Result<Submission, InboxError>>;

/// What one statement leaves to the next.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// How many more requests a tenant may have waiting, as far as it is known.
    pub(super) left: HashMap<String, i64>,
    pub(super) swept: Option<Instant>,
    /// Bytes of requests that were written since.
    pub(super) filed: usize,
}

impl Default for Filing {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            at_work: Arc::default(),
            desk: Mutex::default(),
            kept: Mutex::default(),
            room: Arc::new(Semaphore::new(ROOM)),
        }
    }
}

impl Filing {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<PgConnection>> {
        self.kept.lock()
    }

    /// Closes its connection; the next statement makes another one.
    pub(crate) async fn close(&self) -> Result<(), sqlx::Error> {
        let kept = self.lock().take();
        match kept {
            Some(connection) => connection.close().await,
            None => Ok(()),
        }
    }
}
