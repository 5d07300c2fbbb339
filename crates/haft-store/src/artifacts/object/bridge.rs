//! `RuntimeBridge`: runs a bucket's operations on a dedicated thread, independent of the caller's runtime.

use std::future::ready;
use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use haft::artifact::ArtifactError;
use haft::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::Bucket;

/// Maximum number of concurrent operations; the rest queue, each with its caller or pin.
const MAX_CONCURRENT: usize = 32;

/// Longest interval between checks for runs whose hold has to be renewed.
const MAX_CHECK_INTERVAL: Duration = Duration::from_hours(1);

/// The thread, started on first use. It ends with the store.
#[derive(Debug)]
pub(super) struct RuntimeBridge {
    place: Arc<str>,
    running: Mutex<Option<RuntimeThread>>,
    room: Arc<Semaphore>,
}

/// A running thread; dropping this ends it.
#[derive(Debug)]
struct RuntimeThread {
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl RuntimeBridge {
    pub(super) fn new(place: Arc<str>) -> Self {
        Self {
            place,
            running: Mutex::new(None),
            room: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        }
    }

    /// Runs a job within `limit`. The job starts with this call and completes even if the returned future is dropped.
    pub(super) fn run<T: Send + 'static>(
        &self,
        bucket: &Arc<Bucket>,
        limit: Duration,
        job: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, io::Result<T>> {
        let (done, ended) = oneshot::channel();
        let room = Arc::clone(&self.room);
        let job = async move {
            let job = async {
                let _room = room.acquire().await;
                job.await
            };
            // The caller may have been dropped.
            let _ = done.send(timeout(limit, job).await);
        };
        match self.runtime(bucket) {
            Ok(runtime) => drop(runtime.spawn(job)),
            Err(error) => return Box::pin(ready(Err(error))),
        }
        let place = Arc::clone(&self.place);
        Box::pin(async move {
            match ended.await {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(_)) => Err(timed_out(&place, limit)),
                Err(_) => Err(io::Error::other(format!("{place}: its thread ended"))),
            }
        })
    }

    /// Runs a job in the background.
    pub(super) fn spawn(
        &self,
        bucket: &Arc<Bucket>,
        limit: Duration,
        job: impl Future<Output = Result<(), ArtifactError>> + Send + 'static,
    ) -> io::Result<()> {
        let room = Arc::clone(&self.room);
        self.runtime(bucket)?.spawn(async move {
            let job = async {
                let _room = room.acquire().await;
                job.await
            };
            if let Ok(Err(error)) = timeout(limit, job).await {
                tracing::warn!(%error, "hold the artifacts of a run");
            }
        });
        Ok(())
    }

    /// Returns the thread's runtime, starting the thread if it is not running.
    fn runtime(&self, bucket: &Arc<Bucket>) -> io::Result<Handle> {
        let mut running = self.running.lock();
        if let Some(running) = &*running {
            return Ok(running.runtime.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(upkeep(Arc::downgrade(bucket)));
        let thread = thread::Builder::new().name("haft-objects".to_owned());
        thread.spawn(move || {
            // Nothing is ever sent: the sender is dropped with the store.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        *running = Some(RuntimeThread {
            runtime: handle.clone(),
            _stop: stop,
        });
        Ok(handle)
    }
}

fn timed_out(place: &str, limit: Duration) -> io::Error {
    let seconds = limit.as_secs();
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("{place} did not answer within {seconds} s: try again when it is reachable"),
    )
}

/// Background work of the store: sweeps expired artifacts and renews the hold on active runs.
async fn upkeep(bucket: Weak<Bucket>) {
    loop {
        let Some(now) = bucket.upgrade() else { return };
        if let Some(every) = now.terms.sweep {
            let swept = timeout(super::SWEEP_TIMEOUT, now.sweep_if_due(every)).await;
            if let Ok(Err(error)) = swept {
                tracing::warn!(%error, "sweep expired artifacts");
            }
        }
        now.renew_pins().await;
        let pause = MAX_CHECK_INTERVAL.min(now.max_hold_age() / 4);
        drop(now);
        sleep(pause).await;
    }
}
