//! `Options`: how an agent asks its model.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::budget::{Budget, Prices};
use crate::model::Model;
use crate::provided::Provided;

/// How an agent asks its model, and within which bounds.
#[derive(Debug, Clone)]
pub struct Options {
    /// The instructions.
    pub system: String,
    /// What may be used up.
    pub budget: Budget,
    /// What tokens cost.
    pub prices: Option<Prices>,
    /// The most tokens of one reply.
    pub max_tokens: Option<u32>,
    /// Whether one reply may hold several calls.
    pub parallel: bool,
    /// Whether the provider shall hold the model to the tools' schemas, where it can.
    pub strict: bool,
    /// The tools that the provider defines which are declared and answered here. One of another dialect, or whose own tool the session
    /// does not have, is left out.
    pub provided: Vec<Provided>,
    /// The tokens that the model can read and write at once. Where it is set, a history that nears it is compressed.
    pub window: Option<u64>,
    /// Whether deferred tools that fit a prompt are declared for it; see [`suggest::view`](crate::suggest::view).
    pub suggest: bool,
    /// A model that chooses these tools, in place of a search alone.
    pub chooser: Option<Arc<dyn Model>>,
    /// Further members of the request's body, by name (`temperature`, …).
    pub extra: Vec<(String, Box<RawValue>)>,
}

impl Default for Options {
    /// No instructions, the default budget, several calls a reply, tools suggested where some are deferred.
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
