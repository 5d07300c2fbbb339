//! `Feed`: what happens in this app's runs, passed on to the clients that watch; no call waits for a client.

use std::sync::Arc;
use std::time::Duration;

use haft::audit::index::RunState;
use haft::audit::{AuditError, AuditSink, CallRecord, Event, EventKind};
use haft::call::{CallId, RunId};
use haft::result::Status;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Events a slow watcher may be behind; then it reads the lists again.
const BEHIND: usize = 4096;
/// Characters of a tool's name: one that no tool has may be as long as a message.
const LONGEST_NAME: usize = 200;

/// What a watcher hears: what the record says, without what calls carry. A slow watcher is behind many of these.
#[derive(Debug, Clone)]
pub enum FeedEvent {
    /// A run begins, ends, or waits for an approval while no process runs it.
    Run {
        /// The run.
        run: RunId,
        /// What it is now.
        state: RunState,
    },
    /// A call begins or ends.
    Call(Arc<CallEvent>),
}

/// A call that begins or has ended.
#[derive(Debug)]
pub struct CallEvent {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The call within which it was made.
    pub parent: Option<CallId>,
    /// At a length that every tool's name has.
    pub tool: String,
    /// Nanoseconds since 1970, UTC.
    pub at: i128,
    /// How it ended, and how long it took.
    pub end: Option<(Status, Duration)>,
}

impl FeedEvent {
    fn of(event: &Event) -> Self {
        let run = event.run.clone();
        let call = |call: &CallRecord, end| {
            Self::Call(Arc::new(CallEvent {
                run: event.run.clone(),
                call: call.call.clone(),
                parent: call.parent.clone(),
                tool: call.tool.chars().take(LONGEST_NAME).collect(),
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

/// A sink that passes events on.
#[derive(Debug)]
pub struct Feed(Sender<FeedEvent>);

impl Feed {
    /// A feed that nobody watches yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(broadcast::channel(BEHIND).0))
    }

    /// What happens from now on.
    pub fn watch(&self) -> Receiver<FeedEvent> {
        self.0.subscribe()
    }

    /// Whether someone watches.
    pub(crate) fn has_watchers(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Tells watchers that a run of another process changed.
    pub(crate) fn changed(&self, run: RunId, state: RunState) {
        // The last watcher may have gone.
        let _ = self.0.send(FeedEvent::Run { run, state });
    }

    /// Tells that a run waits.
    pub fn suspended(&self, run: &RunId) {
        // Nobody may be watching.
        let _ = self.0.send(FeedEvent::Run {
            run: run.clone(),
            state: RunState::Suspended,
        });
    }
}

impl AuditSink for Feed {
    fn record(&self, event: Event) -> Result<(), AuditError> {
        if self.0.receiver_count() > 0 {
            let _ = self.0.send(FeedEvent::of(&event));
        }
        Ok(())
    }
}
