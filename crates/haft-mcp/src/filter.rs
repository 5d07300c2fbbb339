//! `SubscriptionFilter`: the changes that a client wants to learn of.

/// Maximum number of single resources that a client can follow at once.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1024;

/// The changes that a client wants to learn of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionFilter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    /// The URIs of single resources.
    pub(crate) uris: Vec<String>,
    /// The ids of tasks.
    pub(crate) tasks: Vec<String>,
}

impl SubscriptionFilter {
    /// All lists: what a client of the handshake era learns of.
    pub(crate) const LISTS: Self = Self {
        tools: true,
        prompts: true,
        resources: true,
        uris: Vec::new(),
        tasks: Vec::new(),
    };
}
