//! `Resumption`: a call that was suspended or interrupted before, as the tool that resumes it sees it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::session::nest::Nest;

/// A resumed call. It can be resumed again until its tool says that it is over, or returns a result.
#[derive(Debug, Clone)]
pub struct Resumption {
    nest: Arc<Nest>,
    leaving: CancellationToken,
    by_host: bool,
}

impl Resumption {
    /// A call that goes on now. `leaving` is whether the session leaves its calls to whoever resumes them.
    pub(crate) fn new(nest: &Arc<Nest>, leaving: &CancellationToken, by_host: bool) -> Self {
        Self {
            nest: Arc::clone(nest),
            leaving: leaving.clone(),
            by_host,
        }
    }

    /// Says that the call cannot be resumed any more, however it ends.
    pub fn over(&self) {
        self.nest.set_resumable(false);
    }

    /// Whether a call that is cancelled or dropped now is left to be resumed again: the process shuts down, or the host
    /// resumes the call without its client. A client that goes away cancels its call.
    pub fn is_left_when_dropped(&self) -> bool {
        self.by_host || self.is_leaving()
    }

    /// Whether the process leaves its calls to whoever resumes them.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled()
    }
}
