//! `LinkReader`: notes the addresses in what a call shows of strangers' content; following such a link carries nothing out.

use std::sync::Arc;

use crate::executor::invoke::InvokedCall;
use crate::executor::judge::ClearedCall;
use crate::permission::{Effect, Permission};
use crate::result::Content;
use crate::session::Session;
use crate::spec::ToolClass;
use crate::untrusted::{SeenLinks, UntrustedSource};

/// Reads the links of one call's result.
pub(super) struct LinkReader {
    links: Arc<SeenLinks>,
    /// The arguments: what the call sent is not seen because it comes back.
    sent: String,
}

impl LinkReader {
    /// Creates it for a cleared call that reads from these sources, and notes the addresses that it connects to: sending the same again says
    /// nothing new. `None` if the call shows nothing of strangers; what a command prints may be the model's own words.
    pub(super) fn of(
        session: &Session,
        cleared: &ClearedCall,
        sources: &[UntrustedSource],
    ) -> Option<Self> {
        let permissions = cleared.judgement().permissions();
        let runs = |permission: &Permission| matches!(permission.effect, Effect::Run { .. });
        let by_command = cleared.spec().class == Some(ToolClass::Network);
        if sources.is_empty() || by_command || permissions.iter().any(runs) {
            return None;
        }
        let links = Arc::clone(session.links());
        for permission in permissions {
            if let Effect::Connect { url, .. } = &permission.effect {
                links.note(url);
            }
        }
        let (_, sent) = cleared.tool_and_arguments();
        let sent = sent.to_owned();
        Some(Self { links, sent })
    }

    /// Notes the addresses in the texts and the data of a result.
    pub(super) fn read(&self, invoked: &InvokedCall) {
        let Some(result) = invoked.result() else {
            return;
        };
        for content in &result.content {
            if let Content::Text { text } | Content::Resource { text, .. } = content {
                self.links.note_all_in(text, &self.sent);
            }
            if let Content::ResourceLink { uri, .. } = content {
                self.links.note_all_in(uri, &self.sent);
            }
        }
        if let Some(data) = &result.data {
            self.links.note_all_in(data.get(), &self.sent);
        }
    }
}
