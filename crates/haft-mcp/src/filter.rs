//! `Filter`: which changes a client wants to hear of.

/// The most single resources of whose changes a client hears at once.
pub(crate) const MOST_SUBSCRIPTIONS: usize = 1024;

/// Which changes a client wants to hear of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    /// The addresses of single resources.
    pub(crate) uris: Vec<String>,
    /// The ids of tasks.
    pub(crate) tasks: Vec<String>,
}

impl Filter {
    /// All lists: what a client of the handshake era hears of.
    pub(crate) const LISTS: Self = Self {
        tools: true,
        prompts: true,
        resources: true,
        uris: Vec::new(),
        tasks: Vec::new(),
    };
}
