//! `SignatureJudge`: decides what the user's agents sign for one command.

use std::fmt;

use crate::proxy::LoginUse;
use crate::web::network::BoxFuture;

/// Maximum number of a command's connections to an agent that are served at the same time; more wait.
pub(crate) const MAX_SESSIONS: usize = 16;
/// Maximum number of signatures that an agent makes for one command.
pub(crate) const MAX_SIGNATURES: usize = 100;

/// Decides what an agent signs for one command.
pub(crate) trait SignatureJudge: Send + Sync + fmt::Debug {
    /// Decides whether a key may be used, and notes it if not.
    fn judge<'a>(&'a self, login: &'a LoginUse) -> BoxFuture<'a, Result<(), ()>>;

    /// Returns the hosts and ports that the command has connected to.
    fn places(&self) -> Vec<(String, u16)>;

    /// Returns the command as the user sees it in requests.
    fn command(&self) -> String;

    /// Notes that something was not signed.
    fn note_refused(&self, purpose: &str, why: String);
}
