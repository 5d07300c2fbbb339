//! `JobLane`: a bounded queue to a dedicated thread, for blocking work.

use haft::error::HostFailure;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Capacity of a queue, in KiB of text; each job counts for one more.
const QUEUE_CAPACITY: usize = 64 << 10;

/// The sending end. Once it is dropped and all jobs are done, the thread ends.
#[derive(Debug)]
pub(crate) struct JobLane<T> {
    sender: Mutex<Option<mpsc::Sender<QueuedJob<T>>>>,
    room: Arc<Semaphore>,
}

/// A queued job.
#[derive(Debug)]
struct QueuedJob<T> {
    job: T,
    _room: Option<OwnedSemaphorePermit>,
}

/// The thread's receiving end.
#[derive(Debug)]
pub(crate) struct Jobs<T>(Receiver<QueuedJob<T>>);

impl<T: Send + 'static> JobLane<T> {
    /// Creates a queue whose thread starts with the first job.
    pub(crate) fn new() -> Self {
        Self {
            sender: Mutex::new(None),
            room: Arc::new(Semaphore::new(QUEUE_CAPACITY)),
        }
    }

    /// Sends a job with `bytes` of text once there is room; `start` starts the thread if none is running.
    pub(crate) async fn give(
        &self,
        job: T,
        bytes: usize,
        start: impl FnOnce(Jobs<T>) -> std::io::Result<()>,
    ) -> Result<(), HostFailure> {
        let weight = u32::try_from((bytes >> 10) + 1).unwrap_or(u32::MAX);
        let weight = weight.min(u32::try_from(QUEUE_CAPACITY).unwrap_or(u32::MAX));
        let room = Arc::clone(&self.room).acquire_many_owned(weight).await;
        let room = room.map_err(|_| HostFailure::new("it was shut"))?;
        self.send(job, Some(room), start)
    }

    /// Sends an optional job: drops it if there is no room or no thread.
    pub(crate) fn offer(&self, job: T) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return;
        };
        let sender = self.sender.lock();
        if let Some(sender) = &*sender {
            let _ = sender.send(QueuedJob {
                job,
                _room: Some(room),
            });
        }
    }

    /// Sends a job that takes no room; for the few that wake a thread.
    pub(crate) fn send_at_once(
        &self,
        job: T,
        start: impl FnOnce(Jobs<T>) -> std::io::Result<()>,
    ) -> Result<(), HostFailure> {
        self.send(job, None, start)
    }

    fn send(
        &self,
        job: T,
        room: Option<OwnedSemaphorePermit>,
        start: impl FnOnce(Jobs<T>) -> std::io::Result<()>,
    ) -> Result<(), HostFailure> {
        let mut sender = self.sender.lock();
        let mut sent = QueuedJob { job, _room: room };
        if let Some(running) = &*sender {
            match running.send(sent) {
                Ok(()) => return Ok(()),
                // Its thread has ended: start another one.
                Err(back) => sent = back.0,
            }
        }
        let (to, jobs) = mpsc::channel();
        start(Jobs(jobs))
            .map_err(|e| HostFailure::new(format!("start its thread: {e}")).with_source(e))?;
        to.send(sent)
            .map_err(|_| HostFailure::new("its thread ended"))?;
        *sender = Some(to);
        Ok(())
    }

    /// Lets the thread end once the queue is done; later jobs start a new one.
    pub(crate) fn end(&self) {
        drop(self.sender.lock().take());
    }
}

/// The result of waiting for a job.
pub(crate) enum NextJob<T> {
    Job(T),
    /// No job arrived in time.
    Quiet,
    /// No job will ever arrive.
    End,
}

impl<T> Jobs<T> {
    /// Returns the next job, waiting for at most `within`, or without a limit if that is `None`.
    pub(crate) fn next(&self, within: Option<Duration>) -> NextJob<T> {
        let received = match within {
            Some(within) => self.0.recv_timeout(within),
            None => self.0.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(sent) => NextJob::Job(sent.job),
            Err(RecvTimeoutError::Timeout) => NextJob::Quiet,
            Err(RecvTimeoutError::Disconnected) => NextJob::End,
        }
    }

    /// Returns a job that is already queued.
    pub(crate) fn try_next(&self) -> Option<T> {
        self.0.try_recv().ok().map(|sent| sent.job)
    }
}
