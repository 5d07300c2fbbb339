//! `UnknownToolHint`: hints about tools that a session does not see, and sessions that get none.

use crate::session::Session;
use haft_types::opaque_debug;

/// A host's knowledge of a tool that the session does not see, such as the setting that would enable it.
pub trait UnknownToolHint: Send + Sync {
    /// Returns the advice for this name, if any. It is for the operator; the model only learns that the tool is off.
    fn advice(&self, name: &str) -> Option<String>;
}

opaque_debug!(UnknownToolHint);

impl Session {
    /// Returns the host's hint about a tool that this session does not see. A caller with a view is not told about other tools.
    pub(crate) fn unknown_tool_hint(&self, name: &str) -> Option<String> {
        let hint = self.parts.run.unknown_tool_hint.as_ref();
        hint.filter(|_| !self.is_narrowed())?.advice(name)
    }

    /// Returns whether its caller has a view of the host's tools. Of everything else the host offers, such a caller reaches only what
    /// belongs to these tools ([`SessionBuilder::narrowed`](crate::session::SessionBuilder::narrowed)).
    pub fn is_narrowed(&self) -> bool {
        self.parts.run.narrowed
    }
}
