//! `Archive`: the sink that stores every run's record on disk, under `runs/` of haft's state folder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::audit::index::ClosedEvent;
use crate::audit::queue::{EventQueue, WriterMessage};
use crate::audit::redact::Redactor;
use crate::audit::writer::RecordWriter;
use crate::audit::{AuditError, AuditEvent, AuditSink};
use crate::call::RunId;
use crate::clock;
use crate::future::BoxFuture;

#[cfg(test)]
mod tests;

/// Stores records: `record` moves the event into a bounded queue, and one thread does the rest.
///
/// A run starts with its `RunStarted` event and ends with [`Archive::close`] (or `RunClosed`). Once a write or sync of a run has
/// failed, all its later events are refused. Dropping the archive writes the queued events; runs that were not closed stay
/// open.
pub struct Archive {
    queue: Arc<EventQueue>,
    home: PathBuf,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// Starts the writer. Creates nothing in `home`, haft's state folder, before a run starts.
    ///
    /// # Errors
    /// The writer's thread cannot be started.
    pub fn new(home: impl Into<PathBuf>, redactor: Redactor) -> Result<Self, AuditError> {
        let home = home.into();
        let queue = Arc::new(EventQueue::new());
        let writer = RecordWriter::new(Arc::clone(&queue), home.clone(), redactor);
        let thread = thread::Builder::new().name("haft-audit".into());
        let writer = thread
            .spawn(move || writer.work())
            .map_err(|e| AuditError::new(format!("start the writer: {e}")).with_source(e))?;
        Ok(Self {
            queue,
            home,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Returns haft's state folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Ends a run's record: writes its `closed` line and syncs all of it to disk. The returned value is for the index.
    ///
    /// A run that is already closed returns the same value again.
    ///
    /// # Errors
    /// The record cannot be written, or the writer has ended.
    pub fn close(&self, run: &RunId) -> BoxFuture<'_, Result<ClosedEvent, AuditError>> {
        let (answer, closed) = oneshot::channel();
        let message = WriterMessage::Close(run.clone(), clock::now(), answer);
        let sent = self.queue.send(message);
        Box::pin(async move {
            sent?;
            closed.await.unwrap_or_else(|_| Err(writer_gone()))
        })
    }

    /// Leaves a run's record open and synced to disk, so that the run can be resumed.
    ///
    /// # Errors
    /// The record cannot be written, or the writer has ended.
    pub fn suspend(&self, run: &RunId) -> BoxFuture<'_, Result<(), AuditError>> {
        let (answer, left) = oneshot::channel();
        let sent = self.queue.send(WriterMessage::Leave(run.clone(), answer));
        Box::pin(async move {
            sent?;
            left.await.unwrap_or_else(|_| Err(writer_gone()))
        })
    }

    /// Returns whether this archive has a run's record open, once all earlier events are written: another process may hold it.
    ///
    /// # Errors
    /// An earlier write failed, another process holds the record, or the writer has ended.
    pub async fn holds(&self, run: &RunId) -> Result<(), AuditError> {
        self.flush().await?;
        self.queue.check_accepts(run)
    }

    /// Completes when everything recorded before is written (to the system, not necessarily to disk).
    ///
    /// # Errors
    /// An earlier write failed, or the writer has ended.
    pub fn flush(&self) -> BoxFuture<'_, Result<(), AuditError>> {
        let (answer, flushed) = oneshot::channel();
        let sent = self.queue.send(WriterMessage::Flush(answer));
        Box::pin(async move {
            sent?;
            flushed.await.map_err(|_| writer_gone())
        })
    }

    /// Writes the queued events and ends the writer; later events are refused.
    pub fn shut_down(&self) {
        self.queue.shut_down();
        let mut writer = self.writer.lock();
        if let Some(Err(_)) = writer.take().map(JoinHandle::join) {
            tracing::error!("the audit writer panicked");
        }
    }
}

/// The error if the writer ended without an answer.
fn writer_gone() -> AuditError {
    AuditError::new("the archive's writer has ended")
}

impl AuditSink for Archive {
    fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.queue.send(WriterMessage::Event(event, None))
    }

    fn record_durably(&self, event: AuditEvent) -> BoxFuture<'_, Result<(), AuditError>> {
        let (answer, durable) = oneshot::channel();
        let sent = self.queue.send(WriterMessage::Event(event, Some(answer)));
        Box::pin(async move {
            sent?;
            durable.await.unwrap_or_else(|_| Err(writer_gone()))
        })
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.shut_down();
    }
}
