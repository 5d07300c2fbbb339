//! `Then`: what the client of a call is told beside its outcome.

use crate::asking::InputRequest;

/// What the client of a call is told beside its outcome.
#[derive(Debug)]
pub(crate) enum Then {
    /// Nothing.
    Nothing,
    /// The address at which a person decides.
    Decide(String),
    /// To ask its person, and to come back with this state (2026-07-28).
    Ask(Vec<InputRequest>, String),
}
