//! Approvals: what a person is asked, what they may answer, and where requests are kept until they have.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::audit::BoxFuture;
use crate::call::{CallId, Origin, Principal, RunId};
use crate::permission::{Permission, Verdict};
use crate::spec::{Risk, ToolName, hex};

pub mod decision;
pub mod form;
mod grant;
pub mod inbox;
pub mod memory;
pub mod preview;

pub use decision::{Choice, Decision, Scope};
pub(crate) use grant::Grant;

use form::Form;
use preview::FileChange;

/// Random bytes of an id: nobody guesses one.
const ID_BYTES: usize = 12;

/// Names a request, for good and everywhere: `ap-` and 24 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(String);

impl ApprovalId {
    /// Keeps an id as given.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// A fresh one; none where the system has no randomness to give.
    pub(crate) fn generate() -> Option<Self> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).ok()?;
        Some(Self(format!("ap-{}", hex(&random))))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ApprovalId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl std::fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A call that waits for a person, or a question to them: whole and immutable. What is approved is what is written here.
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
    /// By which door the run was opened.
    pub door: String,
    /// What the client calls itself: shown, never trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// For whom the session runs.
    pub principal: Principal,
    /// The workspace's root, where there is one.
    pub workspace: String,
    /// The effective arguments: exactly what runs if it is approved. Refs stay refs, which are hashes of what they name.
    pub arguments: String,
    /// SHA-256 of the canonical arguments (RFC 8785), for logs.
    pub args_digest: String,
    /// What the call would do.
    pub permissions: Vec<Permission>,
    /// What the policy says of each permission by itself, in their order; empty where it was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
    /// How harmful.
    pub risk: Risk,
    /// Why it is asked, in one sentence.
    pub reason: String,
    /// The rule or profile that asks.
    pub rule: String,
    /// Rules that would allow it for good; never wider than the call.
    pub suggested: Vec<String>,
    /// What would become of which files. The approval holds for the files as they are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preview: Vec<FileChange>,
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
    /// Whether it is a question to the person instead of a call.
    pub fn is_question(&self) -> bool {
        self.form.is_some()
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

/// Whoever is asked. The executor limits the wait; dropping the future withdraws the question, which somebody else has
/// answered then.
pub trait Approver: Send + Sync + std::fmt::Debug {
    /// Asks and waits for the answer.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer>;

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
        let yes = request.risk <= self.up_to && !request.is_question();
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
