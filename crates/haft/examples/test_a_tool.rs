//! How to test a tool: as the plain function, and through the whole pipeline with scripted approvals.

use haft::testing::Bench;
use haft::{ErrorKind, Policy, tool};
use serde_json::json;

/// Refund an order.
#[tool(risk = "high")]
fn refund(
    order: String,
    /// How many, at most 100.
    #[schemars(range(max = 100))]
    cents: u64,
) -> String {
    format!("refunded {cents} of {order}")
}

/// Tests the tool as a function.
pub(crate) fn by_itself() {
    assert_eq!(refund("o-1".into(), 5), "refunded 5 of o-1");
}

/// The user approves the call and lowers the amount.
pub(crate) async fn through_the_pipeline() {
    let bench = Bench::new().tool(refund).policy(Policy::workspace());
    bench
        .on_ask("refund")
        .approve_with(json!({"order": "o-1", "cents": 1}));
    let outcome = bench
        .call("refund", json!({"order": "o-1", "cents": 5}))
        .await;
    outcome.assert_ok().assert_text("refunded 1 of o-1");
    bench
        .assert_asked(["refund"])
        .assert_audit(["run", "started", "ended:ok"]);
}

/// The user denies a call, nobody answers another, and the schema rejects a third before anyone is asked.
pub(crate) async fn refused() {
    let bench = Bench::new().tool(refund);
    bench.on_ask("refund").deny("ask the shop first");
    let denied = bench
        .call("refund", json!({"order": "o-1", "cents": 5}))
        .await;
    assert!(denied.to_model().contains("ask the shop first"));
    denied.assert_denied();
    let unanswered = bench
        .call("refund", json!({"order": "o-2", "cents": 5}))
        .await;
    unanswered.assert_denied();
    let too_much = bench
        .call("refund", json!({"order": "o-1", "cents": 500}))
        .await;
    too_much.assert_error(ErrorKind::InvalidArguments);
    bench.assert_asked(["refund", "refund"]);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    by_itself();
    through_the_pipeline().await;
    refused().await;
}
