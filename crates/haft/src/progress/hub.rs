//! `Hub`: live output batched for any number of readers; a slow one receives longer texts, and nothing waits for it.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::bounds::{ByteBudget, Charge};
use crate::call::RunId;
use crate::progress::held::{NextEvent, ReaderBacklog};
use crate::progress::{Pace, ProgressEvent, ProgressSink};

/// Default number of bytes of text that the readers of a hub may hold together, and that each may always hold.
const DEFAULT_BUDGET: usize = 64 << 20;
const RESERVED_BYTES: usize = 256 << 10;

/// Receives progress and passes it on, batched by run, call and stream.
///
/// Tools never wait for it. The text held per reader is limited, and so is the total. If a reader falls so far behind that text must
/// be left out, an event of the stream [`Info`](crate::progress::ProgressStream::Info) gives the number of bytes.
#[derive(Debug)]
pub struct Hub {
    pace: Pace,
    /// The budget that readers are charged to.
    budget: Arc<ByteBudget>,
    ears: RwLock<Vec<Arc<Subscriber>>>,
}

/// Returns whether a reader receives events of a run.
type RunPredicate = Box<dyn Fn(&RunId) -> bool + Send + Sync>;

/// A reader's side of the hub.
struct Subscriber {
    hears: RunPredicate,
    held: Mutex<ReaderBacklog>,
    wake: Notify,
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").finish_non_exhaustive()
    }
}

/// A reader. It receives events from its creation until it is dropped.
#[derive(Debug)]
pub struct Listener {
    hub: Arc<Hub>,
    ear: Arc<Subscriber>,
}

impl Hub {
    /// Creates a hub that batches at this pace.
    pub fn new(pace: Pace) -> Arc<Self> {
        Self::within(pace, ByteBudget::new(DEFAULT_BUDGET, RESERVED_BYTES))
    }

    /// Creates a hub whose readers share this budget; several hubs may use the same one.
    pub fn within(pace: Pace, budget: Arc<ByteBudget>) -> Arc<Self> {
        let ears = RwLock::default();
        Arc::new(Self { pace, budget, ears })
    }

    /// Creates a reader of all runs, or of one.
    pub fn listen(self: &Arc<Self>, run: Option<RunId>) -> Listener {
        let hears = move |other: &RunId| run.as_ref().is_none_or(|run| run == other);
        self.listen_to(hears, self.budget.charge())
    }

    /// Creates a reader of the runs that `hears` accepts; it holds nothing of others. Its text is charged to `charge`.
    pub fn listen_to(
        self: &Arc<Self>,
        hears: impl Fn(&RunId) -> bool + Send + Sync + 'static,
        charge: Charge,
    ) -> Listener {
        let ear = Arc::new(Subscriber {
            hears: Box::new(hears),
            held: Mutex::new(ReaderBacklog::new(charge)),
            wake: Notify::new(),
        });
        let mut ears = self.ears.write();
        ears.push(Arc::clone(&ear));
        Listener {
            hub: Arc::clone(self),
            ear,
        }
    }
}

impl ProgressSink for Hub {
    fn progress(&self, event: ProgressEvent) {
        let ears = self.ears.read();
        let mut now = None;
        for ear in ears.iter().filter(|ear| (ear.hears)(&event.run)) {
            let now = *now.get_or_insert_with(Instant::now);
            ear.add(&event, now, self.pace);
        }
    }
}

impl Subscriber {
    fn add(&self, event: &ProgressEvent, now: Instant, pace: Pace) {
        let look = self.lock().add(event, now, pace);
        if look {
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReaderBacklog> {
        self.held.lock()
    }
}

impl Listener {
    /// Returns the next event, once enough is batched. Dropping the future loses nothing.
    pub async fn next(&mut self) -> ProgressEvent {
        loop {
            let next = self.ear.lock().take(Instant::now(), self.hub.pace, false);
            // An `add` after this check leaves a permit, so no event is missed.
            match next {
                NextEvent::Event(event) => return event,
                NextEvent::Nothing => self.ear.wake.notified().await,
                NextEvent::At(time) => tokio::select! {
                    () = self.ear.wake.notified() => {}
                    () = sleep_until(time) => {}
                },
            }
        }
    }

    /// Returns an event that has not been taken yet, whether or not it is batched long enough; `None` if there is none.
    pub fn rest(&mut self) -> Option<ProgressEvent> {
        match self.ear.lock().take(Instant::now(), self.hub.pace, true) {
            NextEvent::Event(event) => Some(event),
            NextEvent::At(_) | NextEvent::Nothing => None,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut ears = self.hub.ears.write();
        ears.retain(|ear| !Arc::ptr_eq(ear, &self.ear));
    }
}
