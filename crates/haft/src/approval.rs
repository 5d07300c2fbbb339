//! Approvals: what a person is asked, what they may answer, and where requests are kept until they have.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::budget::BUDGET_RULE;
use crate::call::{CallId, Origin, Principal, RunId};
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;
use crate::permission::Verdict;
use crate::spec::{Risk, ToolName};
use crate::text::hex;

mod asynchronous;
mod channel;
pub mod decision;
pub mod form;
mod grant;
pub mod id;
pub mod inbox;
mod kept;
pub mod listing;
pub mod memory;
pub mod preview;
pub mod snapshot;
pub mod suspended;
pub mod transition;

pub use asynchronous::AsyncApprover;
pub use channel::{ChannelApprover, PendingRequest, Requests, channel};
pub use decision::{Choice, Decision, HoldFor};
pub(crate) use grant::{Extent, Grant};
pub use id::ApprovalId;
pub use kept::{KeptRules, RuleStore};
pub use snapshot::Snapshot;

use form::Form;
use preview::FileChange;

/// How long a request stands whose asker does not wait for it (contract §2).
pub const STANDS: Duration = Duration::from_hours(7 * 24);

/// A call that waits for an approval, or a question to them: whole and immutable. What is approved is what is written here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its name.
    pub id: ApprovalId,
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The chain's call that it is nested in: that one is gone on with after the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallId>,
    /// The tool.
    pub tool: ToolName,
    /// Who asked for the call.
    pub origin: Origin,
    /// The entry point by which the run was started; on the wire and in the inbox it is `door`.
    #[serde(rename = "door")]
    pub entry_point: String,
    /// What the client calls itself: shown, never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// For whom the session runs.
    pub principal: Principal,
    /// The workspace's root, where there is one.
    pub workspace: String,
    /// The arguments: exactly what runs if it is approved. Refs stay refs, which are hashes of what they name; what the
    /// host fills in is in `bound`.
    pub arguments: String,
    /// The arguments that the host fills in, as its settings write them: a reference to a secret stays a reference.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub bound: Map<String, Value>,
    /// SHA-256 of the canonical arguments (RFC 8785), for logs.
    pub args_digest: String,
    /// SHA-256 of the canonical arguments without those that the permissions state in full: what a grant or a kept rule
    /// must find again.
    #[serde(default)]
    pub unstated: String,
    /// What the call would do, under which conditions, to which files. The approval holds while it is the same.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// What the policy says of each permission by itself, in their order; empty where it was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// How harmful.
    pub risk: Risk,
    /// Why it is asked, in one sentence.
    pub reason: String,
    /// The rule or profile that asks.
    pub rule: String,
    /// Rules that together would allow the call; kept, they hold for calls with the same remaining arguments alone.
    pub suggested: Vec<String>,
    /// What is asked, where it is a question and not a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The hash of the tool's spec as it was asked about.
    pub spec_hash: String,
    /// Binds the answer to this call: see [`fingerprint`].
    pub fingerprint: String,
    /// When it was written, in nanoseconds since 1970.
    pub created: i128,
    /// Until when it can be decided, in nanoseconds since 1970.
    pub expires: i128,
}

impl ApprovalRequest {
    /// The bytes of its arguments and of the files that it shows: nearly all that it can hold.
    pub(crate) fn bytes(&self) -> usize {
        let sides = |change: &FileChange| {
            [&change.before, &change.after].map(|side| side.as_ref().map_or(0, String::len))
        };
        let shown = self.snapshot.preview.iter().flat_map(sides).sum::<usize>();
        self.arguments.len() + shown
    }

    /// Whether it is a question to the person instead of a call.
    pub fn is_question(&self) -> bool {
        self.form.is_some()
    }

    /// Whether an approval holds for this one call alone: a budget is used up, or it is critical, and there is no rule that could be kept
    /// for it. For a connection to a private place there is one, which names host and port.
    pub fn is_decided_each_time(&self) -> bool {
        self.is_over_budget() || self.risk == Risk::Critical && self.suggested.is_empty()
    }

    /// Whether it is made because a budget is used up: an approval lets this one call through, and no rule or grant lets another one.
    pub fn is_over_budget(&self) -> bool {
        self.rule == BUDGET_RULE
    }

    /// What of this request is not as it was shown, where `now` is what the same call would be asked about at this moment;
    /// none where an approval of it still holds. The files' contents are not compared here but just before the call runs.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let changed = |what: &str| Some(format!("{what} changed after it was shown"));
        if self.tool != now.tool || self.spec_hash != now.spec_hash {
            return changed("the tool");
        }
        if self.principal != now.principal {
            let (was, is) = (&self.principal, &now.principal);
            return Some(format!(
                "it was asked for {was}, and this session is of {is}"
            ));
        }
        if self.workspace != now.workspace {
            let (was, is) = (&self.workspace, &now.workspace);
            return Some(format!(
                "it was asked in {was:?}, and this session works in {is:?}"
            ));
        }
        if self.fingerprint != now.fingerprint {
            return changed("its arguments");
        }
        if self.bound != now.bound || self.unstated != now.unstated {
            return changed("what the settings fill in for the tool");
        }
        let effects = self.snapshot.other_effects(&now.snapshot);
        effects.or_else(|| {
            let (was, is) = (self.risk, now.risk);
            (was != is).then(|| format!("its risk was shown as {was} and is {is} now"))
        })
    }
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Somebody decided.
    Decided(Decision),
    /// The request was passed on, and the caller is not to wait here: the call is suspended.
    Later,
    /// Nobody can be asked here.
    Nobody,
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        Self::Decided(decision)
    }
}

/// Asks a person, or something in their place; [`AsyncApprover`] is the same with `async fn`, [`channel`] a queue that the
/// program serves. The executor limits the wait; dropping the future withdraws the question, which somebody else has
/// answered then.
pub trait Approver: Send + Sync {
    /// Asks and waits for the answer.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer>;

    /// The same for a call that is of no use once it waits no longer
    /// ([`WaitMode::WaitThenWithdraw`](crate::session::WaitMode::WaitThenWithdraw)): whoever would ask later has to ask, or
    /// wait for others, now.
    fn ask_now<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        self.ask(request)
    }

    /// What is decided without asking anybody; such a request is kept nowhere.
    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        let _ = request;
        None
    }

    /// Hears of a request that nobody waits for: the call is suspended.
    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        let _ = request;
        Box::pin(async {})
    }
}

opaque_debug!(Approver);

impl<T: Approver + ?Sized> Approver for Arc<T> {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        T::ask(self, request)
    }

    fn ask_now<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        T::ask_now(self, request)
    }

    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        T::automatic(self, request)
    }

    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        T::notify(self, request)
    }
}

/// Approves everything up to a risk, and nobody is asked about the rest.
#[derive(Debug, Clone, Copy)]
pub struct AutoApprove {
    up_to: Risk,
}

impl AutoApprove {
    /// Approves at or below this risk.
    pub fn up_to(risk: Risk) -> Self {
        Self { up_to: risk }
    }
}

impl Approver for AutoApprove {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Nobody })
    }

    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        // How much there may be without a person is what a budget says.
        let yes = request.risk <= self.up_to && !request.is_question() && !request.is_over_budget();
        yes.then(|| Decision::approve(format!("auto:{}", self.up_to), "auto"))
    }
}

/// SHA-256 over tool name, spec hash, principal, workspace root and the effective argument bytes, each with its length.
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
