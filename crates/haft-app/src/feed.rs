//! `AuditFeed`: events in this app's runs, passed on to the clients that watch; no call waits for a client.

use std::sync::Arc;
use std::time::Duration;

use haft::audit::index::RunState;
use haft::audit::{AuditError, AuditEvent, AuditSink, CallRecord, EventKind};
use haft::call::{CallId, RunId};
use haft::result::Status;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Number of events that a slow watcher may lag behind; beyond that, it reads the lists again.
const WATCHER_BUFFER: usize = 4096;
/// Maximum number of characters of a tool's name: the name in a call of an unknown tool may be as long as a message.
const MAX_NAME: usize = 200;

/// An event that watchers receive: what is recorded, without the contents of calls. Small, as many are queued for a slow watcher.
#[derive(Debug, Clone)]
pub enum FeedEvent {
    /// A run starts, ends or is suspended.
    Run {
        /// The run's id.
        run: RunId,
        /// Its new state.
        state: RunState,
    },
    /// A call starts or ends.
    Call(Arc<CallEvent>),
}

/// A call that starts or has ended.
#[derive(Debug)]
pub struct CallEvent {
    /// The run's id.
    pub run: RunId,
    /// The call's id.
    pub call: CallId,
    /// The call that made it.
    pub parent: Option<CallId>,
    /// The tool's name, cut to the maximum length.
    pub tool: String,
    /// Nanoseconds since 1970, UTC.
    pub at: i128,
    /// Its status and duration, if it has ended.
    pub end: Option<(Status, Duration)>,
}

impl FeedEvent {
    fn of(event: &AuditEvent) -> Self {
        let run = event.run.clone();
        let call = |call: &CallRecord, end| {
            Self::Call(Arc::new(CallEvent {
                run: event.run.clone(),
                call: call.call.clone(),
                parent: call.parent.clone(),
                tool: call.tool.chars().take(MAX_NAME).collect(),
                at: event.at,
                end,
            }))
        };
        let (run, state) = match &event.what {
            EventKind::CallStarted(record) => return call(record, None),
            EventKind::CallEnded(record, end) => {
                return call(record, Some((end.status, end.duration)));
            }
            EventKind::RunStarted(_) | EventKind::RunResumed(_) => (run, RunState::Open),
            EventKind::RunClosed => (run, RunState::Closed),
        };
        Self::Run { run, state }
    }
}

/// An audit sink that passes events on.
#[derive(Debug)]
pub struct AuditFeed(Sender<FeedEvent>);

impl AuditFeed {
    /// Returns a feed without watchers.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(broadcast::channel(WATCHER_BUFFER).0))
    }

    /// Returns a receiver of the events from now on.
    pub fn watch(&self) -> Receiver<FeedEvent> {
        self.0.subscribe()
    }

    /// Returns whether there are watchers.
    pub(crate) fn has_watchers(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Tells watchers that a run of another process changed.
    pub(crate) fn changed(&self, run: RunId, state: RunState) {
        // The last watcher may have left.
        let _ = self.0.send(FeedEvent::Run { run, state });
    }

    /// Tells watchers that a run is suspended.
    pub fn suspended(&self, run: &RunId) {
        // There may be no watcher.
        let _ = self.0.send(FeedEvent::Run {
            run: run.clone(),
            state: RunState::Suspended,
        });
    }
}

impl AuditSink for AuditFeed {
    fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        if self.0.receiver_count() > 0 {
            let _ = self.0.send(FeedEvent::of(&event));
        }
        Ok(())
    }
}
