//! `AgentPrompt`: leaves a call that a person must decide to the agent's own prompt, which asks before the agent runs anything.

use std::sync::Arc;

use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::future::BoxFuture;
use haft_hook::Agent;

use crate::hook::open_calls::OpenAgentCalls;

/// The approver of a session whose agent asks its user by itself.
pub(super) struct AgentPrompt {
    pub(super) agent: Agent,
    pub(super) calls: Arc<OpenAgentCalls>,
}

impl Approver for AgentPrompt {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async { ApproverReply::Nobody })
    }

    fn existing_decision(&self, request: &ApprovalRequest) -> Option<Decision> {
        if request.is_question() {
            return None;
        }
        let asks = self.calls.prompt(request);
        // The user's answer comes back only as a call that ran or did not.
        asks.then(|| Decision::approve(format!("the prompt of {}", self.agent.title()), "agent"))
    }
}
