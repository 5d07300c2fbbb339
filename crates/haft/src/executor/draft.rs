//! `UndecidedCall`: the part of an approval request that describes the call, whatever is asked.

use std::time::Duration;

use crate::approval::{
    ApprovalId, ApprovalRequest, CallSnapshot, STANDS, fingerprint, nanoseconds,
};
use crate::call::{CallId, Origin};
use crate::clock;
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::early_end::EarlyEnd;
use crate::json::canonical::args_digest;
use crate::policy::Safeguards;
use crate::session::{Session, WaitMode};
use crate::spec::Risk;
use crate::toolset::ToolEntry;

/// A call's identity and origin.
#[derive(Clone, Copy)]
pub(super) struct CallIdentity<'a> {
    pub(super) call: &'a CallId,
    /// The call that continues after the decision, if it is not this one.
    pub(super) parent: Option<&'a CallId>,
    pub(super) origin: Origin,
}

/// A call that needs a decision.
pub(super) struct UndecidedCall<'a> {
    pub(super) entry: &'a ToolEntry,
    pub(super) caller: CallIdentity<'a>,
    pub(super) arguments: &'a str,
}

impl UndecidedCall<'_> {
    /// Returns the request without the policy's part and without a question.
    pub(super) fn request(
        &self,
        parts: &ExecutorParts,
        session: &Session,
    ) -> Result<ApprovalRequest, EarlyEnd> {
        let id = ApprovalId::generate().ok_or_else(|| {
            EarlyEnd::failed(ErrorKind::Unavailable, "the system has no random source")
        })?;
        let (spec, hash) = (self.entry.spec(), self.entry.spec_hash());
        let policy = parts.policy.now();
        let workspace = policy.workspace_root().unwrap_or_default();
        let principal = session.principal();
        let created = clock::now();
        let request = ApprovalRequest {
            id,
            run: session.approval_run().clone(),
            call: self.caller.call.clone(),
            parent: self.caller.parent.cloned(),
            tool: spec.name.clone(),
            origin: self.caller.origin,
            entry_point: session.entry_point().to_owned(),
            client: session.client().map(str::to_owned),
            principal: principal.clone(),
            workspace: workspace.to_owned(),
            arguments: self.arguments.to_owned(),
            args_digest: args_digest(self.arguments),
            bound: self.entry.bound_as_written(),
            unstated: String::new(),
            snapshot: CallSnapshot::default(),
            verdicts: Vec::new(),
            risk: Risk::Safe,
            reason: String::new(),
            rule: String::new(),
            causes: Vec::new(),
            safeguards: Safeguards::default(),
            rule_of_two: None,
            review: None,
            suggested: Vec::new(),
            form: None,
            spec_hash: hash.to_owned(),
            fingerprint: fingerprint(&spec.name, hash, principal, workspace, self.arguments),
            created,
            expires: created,
            waits_until: None,
        };
        Ok(timed(request, parts, session))
    }
}

/// Sets until when the request can be decided and until when its call waits.
fn timed(
    mut request: ApprovalRequest,
    parts: &ExecutorParts,
    session: &Session,
) -> ApprovalRequest {
    let mode = session.wait_mode();
    let now = mode == WaitMode::WaitThenWithdraw;
    let approvers = parts.approver.iter().chain(session.approver());
    let patience = approvers
        .filter_map(|approver| approver.wait_limit(&request, now))
        .min();
    let limit = session.limits().approval_timeout;
    let waits = patience.map_or(limit, |patience| patience.min(limit));
    let (stands, waits) = match mode {
        // An approver that no longer waits only withdraws requests of the second kind.
        WaitMode::WaitThenDeny | WaitMode::DenyAtOnce => (limit, None),
        WaitMode::WaitThenWithdraw => (waits, None),
        WaitMode::WhileAsked | WaitMode::WaitThenSuspend => (STANDS, Some(waits)),
        WaitMode::SuspendAtOnce => (STANDS, None),
    };
    let after = |time: Duration| request.created.saturating_add(nanoseconds(time));
    (request.expires, request.waits_until) = (after(stands), waits.map(after));
    request
}
