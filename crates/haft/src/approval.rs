//! Approvals: what a user is asked, what they may answer, and where requests are stored until then.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::call::{CallId, Origin, Principal, RunId};
use crate::future::BoxFuture;
use crate::permission::{Permission, Verdict};
use crate::policy::{Cause, CauseKind, RuleOfTwoState, Safeguards};
use crate::spec::{Risk, ToolName};
use crate::text::hex;
use haft_types::opaque_debug;

mod asynchronous;
pub mod bounded;
mod channel;
pub mod decision;
pub mod form;
pub mod grant;
pub mod inbox;
mod kept;
pub mod listing;
pub mod meaning;
pub mod memory;
pub mod review;
pub mod snapshot;
mod status;
pub mod suspended;
pub mod texts;
pub mod transition;

pub use asynchronous::AsyncApprover;
pub use channel::{ChannelApprover, PendingRequest, RequestReceiver, channel};
pub use decision::{ApprovalScope, Choice, Decision};
pub use grant::Grant;
pub(crate) use grant::GrantExtent;
pub use haft_types::approval_id::ApprovalId;
pub use kept::{RuleStore, SavedRules};
pub use snapshot::CallSnapshot;

use form::QuestionForm;
pub use haft_files::preview;
use meaning::Meaning;
use preview::FileChange;
use review::Review;

/// How long a request stays valid if its client does not wait for it (contract §2).
pub const STANDS: Duration = Duration::from_hours(7 * 24);

/// Maximum size in bytes of the answers in an example for the operator.
const MAX_SAMPLE_ANSWERS: usize = 1000;

/// The size of an effect or a file besides its texts, in bytes, estimated: hashes, numbers, names of members.
const PER_ENTRY: usize = 250;

/// A call that needs approval, or a question: complete and immutable. An approval covers exactly what is written here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id of the request.
    pub id: ApprovalId,
    /// The run that the call belongs to.
    pub run: RunId,
    /// The id of the call in its run.
    pub call: CallId,
    /// The chain's call that it is nested in, which continues after the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallId>,
    /// The tool that is called.
    pub tool: ToolName,
    /// Who made the call: a model, a script, an MCP client, …
    pub origin: Origin,
    /// The entry point by which the run was started; on the wire and in the inbox it is named `door`.
    #[serde(rename = "door")]
    pub entry_point: String,
    /// The client's name for itself: displayed, never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The principal that the session runs for.
    pub principal: Principal,
    /// The root of the workspace, if there is one.
    pub workspace: String,
    /// The arguments: exactly what runs if approved. Refs stay refs (they are hashes of what they name); values that the host fills
    /// in are in `bound`.
    pub arguments: String,
    /// The arguments that the host fills in, as its settings write them: a reference to a secret stays a reference.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub bound: Map<String, Value>,
    /// SHA-256 of the canonical arguments (RFC 8785), for logs.
    pub args_digest: String,
    /// SHA-256 of the canonical arguments, without those that the permissions state in full: a grant or a kept rule must match it.
    #[serde(default)]
    pub unstated: String,
    /// What the call would do, under which conditions, to which files. The approval holds while this stays the same.
    #[serde(flatten)]
    pub snapshot: CallSnapshot,
    /// The policy's verdict on each permission by itself, in order; empty if the policy was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// The risk of the call.
    pub risk: Risk,
    /// Why approval is needed, in one sentence.
    pub reason: String,
    /// The rule or profile that requires approval.
    pub rule: String,
    /// Everything that asks about the call: `rule` is the first of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// What restricts calls where it was requested. It is decided and runs only where nothing of that is missing.
    #[serde(default, skip_serializing_if = "Safeguards::is_empty")]
    pub safeguards: Safeguards,
    /// Which two of the Rule of Two the run holds, and what the call adds, if it would be the third.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_of_two: Option<RuleOfTwoState>,
    /// What a model says of it, if one reviews requests. It is no part of what is decided: an inbox stores it beside the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Box<Review>>,
    /// Rules that together would allow the call; if kept, they only apply to calls with the same remaining arguments.
    pub suggested: Vec<String>,
    /// The form, if this is a question and not a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<QuestionForm>,
    /// The hash of the tool's spec at the time of the request.
    pub spec_hash: String,
    /// Binds the decision to this call: see [`fingerprint`].
    pub fingerprint: String,
    /// Creation time, in nanoseconds since 1970.
    pub created: i128,
    /// Time until which it can be decided, in nanoseconds since 1970.
    pub expires: i128,
    /// Time until which the call waits, in nanoseconds since 1970, if that is earlier. A decision counts after it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<i128>,
}

