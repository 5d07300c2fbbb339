//! `Denial`: a user's denial that ended a run, from within any of its calls.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// The denial that ended a run, if one did.
#[derive(Debug, Default)]
pub(super) struct Denial {
    words: OnceLock<String>,
    /// Cancels the run as a whole.
    cancel: CancellationToken,
}

impl Denial {
    /// Creates the place for the denial that ends the run with this token.
    pub(super) fn ending(run: &CancellationToken) -> Self {
        Self {
            words: OnceLock::new(),
            cancel: run.clone(),
        }
    }
}

impl Session {
    /// Cancels the whole run, whichever call of it this is the session of, because a user denied a call of this tool and ended the run
    /// with that.
    pub fn end_by_denial(&self, by: &str, tool: &str) {
        let denial = &self.parts.run.denial;
        // The first denial is the one that ended it.
        let _ = denial
            .words
            .set(format!("{by} denied {tool} and ended the run"));
        denial.cancel.cancel();
    }

    /// Returns who denied what, if that ended the run: nothing of the run waits any more.
    pub fn ended_by_denial(&self) -> Option<&str> {
        self.parts.run.denial.words.get().map(String::as_str)
    }
}
