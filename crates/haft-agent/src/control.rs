//! `Control`: stops what runs, from another task: the calls under way, or the run.

use std::sync::Arc;

use haft::CancellationToken;
use parking_lot::Mutex;

/// Stops calls or the run; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    run: Mutex<CancellationToken>,
    calls: Mutex<Option<CancellationToken>>,
}

impl Control {
    /// Stops the calls of the reply that are under way, and those that would come after them: the model hears that the user ended them,
    /// and the run goes on. False where none is under way, or where they were stopped already.
    pub fn stop_calls(&self) -> bool {
        let calls = self.0.calls.lock();
        calls.as_ref().is_some_and(|calls| {
            let first = !calls.is_cancelled();
            calls.cancel();
            first
        })
    }

    /// Ends the run: the request to the model is dropped, calls under way are cancelled.
    pub fn cancel(&self) {
        self.0.run.lock().cancel();
    }

    /// A run begins: what was cancelled before counts no more.
    pub(crate) fn begin(&self) -> CancellationToken {
        let mut run = self.0.run.lock();
        *run = CancellationToken::new();
        run.clone()
    }

    /// The calls of a reply begin; they end with the run, too.
    pub(crate) fn begin_calls(&self) {
        let token = self.0.run.lock().child_token();
        *self.0.calls.lock() = Some(token);
    }

    /// Ends when the calls of the reply are to end.
    pub(crate) fn calls(&self) -> CancellationToken {
        let calls = self.0.calls.lock().clone();
        calls.unwrap_or_else(|| self.0.run.lock().clone())
    }

    /// No call is under way any more.
    pub(crate) fn end_calls(&self) {
        *self.0.calls.lock() = None;
    }
}
