//! Decisions about approval requests: edits must be valid, and an approved call must still be what the request showed.

use std::sync::Arc;

use haft::approval::inbox::{InboxError, RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, ApprovalRequest, ApprovalScope, Choice, Decision};
use haft::call::Origin;
use haft::error::ErrorKind;
use haft::session::Session;
use haft::spec::Risk;
use haft::toolset::Toolset;

use crate::access::AccessTokens;
use crate::app::App;
use crate::problem::{Problem, ProblemKind};

/// The reason why a decision was rejected.
#[derive(Debug)]
pub enum DecisionError {
    /// The inbox rejected it: there is no such request, it is decided already, or it ended without a decision.
    Inbox(InboxError),
    /// The call would not do here what the request shows.
    Conflict {
        /// The request.
        id: ApprovalId,
        /// What differs.
        what: String,
    },
    /// The edited arguments or the answers are invalid, or the policy denies them.
    Unfit {
        /// Whether the policy denied them; otherwise they are malformed.
        denied: bool,
        /// The reason.
        what: String,
    },
}

impl App {
    /// Records a decision after checking its edits and whether the approval can hold; the waiting process, or the follower, acts on it. A
    /// rejected decision leaves the request as it was.
    ///
    /// # Errors
    /// [`DecisionError`] with the reason: the request is unknown, decided, expired or changed, or its call could not run here.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        decision: Decision,
    ) -> Result<StoredApproval, DecisionError> {
        let inbox = self.executor().inbox();
        let entry = inbox.get(id).await.map_err(DecisionError::Inbox)?;
        let entry = entry.ok_or_else(|| DecisionError::Inbox(InboxError::NotFound(id.clone())))?;
        let decision = with_suggested_rule(&entry, decision);
        if entry.is_open()
            && let Err(refused) = self.check(&entry, &decision.choice).await
        {
            // If the request has ended meanwhile, what it showed is gone with it: that says why.
            let now = inbox.get(id).await.map_err(DecisionError::Inbox)?;
            if now.is_some_and(|now| now.is_open()) {
                return Err(refused);
            }
        }
        inbox
            .decide(id, &decision)
            .await
            .map_err(DecisionError::Inbox)
    }

    /// Checks a decision: edits must be valid, no edit may lower a deny, and an approved call must still be what the request showed.
    async fn check(&self, entry: &StoredApproval, choice: &Choice) -> Result<(), DecisionError> {
        let request = &entry.request;
        if !matches!(choice, Choice::Deny { .. }) {
            self.check_token(request)?;
        }
        match choice {
            Choice::Approve { .. } if request.is_question() => Err(not_applicable(
                "a question has to be answered, not approved",
            )),
            Choice::Approve {
                scope,
                edited,
                rule,
            } => {
                self.check_scope(request, *scope, rule.as_deref())?;
                if let Some(edited) = edited {
                    self.check_edit(request, edited)?;
                }
                // A client that waits for it, or makes the call again, does the comparison itself; otherwise the call runs here, under the
                // settings of this process.
                let elsewhere = entry.attended || request.origin == Origin::Hook;
                if elsewhere || request.workspace != self.workspace() {
                    return Ok(());
                }
                self.check_request(request).await
            }
            Choice::Answer { answers } => check_answers(request, answers),
            Choice::Deny { .. } => Ok(()),
        }
    }

    /// Checks that the access token of a request's call still counts: whoever removed it wants nothing more to run for it.
    fn check_token(&self, request: &ApprovalRequest) -> Result<(), DecisionError> {
        let tokens = AccessTokens::load(&self.site().home).unwrap_or_default();
        match tokens.lapse(&request.principal, request.created) {
            Some(lapse) => Err(not_applicable(format!("{lapse}: deny the request"))),
            None => Ok(()),
        }
    }

    fn check_scope(
        &self,
        request: &ApprovalRequest,
        scope: ApprovalScope,
        rule: Option<&str>,
    ) -> Result<(), DecisionError> {
        if scope != ApprovalScope::Once && request.is_decided_each_time() {
            return Err(not_applicable(if request.is_over_budget() {
                "a budget applies, so each such call needs its own approval: approve it once"
            } else if request.risk == Risk::Critical {
                "a critical call needs approval each time: approve it once"
            } else {
                "a guard asks about it because of what the run has done, so each such call needs its own approval: approve it once"
            }));
        }
        if scope != ApprovalScope::Always {
            return Ok(());
        }
        // The rule would apply to every tenant.
        if request.principal.tenant != self.principal().tenant {
            return Err(not_applicable(
                "a permanent rule applies to the whole application, and this request belongs to another tenant: approve it once or for its session",
            ));
        }
        let problem = self.rule_check().problem(request, rule);
        problem.map_or(Ok(()), |what| Err(not_applicable(what)))
    }

    fn check_edit(&self, request: &ApprovalRequest, edited: &str) -> Result<(), DecisionError> {
        if request.origin == Origin::Hook {
            return Err(not_applicable(
                "the agent runs this call itself, as it made it: approve it unchanged, or deny it and say what to change",
            ));
        }
        let tools = self.tools().snapshot();
        let name = request.tool.as_str();
        let tool = tools.entry(name);
        let tool =
            tool.ok_or_else(|| not_applicable(format!("the tool {name} no longer exists")))?;
        let judged = self.executor().explain(tool, edited);
        let judged = judged.map_err(|failure| DecisionError::Unfit {
            denied: failure.kind == ErrorKind::Denied,
            what: failure.message,
        })?;
        if judged.verdict == haft::Verdict::Deny {
            let what = "the policy denies the call with these arguments".to_owned();
            return Err(DecisionError::Unfit { denied: true, what });
        }
        Ok(())
    }

    /// Checks whether the call of a request could run here and would do what the request shows.
    ///
    /// # Errors
    /// [`DecisionError`] with why it could not, or what differs.
    pub async fn check_request(&self, request: &ApprovalRequest) -> Result<(), DecisionError> {
        self.check_token(request)?;
        let session = Session::builder(Arc::clone(self.tools()))
            .with_principal(request.principal.clone())
            .with_unknown_tool_hint(self.absent())
            .build();
        let session = session.map_err(|e| not_applicable(e.to_string()))?;
        session.expand([request.tool.as_str()]);
        let checked = self.executor().check_request(&session, request).await;
        checked.map_err(|failure| match failure.kind {
            ErrorKind::Conflict => DecisionError::Conflict {
                id: request.id.clone(),
                what: failure.message,
            },
            kind => DecisionError::Unfit {
                denied: kind == ErrorKind::Denied,
                what: format!("the call cannot run here: {}", failure.message),
            },
        })
    }
}

