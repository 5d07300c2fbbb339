//! Approval requests as data: the same for the command line and the HTTP API.

use haft::approval::inbox::StoredApproval;
use haft::approval::{ApprovalRequest, ApprovalScope, Choice, Decision};
use haft::clock;
use haft::policy::RuleOfTwoState;
use serde::Serialize;

use crate::app::App;
use crate::fact::Fact;
use reviews::ReviewSummary;

pub mod alone;
pub mod file;
pub mod reviews;
pub mod whole;

pub use crate::fact;

/// The tool that asks for a command's connection.
const CONNECT: &str = "connect";

/// A request in a list (contract §9, plus what a card needs).
#[derive(Debug, Serialize)]
pub struct ApprovalListItem {
    /// Its id.
    pub id: String,
    kind: &'static str,
    /// The run of the call.
    pub run: String,
    call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The call's risk: `safe`, `high` or `critical`.
    pub risk: String,
    reason: String,
    /// Which two of the Rule of Two the run holds, and what the call would do, if it would be the third.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_of_two: Option<String>,
    rule: String,
    args_digest: String,
    /// How the call reached the executor: `host`, `model`, `chain`, `mcp`, `prompt` or `hook`.
    pub origin: &'static str,
    /// The entry point of its run.
    pub door: String,
    /// The client's own name: of an agent with its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    workspace: String,
    /// What it is about, in one line.
    pub fact: Fact,
    /// The time of creation: RFC 3339, UTC.
    pub created: String,
    /// The time until which it can be decided: RFC 3339, UTC.
    pub expires: String,
    /// The time until which its call waits, if that is earlier; absent once the call no longer waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<String>,
    /// What happens at the earlier of the two times, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<&'static str>,
    /// Its status in the inbox.
    pub status: String,
    attended: bool,
    /// Why it cannot be approved together with others; absent if it can, and once it is no longer pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    alone: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<DecisionSummary>,
    /// What a reviewer says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewSummary>,
    /// Why it ended without its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A decision in a list.
#[derive(Debug, Serialize)]
struct DecisionSummary {
    choice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<ApprovalScope>,
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

impl ApprovalListItem {
    /// Converts an entry of the inbox, for a user who may see it.
    pub fn of(app: &App, entry: &StoredApproval) -> Self {
        let request = &entry.request;
        let kind = if request.is_question() {
            "question"
        } else {
            "call"
        };
        let alone = || alone::reason(&app.executor().policy(), request);
        let waits = request
            .waits_until
            .filter(|_| entry.is_open() && entry.attended);
        Self {
            id: request.id.to_string(),
            kind,
            run: request.run.to_string(),
            call: request.call.to_string(),
            parent: request.parent.as_ref().map(ToString::to_string),
            tool: request.tool.to_string(),
            risk: request.risk.to_string(),
            reason: request.reason.clone(),
            rule_of_two: request.rule_of_two.and_then(RuleOfTwoState::sentence),
            rule: request.rule.clone(),
            args_digest: request.args_digest.clone(),
            origin: request.origin.as_str(),
            door: request.entry_point.clone(),
            client: request.client.clone(),
            workspace: request.workspace.clone(),
            fact: Fact::of(request, app.redactor()),
            created: clock::rfc3339(request.created),
            expires: clock::rfc3339(request.expires),
            waits_until: waits.map(clock::rfc3339),
            then: entry
                .is_open()
                .then(|| then(request, waits.is_some()))
                .flatten(),
            status: entry.status.to_string(),
            attended: entry.attended,
            alone: entry.is_open().then(alone).flatten(),
            decision: entry.decision.as_ref().map(DecisionSummary::of),
            review: ReviewSummary::of(entry, app.redactor()),
            why: entry
                .why
                .as_deref()
                .map(|why| app.redactor().redact(why).into_owned()),
        }
    }
}

/// Returns what happens when the time of a request is over. `waits`: its call stops waiting before it expires.
fn then(request: &ApprovalRequest, waits: bool) -> Option<&'static str> {
    if request.ends_with_the_wait() {
        return Some(match request.tool.as_str() {
            CONNECT => "the command gets an error; the agent must run it again",
            _ => "the call is denied; the agent must make it again",
        });
    }
    waits.then_some("the client stops waiting; a decision still counts")
}

impl DecisionSummary {
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
