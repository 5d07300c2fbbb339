//! `SessionIdentity`: whose session it is, noted by the hook before it has the agent run a command in the session's name.

use std::io;
use std::path::Path;

use haft_hook::Agent;
use serde::{Deserialize, Serialize};

use crate::plain_file;
use crate::session_group::{file, is_name, touch};

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 64 << 10;
/// Length of an id in texts for people, in characters.
const SHOWN: usize = 8;

/// The agent, and its own id of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionIdentity {
    agent: String,
    /// The agent's id of the session, else the name of its process.
    id: String,
}

impl SessionIdentity {
    /// The session that the agent calls `id`.
    pub(crate) fn new(agent: Agent, id: &str) -> Self {
        Self {
            agent: agent.name().to_owned(),
            id: id.to_owned(),
        }
    }

    /// Notes it for the session of this name.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, home: &Path, name: &str) -> io::Result<()> {
        let path = file(home, name, "session");
        if Self::find(home, name).as_ref() == Some(self) {
            touch(&path);
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            plain_file::private_folder(folder)?;
        }
        plain_file::write_private(&path, &serde_json::to_string(self)?)
    }

    /// Returns whose session has this name. `None` if no hook has named one so.
    pub(crate) fn find(home: &Path, name: &str) -> Option<Self> {
        let path = is_name(name).then(|| file(home, name, "session"))?;
        let text = plain_file::read(&path, MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Returns the agent with its session, for lists and requests.
    pub(crate) fn client(&self) -> String {
        let agent = Agent::from_name(&self.agent).map(Agent::title);
        let agent = agent.unwrap_or(&self.agent);
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let id: String = self.id.chars().filter(plain).take(SHOWN).collect();
        if id.is_empty() {
            agent.to_owned()
        } else {
            format!("{agent}, session {id}")
        }
    }
}
