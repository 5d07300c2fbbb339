//! `SessionKey`: identifies a session of an agent.

use haft::text::hex;
use haft_hook::Agent;
use sha2::{Digest as _, Sha256};

use crate::session_group::identity::SessionIdentity;

/// The identity of an agent's session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) agent: Agent,
    /// The agent's id of the session; empty if it has none.
    pub(super) session: String,
    /// The agent's process, where its sessions have no ids.
    pub(super) process: Option<String>,
}

impl SessionKey {
    /// Returns the name by which all runs of the session, in whichever folder, find what holds for it.
    pub(super) fn name(&self) -> String {
        let mut hasher = Sha256::new();
        let process = self.process.as_deref().unwrap_or_default();
        for part in [self.agent.name(), &self.session, process] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hex(&hasher.finalize())
    }

    /// Returns whose session it is.
    pub(super) fn identity(&self) -> SessionIdentity {
        let process = self.process.as_deref().unwrap_or_default();
        let id = Some(self.session.as_str()).filter(|id| !id.is_empty());
        SessionIdentity::new(self.agent, id.unwrap_or(process))
    }
}
