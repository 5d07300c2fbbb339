//! `UnknownToolHint`: what is said of tools that a session does not see, and sessions that are told of none.

use crate::opaque::opaque_debug;
use crate::session::Session;

/// What a host knows of a tool that the session does not see: which setting would enable it, for one.
pub trait UnknownToolHint: Send + Sync {
    /// The advice for this name, if there is any. It is for the person who runs haft; the model hears that the tool is off.
    fn advice(&self, name: &str) -> Option<String>;
}

opaque_debug!(UnknownToolHint);

impl Session {
    /// What the host says of a tool that this session does not see. A caller with a view is not told which others there are.
    pub(crate) fn unknown_tool_hint(&self, name: &str) -> Option<String> {
        let hint = self.parts.run.unknown_tool_hint.as_ref();
        hint.filter(|_| !self.is_narrowed())?.advice(name)
    }

    /// Whether its caller has a view of the host's tools: whatever else the host offers, the caller reaches what belongs to these
    /// tools alone ([`SessionBuilder::narrowed`](crate::session::SessionBuilder::narrowed)).
    pub fn is_narrowed(&self) -> bool {
        self.parts.run.narrowed
    }
}
