//! What an embedding program can rely on: the examples run, approvals come from a queue, and the model reads these texts.

use std::error::Error as _;
use std::sync::Arc;

use haft::approval::{AsyncApprover, channel};
use haft::audit::AuditError;
use haft::testing::{Bench, TestTool};
use haft::{
    ApprovalRequest, ApproverReply, CancellationToken, Decision, Executor, Outcome, Policy, Risk,
    Session, Status, ToolCall, ToolRegistry,
};
use serde_json::json;

#[path = "../../examples/bank.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod bank;
#[path = "../../examples/test_a_tool.rs"]
#[expect(dead_code, reason = "the example's own main")]
mod test_a_tool;

#[tokio::test]
async fn the_bank_answers_every_call() {
    let replies = bank::replies().await.unwrap();
    assert_eq!(replies[0], r#"{"result":5}"#);
    assert_eq!(replies[1], r#"{"cents":500}"#);
    assert_eq!(replies[2], "failed: the account is damaged");
    assert!(replies[3].starts_with("denied: "), "{}", replies[3]);
}

#[tokio::test]
async fn the_example_tests_pass() {
    test_a_tool::by_itself();
    test_a_tool::through_the_pipeline().await;
    test_a_tool::refused().await;
}

#[tokio::test]
#[should_panic(expected = "asked about")]
async fn a_bench_fails_where_something_else_was_asked() {
    let bench = Bench::new().tool(TestTool::risky("drop", Risk::High).arc());
    bench.on_ask("drop").approve();
    bench.call("drop", json!({})).await.assert_ok();
    bench.assert_asked([]);
}

/// Calls a tool of risk high once under this approver, in a session that the token ends.
async fn ask(approver: impl haft::Approver + 'static, ends: &CancellationToken) -> Outcome {
    let tools = ToolRegistry::new();
    let drop = TestTool::risky("drop", Risk::High);
    tools.add_all([drop.arc()]).unwrap();
    let executor = Executor::new(Policy::workspace()).with_approver(approver);
    let session = Session::builder(Arc::new(tools)).with_cancellation(ends);
    let session = session.build().unwrap();
    executor
        .execute(&session, ToolCall::new("drop", "{}"))
        .await
}

#[tokio::test]
async fn a_queue_of_requests_is_answered_by_the_program() {
    let never = CancellationToken::new();
    let (approver, mut requests) = channel(1);
    let (outcome, ()) = tokio::join!(ask(approver, &never), async {
        let pending = requests.next().await.unwrap();
        assert_eq!(pending.request().tool.as_str(), "drop");
        assert!(pending.decide(Decision::approve("ann", "chat")));
    });
    assert!(outcome.is_ok());
    assert!(requests.next().await.is_none(), "the executor is gone");

    let (approver, mut requests) = channel(1);
    let (outcome, ()) = tokio::join!(ask(approver, &never), async {
        drop(requests.next().await.unwrap());
    });
    assert_eq!(outcome.status, Status::Denied);
    let (approver, requests) = channel(0);
    drop(requests);
    assert_eq!(ask(approver, &never).await.status, Status::Denied);
}

#[tokio::test]
async fn a_request_whose_call_ended_is_withdrawn() {
    let (approver, mut requests) = channel(2);
    let ends = CancellationToken::new();
    let (outcome, mut pending) = tokio::join!(ask(approver.clone(), &ends), async {
        let pending = requests.next().await.unwrap();
        // The parent's token ends the session and its wait.
        ends.cancel();
        pending
    });
    assert_eq!(outcome.status, Status::Cancelled);
    pending.withdrawn().await;
    assert!(pending.is_withdrawn());
    assert!(!pending.decide(Decision::approve("ann", "late")));
}

#[tokio::test]
async fn an_approver_is_an_async_function_and_needs_no_debug() {
    struct Cautious;
    impl AsyncApprover for Cautious {
        async fn ask(&self, request: &ApprovalRequest) -> ApproverReply {
            tokio::task::yield_now().await;
            match request.risk {
                Risk::Critical => ApproverReply::Nobody,
                Risk::Safe | Risk::High => Decision::approve("ann", "chat").into(),
            }
        }
    }
    let never = CancellationToken::new();
    assert!(ask(Cautious, &never).await.is_ok());
    assert!(ask(Arc::new(Cautious), &never).await.is_ok());
}

#[tokio::test]
async fn a_session_that_is_cancelled_leaves_its_parent_alone() {
    let parent = CancellationToken::new();
    let builder = Session::builder(Arc::new(ToolRegistry::new()));
    let session = builder.with_cancellation(&parent).build().unwrap();
    session.cancel();
    assert!(!parent.is_cancelled());
}

#[test]
fn an_error_of_the_record_keeps_its_source() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let text = full.to_string();
    let error = AuditError::new("run r: no space left").with_source(full);
    assert_eq!(error.to_string(), "record the call: run r: no space left");
    let source = error.source().map(ToString::to_string);
    assert_eq!(source, Some(text));
}
