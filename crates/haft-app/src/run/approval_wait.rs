//! `ApprovalWait`: how long the calls of a run wait for decisions.

use std::time::Duration;

/// How long the calls of a run wait for decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalWait {
    /// As long as the settings say.
    #[default]
    Limit,
    /// This long.
    For(Duration),
    /// They don't wait: they are suspended at once.
    Never,
}
