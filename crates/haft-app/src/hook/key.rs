//! `Key`: which session of which agent.

use haft_hook::Agent;

/// A session of an agent: the same one as long as the agent calls it the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) agent: Agent,
    pub(super) session: String,
    /// The agent's process, where the agent calls its sessions nothing.
    pub(super) process: Option<String>,
}
