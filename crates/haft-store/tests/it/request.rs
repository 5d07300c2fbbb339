//! Requests for tests.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft::approval::inbox::RequestFilter;
use haft::approval::{ApprovalId, ApprovalRequest, CallSnapshot, Choice, Decision};
use haft::call::{CallId, Origin, Principal, RunId};
use haft::clock;
use haft::policy::{Cause, CauseKind, Safeguards};
use haft::spec::{Risk, ToolName};

/// A minute in nanoseconds.
pub(crate) const MINUTE: i128 = 60_000_000_000;

/// Returns a request of the tenant `local` for the call with this fingerprint.
pub(crate) fn request(id: &str, fingerprint: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new(id),
        run: RunId::new("r1"),
        call: CallId::new("call-1"),
        parent: None,
        tool: ToolName::new("write_file").unwrap(),
        origin: Origin::Model,
        entry_point: "call".into(),
        client: None,
        principal: Principal::local("ada"),
        workspace: "/w".into(),
        arguments: r#"{"path":"a.txt","content":"x"}"#.into(),
        args_digest: "d".into(),
        bound: serde_json::Map::new(),
        unstated: "u".into(),
        snapshot: CallSnapshot::default(),
        risk: Risk::High,
        reason: "writes".into(),
        rule: "profile workspace".into(),
        causes: vec![Cause::new(CauseKind::Profile, "workspace")],
        safeguards: Safeguards::default(),
        suggested: vec!["Edit(a.txt)".into()],
        verdicts: Vec::new(),
        form: None,
        spec_hash: "s".into(),
        fingerprint: fingerprint.into(),
        created: clock::now(),
        expires: clock::now() + MINUTE,
        waits_until: None,
        rule_of_two: None,
        review: None,
    }
}

pub(crate) fn id(id: &str) -> ApprovalId {
    ApprovalId::new(id)
}

pub(crate) fn yes(by: &str) -> Decision {
    Decision::approve(by, "terminal")
}

pub(crate) fn no(by: &str) -> Decision {
    Decision::deny(by, "terminal")
}

pub(crate) fn answer(by: &str) -> Decision {
    let answers = r#"{"text":"42"}"#.to_owned();
    Decision::new(Choice::Answer { answers }, by, "terminal")
}

/// Returns a filter for all requests of the tenant `local`.
pub(crate) fn all() -> RequestFilter {
    RequestFilter {
        tenant: "local".into(),
        limit: usize::MAX,
        ..RequestFilter::default()
    }
}
