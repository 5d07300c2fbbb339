//! `Hub`: live output gathered for any number of readers; a slow one gets longer texts, and nobody waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::call::RunId;
use crate::progress::held::{Held, Next};
use crate::progress::{Pace, ProgressEvent, ProgressSink};

/// Takes progress in and passes it on, gathered by run, call and stream.
///
/// Nothing that a tool does waits here. What a reader holds is bounded: when it falls so far behind that text must be
/// left out, one event of the stream [`Info`](crate::progress::Stream::Info) says how many bytes.
#[derive(Debug)]
pub struct Hub {
    pace: Pace,
    ears: RwLock<Vec<Arc<Ear>>>,
}

/// A reader's side of the hub.
#[derive(Debug)]
struct Ear {
    /// Of this run alone.
    run: Option<RunId>,
    held: Mutex<Held>,
    wake: Notify,
}

/// One reader. It hears what comes from now on, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    hub: Arc<Hub>,
    ear: Arc<Ear>,
}

impl Hub {
    /// A hub that gathers at this pace.
    pub fn new(pace: Pace) -> Arc<Self> {
        let ears = RwLock::default();
        Arc::new(Self { pace, ears })
    }

    /// A reader of all runs, or of one.
    pub fn listen(self: &Arc<Self>, run: Option<RunId>) -> Listener {
        let ear = Arc::new(Ear {
            run,
            held: Mutex::default(),
            wake: Notify::new(),
        });
        let mut ears = self.ears.write().unwrap_or_else(PoisonError::into_inner);
        ears.push(Arc::clone(&ear));
        Listener {
            hub: Arc::clone(self),
            ear,
        }
    }
}

impl ProgressSink for Hub {
    fn progress(&self, event: ProgressEvent) {
        let ears = self.ears.read().unwrap_or_else(PoisonError::into_inner);
        let mut wanting = ears.iter().filter(|ear| ear.wants(&event.run));
        let Some(mut ear) = wanting.next() else {
            return;
        };
        let now = Instant::now();
        for next in wanting {
            ear.add(event.clone(), now, self.pace);
            ear = next;
        }
        ear.add(event, now, self.pace);
    }
}

impl Ear {
    fn wants(&self, run: &RunId) -> bool {
        self.run.as_ref().is_none_or(|mine| mine == run)
    }

    fn add(&self, event: ProgressEvent, now: Instant, pace: Pace) {
        let look = self.lock().add(event, now, pace);
        if look {
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// The next event, once enough was gathered. Dropping the future loses nothing.
    pub async fn next(&mut self) -> ProgressEvent {
        loop {
            let next = self.ear.lock().take(Instant::now(), self.hub.pace, false);
            // Whoever adds after that look leaves a permit, so that none is missed.
            match next {
                Next::Event(event) => return event,
                Next::Nothing => self.ear.wake.notified().await,
                Next::At(time) => tokio::select! {
                    () = self.ear.wake.notified() => {}
                    () = sleep_until(time) => {}
                },
            }
        }
    }

    /// What has come and was not taken yet, gathered long enough or not; nothing where there is nothing.
    pub fn rest(&mut self) -> Option<ProgressEvent> {
        match self.ear.lock().take(Instant::now(), self.hub.pace, true) {
            Next::Event(event) => Some(event),
            Next::At(_) | Next::Nothing => None,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut ears = self
            .hub
            .ears
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        ears.retain(|ear| !Arc::ptr_eq(ear, &self.ear));
    }
}
