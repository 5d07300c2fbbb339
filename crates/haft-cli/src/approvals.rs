//! What waits for a person, as it is shown and decided: the same for the command and the HTTP API.

use std::fmt::Write as _;

use haft::approval::inbox::{Entry, InboxError};
use haft::approval::{ApprovalId, Choice, Decision, Scope};
use haft::clock;
use haft::error::ErrorKind;
use haft::result::Outcome;
use haft::toolset::Toolset;
use serde::Serialize;

use crate::assemble::House;
use crate::exit::Exit;
use crate::problem::Problem;

pub(crate) mod fact;
pub(crate) mod rule;
pub(crate) mod webhook;
pub(crate) mod whole;

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

/// Why a decision was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The inbox says no.
    Inbox(InboxError),
    /// The changed arguments or the answers do not fit, or the policy denies them.
    Unfit {
        /// Denied by the policy; malformed otherwise.
        denied: bool,
        /// Why.
        what: String,
    },
}

impl House {
    /// Decides, after a look at what was changed; whoever waits, or the follower, acts on it.
    pub(crate) async fn decide(
        &self,
        id: &ApprovalId,
        decision: Decision,
    ) -> Result<Entry, Refused> {
        let inbox = self.executor().inbox();
        let entry = inbox.get(id).await.map_err(Refused::Inbox)?;
        let entry = entry.ok_or_else(|| Refused::Inbox(InboxError::NotFound(id.clone())))?;
        self.check(&entry, &decision.choice)?;
        let decision = self.kept(&entry, decision)?;
        inbox.decide(id, &decision).await.map_err(Refused::Inbox)
    }

    /// What was changed must fit, and no change lowers a deny.
    fn check(&self, entry: &Entry, choice: &Choice) -> Result<(), Refused> {
        let unfit = |what: String| Refused::Unfit {
            denied: false,
            what,
        };
        match choice {
            Choice::Approve {
                edited: Some(edited),
                ..
            } => {
                let tools = self.all().snapshot();
                let name = entry.request.tool.as_str();
                let tool = tools.entry(name);
                let tool = tool.ok_or_else(|| unfit(format!("there is no tool {name} now")))?;
                let judged = self.executor().explain(tool, edited);
                let judged = judged.map_err(|failure| Refused::Unfit {
                    denied: failure.kind == ErrorKind::Denied,
                    what: failure.message,
                })?;
                if judged.verdict == haft::Verdict::Deny {
                    let what = "the policy denies the call with these arguments".to_owned();
                    return Err(Refused::Unfit { denied: true, what });
                }
                Ok(())
            }
            Choice::Approve { .. } if entry.request.is_question() => {
                Err(unfit("a question is answered, not approved".to_owned()))
            }
            Choice::Answer { answers } => {
                let answers: serde_json::Map<_, _> = serde_json::from_str(answers)
                    .map_err(|e| unfit(format!("the answers are no JSON object: {e}")))?;
                let refusals = match &entry.request.form {
                    Some(form) => form.refusals(&answers),
                    None if answers
                        .get("text")
                        .is_some_and(serde_json::Value::is_string) =>
                    {
                        Vec::new()
                    }
                    None => vec!["a call is answered with {\"text\": \"…\"}".to_owned()],
                };
                if refusals.is_empty() {
                    Ok(())
                } else {
                    Err(unfit(refusals.join("; ")))
                }
            }
            Choice::Approve { .. } | Choice::Deny { .. } => Ok(()),
        }
    }

    /// An approval for good: the rule is kept before the decision counts, so that neither is without the other for long.
    fn kept(&self, entry: &Entry, mut decision: Decision) -> Result<Decision, Refused> {
        let Choice::Approve {
            scope: Scope::Always,
            rule,
            ..
        } = &mut decision.choice
        else {
            return Ok(decision);
        };
        let unfit = |what: String| Refused::Unfit {
            denied: false,
            what,
        };
        let suggested = entry.request.suggested.first().cloned();
        let text = rule.clone().or(suggested).ok_or_else(|| {
            unfit("no rule would allow just this call: approve it once or for the session".into())
        })?;
        if !entry.is_open() {
            return Ok(decision);
        }
        *rule = Some(text.clone());
        rule::keep(self.home(), &entry.request, &text, &decision.by).map_err(unfit)?;
        Ok(decision)
    }
}

impl Refused {
    /// As a command says it.
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::Inbox(error) => {
                let problem = Problem::new(exit(&error), error.to_string());
                match error {
                    InboxError::NotFound(_) => problem.advise("`haft approvals list` shows them"),
                    InboxError::Over { .. } => problem.advise("make the call again to ask again"),
                    _ => problem,
                }
            }
            Self::Unfit { denied, what } => {
                let exit = if denied { Exit::Denied } else { Exit::Usage };
                Problem::new(exit, what).advise("nothing was decided")
            }
        }
    }
}

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The exit code of a refusal (contract §1).
fn exit(error: &InboxError) -> Exit {
    match error {
        InboxError::NotFound(_)
        | InboxError::Decided { .. }
        | InboxError::Claimed(_)
        | InboxError::Open(_) => Exit::Usage,
        InboxError::Over { .. } => Exit::Denied,
        InboxError::Unavailable(_) => Exit::Failed,
    }
}

/// The exit code of a decided request's outcome.
pub(crate) fn outcome_exit(outcome: &Outcome) -> Exit {
    Exit::of(outcome, true)
}