/// Adds the suggested rule to an approval for good that names none.
fn with_suggested_rule(entry: &StoredApproval, mut decision: Decision) -> Decision {
    if let Choice::Approve {
        scope: ApprovalScope::Always,
        rule: rule @ None,
        ..
    } = &mut decision.choice
    {
        *rule = entry.request.suggested.first().cloned();
    }
    decision
}

fn not_applicable(what: impl Into<String>) -> DecisionError {
    DecisionError::Unfit {
        denied: false,
        what: what.into(),
    }
}

/// Checks the answers against the form; a call without a form is answered with a text in place of its tool's result.
fn check_answers(request: &ApprovalRequest, answers: &str) -> Result<(), DecisionError> {
    let answers: serde_json::Map<_, _> = serde_json::from_str(answers)
        .map_err(|e| not_applicable(format!("the answers are not a JSON object: {e}")))?;
    let is_text = || {
        answers
            .get("text")
            .is_some_and(serde_json::Value::is_string)
    };
    let refusals = match &request.form {
        Some(form) => form.validate_answers(&answers),
        None if is_text() => Vec::new(),
        None => vec!["a call is answered with {\"text\": \"…\"}".to_owned()],
    };
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(not_applicable(refusals.join("; ")))
    }
}

impl DecisionError {
    /// Converts the refusal into a problem for the command line.
    pub fn problem(self) -> Problem {
        match self {
            Self::Inbox(error) => {
                let problem = Problem::new(kind(&error), error.to_string());
                problem.advise(remedy(&error))
            }
            Self::Conflict { id, what } => Problem::usage(what).advise(format!(
                "nothing was decided: `haft approvals deny {id}`, then make the call again, which asks about what it does now; or, if only settings differ, approve it with the options of the process that asked (--profile, --config, -c)"
            )),
            Self::Unfit { denied, what } => {
                let kind = if denied {
                    ProblemKind::Denied
                } else {
                    ProblemKind::Usage
                };
                Problem::new(kind, what).advise("nothing was decided: the request is still pending")
            }
        }
    }
}

/// Returns what to do about an error of the inbox.
fn remedy(error: &InboxError) -> String {
    let done = |id: &ApprovalId, what: &str| format!("`haft approvals show {id}` shows {what}");
    match error {
        InboxError::NotFound(_) => "`haft approvals list --all` shows all requests".to_owned(),
        InboxError::Decided { id, .. } => done(id, "the decision and what became of the call"),
        InboxError::Claimed(id) => done(id, "what became of the call"),
        InboxError::Open(id) => done(id, "what is to be decided"),
        InboxError::Over {
            status: RequestStatus::Expired,
            ..
        } => "make the call again: that makes a new request".to_owned(),
        InboxError::Over { id, .. } => {
            format!("nothing is left to decide: {}", done(id, "how it ended"))
        }
        InboxError::Unavailable(_) => {
            "nothing was decided: do what the error says, then decide again; `haft doctor` checks the state folder"
                .to_owned()
        }
    }
}

/// Returns the kind of problem that an error of the inbox is (contract §1).
fn kind(error: &InboxError) -> ProblemKind {
    match error {
        InboxError::NotFound(_)
        | InboxError::Decided { .. }
        | InboxError::Claimed(_)
        | InboxError::Open(_) => ProblemKind::Usage,
        InboxError::Over { .. } => ProblemKind::Denied,
        InboxError::Unavailable(_) => ProblemKind::Failed,
    }
}
