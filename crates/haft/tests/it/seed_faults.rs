//! Faults of earlier systems inside the library, by their number in the survey. `haft-cli` has the others in its file of this name.

use std::sync::Arc;

use haft::approval::ApprovalScope;
use haft::permission::{Effect, Permission};
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::{
    ApproverReply, Decision, Executor, Policy, Risk, Session, Status, ToolCall, ToolRegistry,
    ToolSpec,
};

fn yes(scope: ApprovalScope, edited: Option<&str>) -> ApproverReply {
    let yes = Decision::approve("ann", "test").hold_for(scope);
    match edited {
        Some(edited) => yes.with_arguments(edited).into(),
        None => yes.into(),
    }
}

fn risky(effects: &[&str]) -> ToolRegistry {
    let effect = |value: &&str| Permission {
        effect: Effect::Other {
            kind: "shell.command".into(),
            value: (*value).into(),
        },
        risk: Risk::High,
    };
    let tool = TestTool::risky("risky", Risk::High).wanting(effects.iter().map(effect).collect());
    let registry = ToolRegistry::new();
    registry.add_all([tool.arc()]).unwrap();
    registry
}

#[tokio::test]
async fn no_10_a_sink_that_fails_at_the_start_leaves_no_call_unaccounted() {
    let session = Session::new(risky(&[]));
    let executor =
        Executor::new(Policy::trusted()).with_audit(Arc::new(MemoryAudit::failing_after(0)));
    let outcome = executor
        .execute(&session, ToolCall::new("risky", "{}"))
        .await;
    assert_eq!(outcome.status, Status::Error);
    assert!(outcome.error.unwrap().message.contains("no space left"));
}

#[test]
fn no_14_a_foreign_tool_never_replaces_a_built_in() {
    let registry = ToolRegistry::new();
    let tool = |source: &str| {
        TestTool::of(ToolSpec {
            source: source.into(),
            ..TestTool::echo("read_file")
        })
        .arc()
    };
    registry.add_all([tool("builtin")]).unwrap();
    assert!(registry.upsert(tool("mcp:evil")).is_err());
    assert!(
        registry
            .replace_all("mcp:evil", [tool("mcp:evil")])
            .is_err()
    );
}

#[tokio::test]
async fn no_23_what_one_session_expands_or_is_granted_stays_in_it() {
    let tools = Arc::new(risky(&["a"]));
    let approver = ScriptedApprover::new([yes(ApprovalScope::Session, None)]);
    let executor = Executor::new(Policy::workspace()).with_approver(approver);
    let one = Session::builder(Arc::clone(&tools) as _).build().unwrap();
    let two = Session::builder(tools as _).build().unwrap();
    let call = || ToolCall::new("risky", "{}");
    assert!(executor.execute(&one, call()).await.is_ok());
    assert!(executor.execute(&one, call()).await.is_ok());
    assert_eq!(executor.execute(&two, call()).await.status, Status::Denied);
}

#[tokio::test]
async fn no_25_an_approval_is_for_this_call_and_all_its_effects_and_an_edit_is_judged_again() {
    // Two effects of one kind: one answer, one run; haft asks again about the next call.
    let approver = ScriptedApprover::new([yes(ApprovalScope::Once, None)]);
    let asked = Arc::clone(&approver.asked);
    let executor = Executor::new(Policy::workspace()).with_approver(approver);
    let session = Session::new(risky(&["rm a", "rm b"]));
    assert!(
        executor
            .execute(&session, ToolCall::new("risky", r#"{"n":1}"#))
            .await
            .is_ok()
    );
    assert_eq!(
        executor
            .execute(&session, ToolCall::new("risky", r#"{"n":2}"#))
            .await
            .status,
        Status::Denied
    );
    let asked = std::mem::take(&mut *asked.lock());
    assert_eq!(asked[0].snapshot.permissions.len(), 2);
    assert_eq!(asked[0].arguments, r#"{"n":1}"#);
    assert_ne!(asked[0].fingerprint, asked[1].fingerprint);

    let edit = ScriptedApprover::new([yes(ApprovalScope::Once, Some(r#"{"n":1,"n":2}"#))]);
    let executor = Executor::new(Policy::workspace()).with_approver(edit);
    let outcome = executor
        .execute(&session, ToolCall::new("risky", "{}"))
        .await;
    assert_eq!(outcome.status, Status::Error);
}

#[tokio::test]
async fn no_26_an_empty_allow_list_allows_nothing_risky() {
    let executor = Executor::new(Policy::workspace());
    let outcome = executor
        .execute(
            &Session::new(risky(&["sh -c rm"])),
            ToolCall::new("risky", "{}"),
        )
        .await;
    assert_eq!(outcome.status, Status::Denied);
    assert!(
        outcome
            .error
            .unwrap()
            .advice
            .is_some_and(|advice| !advice.is_empty())
    );
}
