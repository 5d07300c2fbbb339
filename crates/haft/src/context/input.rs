//! The input that a client pipes into the call of its run.

use crate::context::CallContext;
use crate::input::{CallInput, InputReader};

impl CallContext {
    /// What the client pipes in, to be read once; none for a call within another.
    pub fn input(&self) -> Option<InputReader> {
        self.session.input().and_then(CallInput::take)
    }
}
