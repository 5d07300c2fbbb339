//! `SessionKey`: identifies a session of an agent.

use haft_hook::Agent;

/// The identity of an agent's session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) agent: Agent,
    /// The agent's id of the session; empty if it has none.
    pub(super) session: String,
    /// The agent's process, where its sessions have no ids.
    pub(super) process: Option<String>,
}
