//! Nested calls: traced however they end, bounded by limits of their own, with the clock stopped while a user decides.

use std::sync::Arc;
use std::time::Duration;

use haft::audit::EventKind;
use haft::future::BoxFuture;
use haft::policy::{RuleSet, RuleText};
use haft::testing::{MemoryAudit, TestTool};
use haft::{
    ApprovalRequest, Approver, ApproverReply, Decision, Executor, Outcome, Policy, Risk, RunLimits,
    Session, Status, Tool, ToolCall, ToolError, ToolRegistry, ToolResult,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What a `chain` does after its calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Ends,
    Fails,
    Panics,
    Sleeps,
}

/// Returns a tool that makes the calls named in its arguments, in a scope with these limits.
fn chain(limits: RunLimits, then: Then) -> Arc<dyn Tool> {
    TestTool::with_body(TestTool::echo("chain"), move |value, context| {
        let limits = limits.clone();
        Box::pin(async move {
            let scope = context.scope(limits, None);
            let calls = value["calls"].as_array().cloned().unwrap_or_default();
            for call in calls {
                let name = call["tool"].as_str().unwrap();
                scope.call(name, call["arguments"].to_string()).await;
            }
            match then {
                Then::Ends => Ok(ToolResult::text("done")),
                Then::Fails => Err(ToolError::failed("the script failed")),
                Then::Panics => panic!("oh"),
                Then::Sleeps => {
                    let _ = scope.call("sleeps", "{}").await;
                    Ok(ToolResult::text("late"))
                }
            }
        })
    })
    .arc()
}

fn tools(chain: Arc<dyn Tool>) -> ToolRegistry {
    let tools = ToolRegistry::new();
    let sleeps = TestTool::with_body(TestTool::echo("sleeps"), |_, _| {
        Box::pin(std::future::pending())
    });
    let all = [
        TestTool::risky("safe", Risk::Safe).arc(),
        TestTool::risky("high", Risk::High).arc(),
        sleeps.arc(),
        chain,
    ];
    tools.add_all(all).unwrap();
    tools
}

fn calls(names: &[&str]) -> String {
    let calls: Vec<Value> = names
        .iter()
        .map(|name| json!({"tool": name, "arguments": {"n": name}}))
        .collect();
    json!({"calls": calls}).to_string()
}

fn trace(outcome: &Outcome) -> Vec<(u64, &str, Status)> {
    outcome
        .calls
        .iter()
        .map(|c| (c.seq, c.tool.as_str(), c.status))
        .collect()
}

async fn run(executor: &Executor, then: Then, limits: RunLimits, names: &[&str]) -> Outcome {
    // Only a chain that sleeps reaches its limit: the others may take as long as a busy machine needs, a backtrace included.
    let call_timeout = match then {
        Then::Sleeps => Duration::from_secs(2),
        Then::Ends | Then::Fails | Then::Panics => Duration::from_secs(60),
    };
    let direct = RunLimits {
        call_timeout,
        ..RunLimits::default()
    };
    let session = Session::builder(Arc::new(tools(chain(limits, then))))
        .with_limits(direct)
        .build()
        .unwrap();
    executor
        .execute(&session, ToolCall::new("chain", calls(names)))
        .await
}