impl ApprovalRequest {
    /// Returns the approximate size of its arguments, effects, files and meanings, in bytes: nearly all of its content.
    pub(crate) fn bytes(&self) -> usize {
        let CallSnapshot {
            permissions,
            preview,
            meanings,
            ..
        } = &self.snapshot;
        let effect = |wanted: &Permission| wanted.effect.value().len() + PER_ENTRY;
        let file = |file: &FileChange| file.path.len() + file.text_bytes() + PER_ENTRY;
        let effects = permissions.iter().map(effect).sum::<usize>();
        let files = preview.iter().map(file).sum::<usize>();
        let meanings = meanings.iter().map(Meaning::text_bytes).sum::<usize>();
        self.arguments.len() + effects + files + meanings
    }

    /// Returns whether nothing is left to decide once the call stops waiting: the call is denied then.
    pub fn ends_with_the_wait(&self) -> bool {
        self.expires.saturating_sub(self.created) < nanoseconds(STANDS)
    }

    /// Returns the command line with which the operator approves the call, or answers the question: with answers that fit as an example.
    fn decision_command(&self) -> String {
        let id = &self.id;
        let Some(form) = &self.form else {
            return format!("haft approvals approve {id}");
        };
        let answers = Value::Object(form.sample_answers()).to_string();
        // For a shell: a quote in a quoted text ends it, stands by itself, and begins the next one.
        let answers = answers.replace('\'', "'\\''");
        if answers.len() > MAX_SAMPLE_ANSWERS {
            return format!("haft approvals answer {id} --answers @FILE");
        }
        format!("haft approvals answer {id} --answers '{answers}'")
    }

    /// Returns what the operator can do about it.
    pub fn decision_advice(&self) -> String {
        let (id, command) = (&self.id, self.decision_command());
        if self.is_question() {
            format!(
                "`haft approvals show {id}` shows the question; an answer looks like this: {command}"
            )
        } else {
            format!("`{command}`")
        }
    }

    /// Returns whether it is a question to the user instead of a call.
    pub fn is_question(&self) -> bool {
        self.form.is_some()
    }

    /// Returns whether an approval only covers this one call: a budget is used up, a guard asks because of what the run has done, or
    /// the call is critical and no rule could be kept for it. For a connection to a private address there is such a rule; it names
    /// host and port.
    pub fn is_decided_each_time(&self) -> bool {
        self.is_over_budget()
            || self.is_asked_each_time()
            || self.risk == Risk::Critical && self.suggested.is_empty()
    }

    /// Returns whether it exists because a budget is used up: an approval covers this one call, and no rule or grant covers another.
    pub fn is_over_budget(&self) -> bool {
        self.causes
            .iter()
            .any(|cause| cause.kind == CauseKind::Budget)
    }

    /// Returns whether a guard asks because of what the run has done.
    fn is_asked_each_time(&self) -> bool {
        self.causes.iter().any(|cause| cause.each_time) || self.has_unknown_causes()
    }

    /// Returns whether only a person may answer it: a guard or a budget asks, and no rule or setting that approves
    /// calls overrides these.
    /// itself.
    pub fn needs_person(&self) -> bool {
        self.causes.iter().any(Cause::needs_person) || self.has_unknown_causes()
    }

    /// Whether an earlier version of haft wrote it, without its causes.
    fn has_unknown_causes(&self) -> bool {
        self.causes.is_empty() && !self.is_question()
    }

    /// Returns how this request differs from `now`, the request that the same call would make at this moment; `None` if an approval
    /// still holds. The files' contents are not compared here but just before the call runs.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let changed = |what: &str| Some(format!("{what} changed after it was shown"));
        if self.tool != now.tool || self.spec_hash != now.spec_hash {
            return changed("the tool");
        }
        if self.principal != now.principal {
            let (was, is) = (&self.principal, &now.principal);
            return Some(format!(
                "it was requested for {was}, but this session belongs to {is}"
            ));
        }
        if self.workspace != now.workspace {
            let (was, is) = (&self.workspace, &now.workspace);
            return Some(format!(
                "it was requested in {was:?}, but this session works in {is:?}"
            ));
        }
        if self.fingerprint != now.fingerprint {
            return changed("its arguments");
        }
        if self.bound != now.bound || self.unstated != now.unstated {
            return changed("what the settings fill in for the tool");
        }
        let effects = self.snapshot.other_effects(&now.snapshot);
        let effects = effects.or_else(|| {
            let (was, is) = (self.risk, now.risk);
            (was != is).then(|| format!("its risk was shown as {was} but is now {is}"))
        });
        effects.or_else(|| self.new_question(now))
    }

    /// Returns the question of a guard that was not asked yet: an approval answers only what was shown.
    fn new_question(&self, now: &Self) -> Option<String> {
        let is_new = |cause: &&Cause| {
            cause.kind == CauseKind::Guard
                && !self.causes.iter().any(|shown| shown.name == cause.name)
        };
        if self.has_unknown_causes() {
            return None;
        }
        let guard = now.causes.iter().find(is_new)?;
        Some(format!(
            "the guard {} now asks about it: {}",
            guard.name, now.reason
        ))
    }
}

