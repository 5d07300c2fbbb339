//! `Resumption`: a previously suspended or interrupted call, from the view of the tool that resumes it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::session::nest::CallScope;

/// A resumed call. It can be resumed again until its tool marks it as over or returns a result.
#[derive(Debug, Clone)]
pub struct Resumption {
    nest: Arc<CallScope>,
    leaving: CancellationToken,
    by_host: bool,
}

impl Resumption {
    /// Creates the resumption of a call. `leaving` is cancelled when the session leaves its calls to be resumed later.
    pub(crate) fn new(nest: &Arc<CallScope>, leaving: &CancellationToken, by_host: bool) -> Self {
        Self {
            nest: Arc::clone(nest),
            leaving: leaving.clone(),
            by_host,
        }
    }

    /// Marks the call as not resumable any more, however it ends.
    pub fn over(&self) {
        self.nest.set_resumable(false);
    }

    /// Returns whether the call can be resumed again if it is cancelled or dropped now: because the process shuts down, or because
    /// the host resumes the call without its client. A client that disconnects cancels its call.
    pub fn is_resumable_on_drop(&self) -> bool {
        self.by_host || self.is_leaving()
    }

    /// Returns whether the process leaves its calls to be resumed later.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled()
    }
}
