//! `CallMode`: who asks for a call, and what becomes of its outcome.

use crate::call::ToolCall;
use crate::executor::named;
use crate::session::Session;

/// Who makes a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMode {
    /// The client makes the call and receives its outcome.
    ByClient,
    /// The call is cleared for its client, which makes it in another process.
    Ahead,
    /// The call was suspended, and the host resumes it in place of its client.
    Resumed,
    /// The call was interrupted, and the host resumes it in place of its client.
    Recovered,
}

impl CallMode {
    /// Returns whether the client asks for the call, and not the host in its place.
    pub(super) fn is_by_client(self) -> bool {
        matches!(self, Self::ByClient | Self::Ahead)
    }

    /// Returns a call made in this way.
    pub(super) fn incoming(self, call: ToolCall) -> IncomingCall {
        IncomingCall {
            call,
            how: self,
            internal: false,
        }
    }
}

/// A call as it comes to the executor.
pub(super) struct IncomingCall {
    pub(super) call: ToolCall,
    pub(super) how: CallMode,
    /// Whether the call is for one of the executor's internal tools.
    pub(super) internal: bool,
}

impl IncomingCall {
    /// Replaces a call of `call_tool` by the call of the tool that it names.
    pub(super) fn resolved(self, session: &Session) -> Self {
        if self.internal {
            return self;
        }
        Self {
            call: named::resolve(session, self.call),
            ..self
        }
    }
}
