//! `Control`: stops running calls, or the run, from another task.

use std::sync::Arc;

use haft::CancellationToken;
use parking_lot::Mutex;

/// Stops calls or the run; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<ControlState>);

#[derive(Debug, Default)]
struct ControlState {
    run: Mutex<CancellationToken>,
    calls: Mutex<Option<CancellationToken>>,
}

impl Control {
    /// Stops the running calls of the reply, and those that would follow them: the model is told that the user stopped them,
    /// and the run continues. Returns false if no call is running, or if they were already stopped.
    pub fn stop_calls(&self) -> bool {
        let calls = self.0.calls.lock();
        calls.as_ref().is_some_and(|calls| {
            let first = !calls.is_cancelled();
            calls.cancel();
            first
        })
    }

    /// Cancels the run: drops the request to the model and cancels running calls.
    pub fn cancel(&self) {
        self.0.run.lock().cancel();
    }

    /// Starts a run: an earlier cancellation no longer applies.
    pub(crate) fn begin(&self) -> CancellationToken {
        let mut run = self.0.run.lock();
        *run = CancellationToken::new();
        run.clone()
    }

    /// Starts the calls of a reply; cancelling the run cancels them, too.
    pub(crate) fn begin_calls(&self) {
        let token = self.0.run.lock().child_token();
        *self.0.calls.lock() = Some(token);
    }

    /// Returns the token that cancels the calls of the reply.
    pub(crate) fn calls(&self) -> CancellationToken {
        let calls = self.0.calls.lock().clone();
        calls.unwrap_or_else(|| self.0.run.lock().clone())
    }

    /// Marks that no call is running any more.
    pub(crate) fn end_calls(&self) {
        *self.0.calls.lock() = None;
    }
}
