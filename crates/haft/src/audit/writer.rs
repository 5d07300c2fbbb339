//! The single thread that writes all records: takes the queued messages, writes them run by run, and syncs once for all waiters.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tokio::sync::oneshot;

use crate::audit::index::ClosedEvent;
use crate::audit::line::LineWriter;
use crate::audit::queue::{EventQueue, WriterMessage};
use crate::audit::redact::Redactor;
use crate::audit::run_folder::RunFolder;
use crate::audit::{AuditError, AuditEvent, EventKind, runs};
use crate::call::RunId;

/// Maximum number of runs whose files stay open: three files each, well below the usual limit of 1,024.
const MAX_OPEN_RUNS: usize = 64;
/// Maximum number of failed runs whose error is remembered.
const MAX_FAILED_RUNS: usize = 1024;
/// Capacity above which a batch is freed: it was a burst.
const MAX_RETAINED_CAPACITY: usize = 4096;

/// Answers a waiter once a line is durable.
type Ack = oneshot::Sender<Result<(), AuditError>>;

pub(super) struct RecordWriter {
    queue: Arc<EventQueue>,
    home: PathBuf,
    scribe: LineWriter,
    folders: HashMap<RunId, RunFolder, RandomState>,
    failed: HashMap<RunId, AuditError>,
    /// Runs with unwritten lines.
    touched: Vec<RunId>,
    acks: Vec<(RunId, Ack)>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl RecordWriter {
    pub(super) fn new(queue: Arc<EventQueue>, home: PathBuf, redactor: Redactor) -> Self {
        Self {
            queue,
            home,
            scribe: LineWriter::new(redactor),
            folders: HashMap::default(),
            failed: HashMap::new(),
            touched: Vec::new(),
            acks: Vec::new(),
            flushed: Vec::new(),
        }
    }

    /// Writes until the queue is shut and empty.
    pub(super) fn work(mut self) {
        let _gone = AbandonGuard(Arc::clone(&self.queue));
        let mut batch = Vec::new();
        while self.queue.receive(&mut batch) {
            for message in batch.drain(..) {
                self.take(message);
            }
            self.settle();
            if batch.capacity() > MAX_RETAINED_CAPACITY {
                batch = Vec::new();
            }
        }
        for (run, mut folder) in mem::take(&mut self.folders) {
            if let Err(error) = folder.sync() {
                self.fail(&run, error);
            }
        }
    }

    fn take(&mut self, message: WriterMessage) {
        match message {
            WriterMessage::Flush(answer) => self.flushed.push(answer),
            WriterMessage::Close(run, at, answer) => {
                let closed = self.close(&run, at);
                // The receiver may be dropped; the run is closed anyway.
                let _ = answer.send(closed);
            }
            WriterMessage::Leave(run, answer) => {
                let left = self.leave(&run);
                let _ = answer.send(left);
            }
            WriterMessage::Event(event, ack) => {
                let written = match event.what {
                    EventKind::RunClosed => self.close(&event.run, event.at).map(drop),
                    _ => self.append(&event),
                };
                let Some(ack) = ack else { return };
                match written {
                    Ok(()) if self.folders.contains_key(&event.run) => {
                        self.acks.push((event.run, ack));
                    }
                    known => drop(ack.send(known)),
                }
            }
        }
    }

    fn append(&mut self, event: &AuditEvent) -> Result<(), AuditError> {
        let run = &event.run;
        let appended = match self.folders.get_mut(run) {
            Some(folder) => folder.append(event, &mut self.scribe),
            None if matches!(
                event.what,
                EventKind::RunStarted(_) | EventKind::RunResumed(_)
            ) =>
            {
                self.open(event).and_then(|folder| {
                    let mut folder = folder;
                    folder.append(event, &mut self.scribe)?;
                    self.folders.insert(run.clone(), folder);
                    Ok(())
                })
            }
            None => return Err(self.why(run)),
        };
        match appended {
            Ok(()) => {
                if self.touched.last() != Some(run) {
                    self.touched.push(run.clone());
                }
                Ok(())
            }
            Err(error) => Err(self.fail(run, error)),
        }
    }

    fn open(&self, event: &AuditEvent) -> io::Result<RunFolder> {
        let run = &event.run;
        let dir = runs::run_dir(&self.home, run.as_str()).map_err(io::Error::other)?;
        match event.what {
            EventKind::RunResumed(_) => RunFolder::reopen(dir, run.clone()),
            _ => RunFolder::create(dir, run.clone()),
        }
    }

    fn close(&mut self, run: &RunId, at: i128) -> Result<ClosedEvent, AuditError> {
        let Some(folder) = self.folders.remove(run) else {
            // If its session closed it before, the record itself tells how.
            let closed = runs::run_dir(&self.home, run.as_str())
                .ok()
                .and_then(|dir| runs::closed(&dir).ok().flatten());
            return closed.ok_or_else(|| self.why(run));
        };
        let closed = folder.close(at).map_err(|error| self.fail(run, error));
        let (mine, others) = mem::take(&mut self.acks)
            .into_iter()
            .partition(|(of, _)| of == run);
        self.acks = others;
        for (_, ack) in mine {
            drop(ack.send(closed.as_ref().map(drop).map_err(Clone::clone)));
        }
        closed
    }

    fn leave(&mut self, run: &RunId) -> Result<(), AuditError> {
        let Some(mut folder) = self.folders.remove(run) else {
            return Err(self.why(run));
        };
        folder.sync().map_err(|error| self.fail(run, error))
    }

    /// Returns why a run accepts no lines.
    fn why(&self, run: &RunId) -> AuditError {
        let why = self.failed.get(run).cloned();
        why.unwrap_or_else(|| AuditError::new(format!("run {run} is not open")))
    }

    /// Abandons a run: unwritten lines are lost, and every waiter gets the error.
    fn fail(&mut self, run: &RunId, error: io::Error) -> AuditError {
        let why = AuditError::new(format!("run {run}: {error}")).with_source(error);
        tracing::error!("{why}");
        self.folders.remove(run);
        self.queue.fail(run, why.clone());
        if self.failed.len() >= MAX_FAILED_RUNS {
            self.failed.clear();
        }
        self.failed.insert(run.clone(), why.clone());
        why
    }

    /// Writes the lines of the batch, syncs the runs with waiters, and answers them.
    fn settle(&mut self) {
        let mut touched = mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        let mut acks: HashMap<RunId, Vec<Ack>> = HashMap::new();
        for (run, ack) in self.acks.drain(..) {
            acks.entry(run).or_default().push(ack);
        }
        for run in &touched {
            let Some(folder) = self.folders.get_mut(run) else {
                continue;
            };
            let waits = acks.contains_key(run);
            let written = if waits { folder.sync() } else { folder.flush() };
            if let Err(error) = written {
                self.fail(run, error);
            }
        }
        for (run, waiting) in acks {
            let known = if self.folders.contains_key(&run) {
                Ok(())
            } else {
                Err(self.why(&run))
            };
            for ack in waiting {
                drop(ack.send(known.clone()));
            }
        }
        for answer in self.flushed.drain(..) {
            let _ = answer.send(());
        }
        if self.folders.len() > MAX_OPEN_RUNS {
            for run in touched {
                if let Some(folder) = self.folders.get_mut(&run) {
                    folder.rest();
                }
            }
        }
    }
}

/// Abandons the queue when the writer ends or panics.
struct AbandonGuard(Arc<EventQueue>);

impl Drop for AbandonGuard {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
