//! `SuspendedCall`: a call that waits for a decision, or ended or was killed while it did, so that the same call made again finds the outcome.
//!
//! A request in the inbox names its run, and a call of the same run finds it there. This covers the other cases: a call that
//! waits for the request of a nested call (a script), and a call that is made again in another run, because each call of its
//! entry point is a run of its own or because the process of its run has exited. Both are part of the request's row
//! ([`WaitingCalls`](crate::approval::inbox::WaitingCalls)), so that what was decided and who waits for it never disagree.

use sha2::{Digest, Sha256};

use crate::approval::ApprovalId;
use crate::approval::status::RequestStatus;
use crate::approval::transition::{CallState, CallerState};
use crate::call::{CallId, Principal, RunId};
use crate::future::BoxFuture;
use crate::json::canonical::args_digest;
use crate::spec::ToolName;
use crate::text::hex;
use haft_types::opaque_debug;

/// A call that waits for a decision or ended suspended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedCall {
    /// The run that it belongs to.
    pub run: RunId,
    /// The id of the call in its run.
    pub call: CallId,
    /// The [`key`] that identifies it when it is made again.
    pub key: String,
    /// The request that it waits for.
    pub approval: ApprovalId,
    /// Whether the request belongs to a nested call, which resumes it; otherwise the outcome of the request's call is its own.
    pub within: bool,
    /// Whether its run exists only for this call, so that a repeated call is in another run.
    pub alone: bool,
}

/// A suspended call, and the state of the row that it waits in, both at the same moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedEntry {
    /// The call.
    pub call: SuspendedCall,
    /// The state of its request and its own. A request that is not stored any more ended long ago, and counts as expired.
    pub state: CallState,
}

impl SuspendedEntry {
    /// Returns the entry of a stored call whose request is in this state (`None`: it is not stored any more), and which has ended or not.
    pub fn of(call: SuspendedCall, has_ended: bool, request: Option<CallState>) -> Self {
        let caller = match (call.within, has_ended) {
            (_, true) => CallerState::Ended,
            (true, false) => CallerState::Within,
            (false, false) => CallerState::Own,
        };
        let request = request.unwrap_or(CallState::of(RequestStatus::Expired));
        let state = CallState { caller, ..request };
        Self { call, state }
    }

    /// Returns whether the call has ended after the host resumed it without its client: its outcome can be collected.
    pub fn has_ended(&self) -> bool {
        self.state.caller == CallerState::Ended
    }
}

/// What a client that makes a suspended call again collects: it is taken once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedCall {
    /// The state before; it [tells](CallState::owes_outcome) whether an outcome was owed.
    pub before: CallState,
    /// The outcome, as contract §3 states it, as JSON; of a call in doubt there is none.
    pub outcome: Option<String>,
}

/// The state of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OtherRun {
    /// A session of it lives: its client can return to its calls there.
    InUse,
    /// Its session is gone, and another process resumes it now.
    Resumed,
    /// It has no session any more.
    Abandoned,
    /// It has ended.
    Closed,
}

/// Tells the state of a host's other runs.
pub trait OtherRuns: Send + Sync {
    /// Returns the state of this run; `InUse` if that is unknown.
    fn look(&self, run: &RunId) -> OtherRun;

    /// Returns whether a call of an abandoned run can be resumed from stored state; true if that is unknown.
    fn can_resume<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> BoxFuture<'a, bool>;
}

opaque_debug!(OtherRuns);

/// Whose repeated calls count as one call, and where.
#[derive(Debug, Clone, Copy)]
pub struct RepeatScope<'a> {
    /// Whom the call is made for.
    pub principal: &'a Principal,
    /// The workspace, which the arguments do not name.
    pub workspace: &'a str,
    /// The name of the [group of runs](crate::session::RunGroup) that makes it, if it is in one: the call of an agent's session is never
    /// that of another session.
    pub group: Option<&'a str>,
}

/// Returns the key that identifies a repeated call: tool, principal, workspace, group, and the arguments in canonical form.
pub fn key(tool: &ToolName, scope: RepeatScope<'_>, arguments: &str) -> String {
    let digest = args_digest(arguments);
    let parts = [
        tool.as_str(),
        &scope.principal.tenant,
        &scope.principal.subject,
        scope.workspace,
        &digest,
    ];
    let mut hasher = Sha256::new();
    // A call without a group keeps the key under which an older haft stored it.
    for part in parts.into_iter().chain(scope.group) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_sessions_workspaces_principals_and_arguments_apart() {
        let ann = Principal::local("ann");
        let eve = Principal::local("eve");
        let tool = ToolName::new("run_command").unwrap();
        let of = |principal, workspace, group, arguments| {
            let scope = RepeatScope {
                principal,
                workspace,
                group,
            };
            key(&tool, scope, arguments)
        };
        let keys = [
            of(&ann, "/w", None, "{}"),
            of(&ann, "/w", Some("one"), "{}"),
            of(&ann, "/w", Some("other"), "{}"),
            of(&ann, "/w", Some(""), "{}"),
            of(&ann, "/v", Some("one"), "{}"),
            of(&eve, "/w", Some("one"), "{}"),
            of(&ann, "/w", Some("one"), r#"{"a":1}"#),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(one), "row {at}");
        }
        assert_eq!(keys[1], of(&ann, "/w", Some("one"), " { } "));
    }
}
