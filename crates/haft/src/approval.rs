//! Approvals: what a person is asked, and what they may answer.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::audit::BoxFuture;
use crate::call::{CallId, Origin, Principal, RunId};
use crate::permission::Permission;
use crate::spec::{Risk, ToolName, hex};

/// A call that waits for a person: whole and immutable.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Who asked for the call.
    pub origin: Origin,
    /// For whom the session runs.
    pub principal: Principal,
    /// The effective arguments: exactly what runs if it is approved.
    pub arguments: String,
    /// What the call would do.
    pub permissions: Vec<Permission>,
    /// How harmful.
    pub risk: Risk,
    /// Why it is asked, in one sentence.
    pub reason: String,
    /// The rule or profile that asks.
    pub rule: String,
    /// Rules that would allow it for good; never wider than the call.
    pub suggested: Vec<String>,
    /// Binds the answer to this call: see [`fingerprint`].
    pub fingerprint: String,
}

/// How long an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For this call.
    Once,
    /// For the same effects of the same tool, until the session ends.
    Session,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Run it.
    Approved {
        /// For how long.
        scope: Scope,
        /// Other arguments, which are checked and judged again; a guard's deny stands.
        edited: Option<String>,
        /// Who decided, as the approver knows it.
        by: String,
    },
    /// Do not run it.
    Denied {
        /// A word for the caller.
        message: Option<String>,
        /// End the whole session, too.
        stop: bool,
        /// Who decided.
        by: String,
    },
    /// Nobody can be asked here.
    Nobody,
}

/// Whoever is asked. The executor limits the wait.
pub trait Approver: Send + Sync + std::fmt::Debug {
    /// Asks and waits for the answer.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer>;
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
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        let by = format!("auto:{}", self.up_to);
        let yes = Answer::Approved {
            scope: Scope::Once,
            edited: None,
            by,
        };
        let answer = if request.risk <= self.up_to {
            yes
        } else {
            Answer::Nobody
        };
        Box::pin(async move { answer })
    }
}

/// What a person allowed until the session ends: these effects of this tool, up to this risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    tool: ToolName,
    risk: Risk,
    permissions: Vec<Permission>,
    by: String,
}

impl Grant {
    /// The grant that an approval of this request for the session gives.
    pub(crate) fn of(request: &ApprovalRequest, by: &str) -> Self {
        Self {
            tool: request.tool.clone(),
            risk: request.risk,
            permissions: request.permissions.clone(),
            by: by.to_owned(),
        }
    }

    /// Who gave it, when it covers a call.
    pub(crate) fn covers(
        &self,
        tool: &ToolName,
        risk: Risk,
        wanted: &[Permission],
    ) -> Option<&str> {
        let all = wanted
            .iter()
            .all(|permission| self.permissions.contains(permission));
        // A call without effects of its own is granted as such, not through another call's effects.
        let alike = wanted.is_empty() == self.permissions.is_empty();
        (self.tool == *tool && risk <= self.risk && all && alike).then_some(&self.by)
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
