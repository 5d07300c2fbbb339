//! What waits for a person, as it is shown and decided: the same for the command and the HTTP API.

use haft::approval::inbox::Entry;
use haft::approval::{Choice, Decision, Scope};
use haft::clock;
use haft::result::Outcome;
use serde::Serialize;

use crate::assemble::House;
use crate::exit::Exit;

pub(crate) mod decide;
pub(crate) mod fact;
pub(crate) mod rule;
pub(crate) mod webhook;
pub(crate) mod whole;

pub(crate) use decide::Refused;
use fact::Fact;

/// A request as it is listed (contract §9, and what a card needs).
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    pub(crate) id: String,
    kind: &'static str,
    pub(crate) run: String,
    call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    pub(crate) tool: String,
    pub(crate) risk: String,
    reason: String,
    rule: String,
    args_digest: String,
    pub(crate) origin: &'static str,
    pub(crate) door: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    workspace: String,
    pub(crate) fact: Fact,
    pub(crate) created: String,
    expires: String,
    pub(crate) status: String,
    attended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decided>,
}

/// A decision as it is shown.
#[derive(Debug, Serialize)]
struct Decided {
    choice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stop: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    by: String,
    from: String,
    at: String,
}

impl Item {
    /// An entry of the inbox, for somebody who may see it.
    pub(crate) fn of(house: &House, entry: &Entry) -> Self {
        let request = &entry.request;
        let kind = if request.is_question() {
            "question"
        } else {
            "call"
        };
        Self {
            id: request.id.to_string(),
            kind,
            run: request.run.to_string(),
            call: request.call.to_string(),
            parent: request.parent.as_ref().map(ToString::to_string),
            tool: request.tool.to_string(),
            risk: request.risk.to_string(),
            reason: request.reason.clone(),
            rule: request.rule.clone(),
            args_digest: request.args_digest.clone(),
            origin: request.origin.as_str(),
            door: request.door.clone(),
            client: request.client.clone(),
            workspace: request.workspace.clone(),
            fact: Fact::of(request, house.redactor()),
            created: clock::rfc3339(request.created),
            expires: clock::rfc3339(request.expires),
            status: entry.status.to_string(),
            attended: entry.attended,
            decision: entry.decision.as_ref().map(Decided::of),
        }
    }
}

impl Decided {
    fn of(decision: &Decision) -> Self {
        let mut decided = Self {
            choice: decision.choice.as_str(),
            scope: None,
            edited: false,
            message: None,
            stop: false,
            rule: None,
            by: decision.by.clone(),
            from: decision.from.clone(),
            at: clock::rfc3339(decision.at),
        };
        match &decision.choice {
            Choice::Approve {
                scope,
                edited,
                rule,
            } => {
                decided.scope = Some(*scope);
                decided.edited = edited.is_some();
                decided.rule.clone_from(rule);
            }
            Choice::Deny { message, stop } => {
                decided.message.clone_from(message);
                decided.stop = *stop;
            }
            Choice::Answer { .. } => {}
        }
        decided
    }
}

/// The exit code of a decided request's outcome.
pub(crate) fn outcome_exit(outcome: &Outcome) -> Exit {
    Exit::of(outcome, true)
}
