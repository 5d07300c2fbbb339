//! `AgentOptions`: how an agent asks its model.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::budget::{Budget, Prices};
use crate::model::Model;
use crate::provided::ProviderTool;

/// How an agent asks its model, and within which limits.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The instructions before the conversation (the system prompt); empty for none.
    pub system: String,
    /// The limits of the conversation.
    pub budget: Budget,
    /// The prices of tokens; without them no money is counted, and a budget of money limits nothing.
    pub prices: Option<Prices>,
    /// Maximum number of tokens per reply.
    pub max_tokens: Option<u32>,
    /// Whether one reply may hold several calls.
    pub parallel: bool,
    /// Whether the provider enforces the tools' schemas, if it can.
    pub strict: bool,
    /// The provider-defined tools that are declared and answered here. A tool of another dialect, or one that needs a tool that the
    /// session does not have, is left out.
    pub provided: Vec<ProviderTool>,
    /// The number of tokens that the model can read and write at once. If set, a history that nears it is compressed.
    pub window: Option<u64>,
    /// Whether deferred tools that match a prompt are declared for it; see [`suggest::view`](crate::suggest::view).
    pub suggest: bool,
    /// A model that chooses these tools, instead of a search alone.
    pub chooser: Option<Arc<dyn Model>>,
    /// Additional members of the request's body, by name (`temperature`, …).
    pub extra: Vec<(String, Box<RawValue>)>,
}

impl Default for AgentOptions {
    /// No instructions, the default budget, several calls per reply, tools suggested if some are deferred.
    fn default() -> Self {
        Self {
            system: String::new(),
            budget: Budget::default(),
            prices: None,
            max_tokens: None,
            parallel: true,
            strict: false,
            provided: Vec::new(),
            window: None,
            suggest: true,
            chooser: None,
            extra: Vec::new(),
        }
    }
}
