//! The input that a client pipes into its run's call.

use crate::context::CallContext;
use crate::input::{CallInput, InputReader};

impl CallContext {
    /// Returns the input that the client pipes in, to be read once; `None` for a nested call.
    pub fn input(&self) -> Option<InputReader> {
        self.session.input().and_then(CallInput::take)
    }
}
