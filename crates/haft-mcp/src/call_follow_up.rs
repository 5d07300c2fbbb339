//! `CallFollowUp`: what a call's client is told besides the outcome.

use crate::client_caller::InputRequest;

/// What a call's client is told besides the outcome.
#[derive(Debug)]
pub(crate) enum CallFollowUp {
    Nothing,
    /// The address where a user can decide.
    Decide(String),
    /// To ask its user and bring back this state (2026-07-28).
    Ask(Vec<InputRequest>, String),
}
