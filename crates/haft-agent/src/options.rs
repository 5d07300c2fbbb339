//! `Options`: how an agent asks its model.

use serde_json::value::RawValue;

use crate::budget::{Budget, Prices};

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
    /// Further members of the request's body, by name (`temperature`, …).
    pub extra: Vec<(String, Box<RawValue>)>,
}

impl Default for Options {
    /// No instructions, the default budget, several calls a reply.
    fn default() -> Self {
        Self {
            system: String::new(),
            budget: Budget::default(),
            prices: None,
            max_tokens: None,
            parallel: true,
            strict: false,
            extra: Vec::new(),
        }
    }
}
