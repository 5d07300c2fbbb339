//! The caller of a session's calls, if it can be asked or sent messages.

use std::sync::Arc;

use super::Session;
use crate::caller::Caller;

impl Session {
    /// Returns the same session with this program as the caller: the tools of calls made through it may ask it and send it messages
    /// ([`CallContext::caller`](crate::context::CallContext::caller)).
    pub fn with_caller(&self, caller: Arc<dyn Caller>) -> Self {
        self.with(|scope| scope.caller = Some(caller))
    }

    /// Returns the program that makes its calls.
    pub(crate) fn caller(&self) -> Option<&Arc<dyn Caller>> {
        self.parts.scope.caller.as_ref()
    }
}
