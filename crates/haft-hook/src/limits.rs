//! `AgentLimits`: what an agent lets a hook do, as data.

use std::time::Duration;

use serde::Serialize;

/// What an agent lets a hook do, and what it does if the hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a trait of its own that readers ask for by name"
)]
pub struct AgentLimits {
    /// How long the agent waits for an answer: the timeout in haft's entry, or the agent's own if none can be set.
    pub wait: Duration,
    /// Whether the call runs if the hook crashes, is missing or is late, in at least one of these cases.
    pub fails_open: bool,
    /// What happens then and what prevents it, in one sentence.
    pub failure: &'static str,
    /// Whether the answer before a tool can make the agent ask its user.
    pub can_ask: bool,
    /// Whether the answer can change the tool's input.
    pub can_rewrite: bool,
    /// Whether an explicit allow keeps the agent from asking its user itself.
    pub allow_skips_prompt: bool,
    /// Whether calls have ids, the same before and after.
    pub has_call_ids: bool,
    /// Whether a call that failed, was interrupted or was denied has an after event.
    pub reports_failures: bool,
}