#[tokio::test]
async fn the_trace_is_returned_however_the_chain_ends() {
    let audit = Arc::new(MemoryAudit::new());
    let executor = Executor::new(Policy::workspace()).with_audit(Arc::clone(&audit) as _);
    let names = ["safe", "high", "nothing"];
    let three = [
        (1, "safe", Status::Ok),
        (2, "high", Status::Denied),
        (3, "nothing", Status::Error),
    ];
    for (then, status) in [
        (Then::Ends, Status::Ok),
        (Then::Fails, Status::Error),
        (Then::Panics, Status::Error),
        (Then::Sleeps, Status::Timeout),
    ] {
        let outcome = run(&executor, then, RunLimits::chain(), &names).await;
        assert_eq!(outcome.status, status, "{then:?}");
        let mut expect = three.to_vec();
        if then == Then::Sleeps {
            expect.push((4, "sleeps", Status::Cancelled));
        }
        assert_eq!(trace(&outcome), expect, "{then:?}");
        let digests: Vec<_> = outcome.calls.iter().map(|c| c.args_digest.len()).collect();
        assert!(digests.iter().all(|len| *len == 64), "{digests:?}");
    }
    // Every event names the chain in which the call was made.
    let parents: Vec<_> = audit
        .events()
        .iter()
        .filter_map(|event| match &event.what {
            EventKind::CallEnded(call, _) => {
                let parent = call.parent.as_ref().map_or("", |parent| parent.as_str());
                let within = call.call.as_str().strip_prefix(parent);
                assert!(call.tool == "chain" || within.is_some_and(|n| n.starts_with('.')));
                Some((call.tool.clone(), call.parent.is_some()))
            }
            _ => None,
        })
        .collect();
    assert!(
        parents
            .iter()
            .all(|(tool, nested)| *nested == (tool != "chain"))
    );
}

#[tokio::test]
async fn a_chain_has_a_budget_of_its_own_and_refused_calls_count() {
    let executor = Executor::new(Policy::workspace());
    let limits = RunLimits {
        max_calls: 2,
        ..RunLimits::chain()
    };
    let outcome = run(&executor, Then::Ends, limits, &["nothing", "safe", "safe"]).await;
    let seen: Vec<_> = outcome.calls.iter().map(|c| c.status).collect();
    assert_eq!(seen, [Status::Error, Status::Ok, Status::Error]);
}

#[tokio::test]
async fn an_allowed_call_above_the_chain_s_risk_is_asked_about() {
    let limits = |risk| RunLimits {
        max_risk_unapproved: risk,
        ..RunLimits::chain()
    };
    let careful = Executor::new(Policy::workspace());
    let rules = RuleSet {
        allow: vec![RuleText::new("high")],
        ..RuleSet::default()
    };
    let rules = Policy::trusted().with_rules(rules).unwrap();
    let allowed = Executor::new(rules);
    for (executor, risk, expect) in [
        (&allowed, Risk::Critical, Status::Ok),
        (&allowed, Risk::High, Status::Ok),
        (&allowed, Risk::Safe, Status::Denied),
        // The limit can only make a verdict stricter.
        (&careful, Risk::Critical, Status::Denied),
    ] {
        let outcome = run(executor, Then::Ends, limits(risk), &["high"]).await;
        assert_eq!(outcome.calls[0].status, expect, "{risk}");
    }
}

/// An approver who approves after a while.
#[derive(Debug, Default)]
struct Slow(Mutex<u32>);

impl Approver for Slow {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        *self.0.lock() += 1;
        Box::pin(async {
            // slow on purpose: longer than the chain's own time.
            tokio::time::sleep(Duration::from_millis(500)).await;
            Decision::approve("ann", "test").into()
        })
    }
}

#[tokio::test]
async fn a_person_s_thinking_is_not_the_chain_s_time() {
    let executor = Executor::new(Policy::workspace()).with_approver(Slow::default());
    // The chain's own call has 300 ms; the approval takes 500 ms.
    let outcome = run(&executor, Then::Ends, RunLimits::chain(), &["high", "safe"]).await;
    assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.error);
    assert_eq!(
        trace(&outcome),
        [(1, "high", Status::Ok), (2, "safe", Status::Ok)]
    );
}

#[test]
fn limits_of_a_chain_in_which_a_person_outlasts_a_call_are_refused() {
    use haft::session::LimitsError;
    assert_eq!(RunLimits::chain().check_chain(), Ok(()));
    let equal = RunLimits {
        approval_timeout: RunLimits::chain().call_timeout,
        ..RunLimits::chain()
    };
    assert_eq!(equal.check(), Ok(()));
    assert_eq!(equal.check_chain(), Err(LimitsError::ApprovalOverCall));
    let zero = RunLimits {
        max_calls: 0,
        ..RunLimits::chain()
    };
    assert_eq!(zero.check_chain(), Err(LimitsError::Zero("max_calls")));
}
