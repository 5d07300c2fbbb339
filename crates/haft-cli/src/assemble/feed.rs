//! `Feed`: what happens in this house's runs, told to whoever watches; nobody waits for a watcher.

use std::sync::Arc;

use haft::audit::{AuditError, AuditSink, Event};
use haft::call::RunId;
use tokio::sync::broadcast::{self, Receiver, Sender};

/// Events a slow watcher may be behind; then it reads the lists again.
const BEHIND: usize = 4096;

/// What a watcher hears.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// What the record says.
    Event(Arc<Event>),
    /// A run waits for a person, and nobody works on it.
    Suspended(RunId),
}

/// A sink that passes events on.
#[derive(Debug)]
pub(crate) struct Feed(Sender<Told>);

impl Feed {
    /// A feed that nobody watches yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(broadcast::channel(BEHIND).0))
    }

    /// What happens from now on.
    pub(crate) fn watch(&self) -> Receiver<Told> {
        self.0.subscribe()
    }

    /// Tells that a run waits.
    pub(crate) fn suspended(&self, run: &RunId) {
        // Nobody may be watching.
        let _ = self.0.send(Told::Suspended(run.clone()));
    }
}

impl AuditSink for Feed {
    fn record(&self, event: Event) -> Result<(), AuditError> {
        if self.0.receiver_count() > 0 {
            let _ = self.0.send(Told::Event(Arc::new(event)));
        }
        Ok(())
    }
}