/// Returns a duration as the times of requests are counted.
pub(crate) fn nanoseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

/// An approver's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ApproverReply {
    /// A user, or something in their place, decided.
    Decided(Decision),
    /// The request was passed on and the caller must not wait here: the call is suspended.
    Later,
    /// No one can be asked here.
    Nobody,
}

impl From<Decision> for ApproverReply {
    fn from(decision: Decision) -> Self {
        Self::Decided(decision)
    }
}

/// Asks a user, or something that decides for them. [`AsyncApprover`] is the same with `async fn`; [`channel`] is a queue that
/// the program serves. The executor limits the wait; dropping the future withdraws the question, because someone else has
/// answered it.
pub trait Approver: Send + Sync {
    /// Asks and waits for the answer.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply>;

    /// Like [`ask`](Self::ask), for a call that is useless once it stops waiting
    /// ([`WaitMode::WaitThenWithdraw`](crate::session::WaitMode::WaitThenWithdraw)): an approver that would ask later must ask, or
    /// wait for others, now.
    fn ask_now<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.ask(request)
    }

    /// Returns how long it lets a call wait from now on before it answers [`ApproverReply::Later`]; `None` if it does not limit the wait. `now`:
    /// for a call that is asked about by [`ask_now`](Self::ask_now). The request states it.
    fn wait_limit(&self, request: &ApprovalRequest, now: bool) -> Option<Duration> {
        let _ = (request, now);
        None
    }

    /// Returns how long the client that it asks waits from now on for the answer to a call about which it is asked nothing; `None` if that
    /// is not limited.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Returns a decision made without asking, by a setting or a program; such a request is not stored. It is not called for a request
    /// that only a person may answer ([`ApprovalRequest::needs_person`]).
    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        let _ = request;
        None
    }

    /// Returns the decision that a person has already made about this very call, or makes at a prompt outside haft; such a request is
    /// not stored.
    fn existing_decision(&self, request: &ApprovalRequest) -> Option<Decision> {
        let _ = request;
        None
    }

    /// Notifies the approver of a request that no call waits for, because the call is suspended.
    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        let _ = request;
        Box::pin(async {})
    }
}

opaque_debug!(Approver);

impl<T: Approver + ?Sized> Approver for Arc<T> {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        T::ask(self, request)
    }

    fn ask_now<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        T::ask_now(self, request)
    }

    fn wait_limit(&self, request: &ApprovalRequest, now: bool) -> Option<Duration> {
        T::wait_limit(self, request, now)
    }

    fn patience(&self) -> Option<Duration> {
        T::patience(self)
    }

    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        T::automatic(self, request)
    }

    fn existing_decision(&self, request: &ApprovalRequest) -> Option<Decision> {
        T::existing_decision(self, request)
    }

    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        T::notify(self, request)
    }
}

/// Approves everything up to a risk; no one is asked about the rest. What a guard or a budget asks, the executor never puts to it.
#[derive(Debug, Clone, Copy)]
pub struct AutoApprove {
    up_to: Risk,
}

impl AutoApprove {
    /// Approves calls at or below this risk.
    pub fn up_to(risk: Risk) -> Self {
        Self { up_to: risk }
    }
}

impl Approver for AutoApprove {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async { ApproverReply::Nobody })
    }

    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        let yes = request.risk <= self.up_to && !request.is_question() && !request.needs_person();
        yes.then(|| Decision::approve(format!("auto:{}", self.up_to), "auto"))
    }
}

/// Returns the SHA-256 hash of tool name, spec hash, principal, workspace root and effective argument bytes, each with its length.
pub fn fingerprint(
    tool: &ToolName,
    spec_hash: &str,
    principal: &Principal,
    workspace: &str,
    arguments: &str,
) -> String {
    let parts = [
        tool.as_str(),
        spec_hash,
        &principal.tenant,
        &principal.subject,
        workspace,
        arguments,
    ];
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}
