//! The caller of a session's calls, where it can be asked and told things.

use std::sync::Arc;

use super::Session;
use crate::caller::Caller;

impl Session {
    /// The same session, with this program behind the calls made through it: their tools may ask it and tell it things
    /// ([`CallContext::caller`](crate::context::CallContext::caller)).
    pub fn with_caller(&self, caller: Arc<dyn Caller>) -> Self {
        self.with(|scope| scope.caller = Some(caller))
    }

    /// The program behind its calls.
    pub(crate) fn caller(&self) -> Option<&Arc<dyn Caller>> {
        self.parts.scope.caller.as_ref()
    }
}
