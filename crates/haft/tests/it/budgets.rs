//! Budgets of effects: a call that would exceed one needs an approval, whatever rules, grants and automatic approvers say.

use std::sync::Arc;

use haft::approval::inbox::WaitingCalls as _;
use haft::approval::memory::MemoryInbox;
use haft::approval::{ApprovalId, ApprovalScope, ApproverReply, AutoApprove, Decision};
use haft::audit::EventKind;
use haft::budget::{Budgets, CountedEffect, EffectCounts, EffectLimits, Ledger};
use haft::permission::{Effect, PathClaim, Permission, Verdict};
use haft::policy::Policy;
use haft::result::Status;
use haft::session::{RunLimits, Session};
use haft::spec::{Risk, ToolSpec};
use haft::testing::{MemoryAudit, ScriptedApprover, TestTool};
use haft::toolset::registry::ToolRegistry;
use haft::{Executor, Profile, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::json;

fn tool(name: &str, effects: Vec<Effect>) -> Arc<dyn haft::tool::Tool> {
    let spec = ToolSpec {
        concurrency_safe: true,
        ..TestTool::echo(name)
    };
    let permission = |effect| Permission {
        effect,
        risk: Risk::High,
    };
    TestTool::of(spec)
        .wanting(effects.into_iter().map(permission).collect())
        .arc()
}

fn removal(path: &str) -> Effect {
    Effect::Remove(PathClaim::plain(path))
}

fn tools() -> ToolRegistry {
    let run = Effect::Run {
        command: "make".to_owned(),
        argv: None,
        jailed: true,
        on_copy: true,
    };
    let page = Effect::connect("https://example.com/", "example.com");
    let chain = TestTool::with_body(TestTool::echo("chain"), |value, context| {
        Box::pin(async move {
            let scope = context.scope(RunLimits::default(), None);
            let mut said = Vec::new();
            for name in value["calls"].as_array().unwrap() {
                let outcome = scope.call(name.as_str().unwrap(), "{}".to_owned()).await;
                said.push(outcome.status.as_str().to_owned());
            }
            ToolResult::data(&said)
        })
    });
    let rows = [
        ("look", vec![Effect::Read(PathClaim::plain("a"))]),
        ("delete", vec![removal("a")]),
        (
            "delete_three",
            vec![removal("a"), removal("b"), removal("c")],
        ),
        ("page", vec![page]),
        ("command", vec![run]),
    ];
    let all = rows
        .into_iter()
        .fold(ToolRegistry::new(), |all, (name, effects)| {
            all.with(tool(name, effects)).unwrap()
        });
    all.with(chain.arc()).unwrap()
}

/// Returns a policy with these budgets whose rules allow everything.
fn policy(budgets: Budgets) -> Policy {
    let names = [
        "look",
        "delete",
        "delete_three",
        "page",
        "command",
        "chain",
        "Edit(**)",
        "Bash",
        "WebFetch(domain:*)",
    ];
    let all = names
        .into_iter()
        .fold(Policy::builder(Profile::Trusted), |builder, rule| {
            builder.allow(rule)
        });
    all.build().unwrap().with_budgets(budgets)
}

fn limits(deletions: u64, sends: u64, commands: u64) -> EffectLimits {
    let some = |most| (most > 0).then_some(most);
    EffectLimits {
        deletions: some(deletions),
        sends: some(sends),
        commands: some(commands),
        money: None,
    }
}

fn call(name: &str) -> ToolCall {
    ToolCall::new(name, "{}")
}

/// Returns the statuses of these calls, made one after another in one run without an approver.
async fn statuses(budgets: Budgets, names: &[&str]) -> Vec<&'static str> {
    let executor = Executor::new(policy(budgets));
    let session = Session::new(tools());
    let mut all = Vec::new();
    for name in names {
        let outcome = executor.execute(&session, call(name)).await;
        all.push(outcome.status.as_str());
    }
    all
}

#[tokio::test]
async fn calls_beyond_a_budget_are_asked_about_and_denied_where_nobody_decides() {
    let rows: [(EffectLimits, &[&str], &[&str]); 7] = [
        (
            limits(0, 0, 0),
            &["delete", "command", "page"],
            &["ok", "ok", "ok"],
        ),
        (
            limits(2, 0, 0),
            &["delete", "delete", "delete", "look"],
            &["ok", "ok", "denied", "ok"],
        ),
        (
            limits(2, 0, 0),
            &["delete_three", "delete"],
            &["denied", "ok"],
        ),
        (
            limits(0, 1, 0),
            &["page", "delete", "page"],
            &["ok", "ok", "denied"],
        ),
        (
            limits(0, 0, 1),
            &["command", "command", "page"],
            &["ok", "denied", "ok"],
        ),
        // Denied calls do not count.
        (
            limits(3, 0, 0),
            &["delete", "delete_three", "delete", "delete"],
            &["ok", "denied", "ok", "ok"],
        ),
        (
            limits(1, 1, 1),
            &["delete", "page", "command", "delete", "page", "command"],
            &["ok", "ok", "ok", "denied", "denied", "denied"],
        ),
    ];
    for (limits, calls, expected) in rows {
        let found = statuses(Budgets::of_run(limits), calls).await;
        assert_eq!(found, expected, "a run: {limits:?} {calls:?}");
        let home = tempfile::tempdir().unwrap();
        let ledger = Ledger::in_folder(home.path());
        let day = Budgets::default().with_day(limits, ledger);
        let found = statuses(day, calls).await;
        assert_eq!(found, expected, "a day: {limits:?} {calls:?}");
    }
}

#[tokio::test]
async fn an_approval_lets_one_call_through_and_the_request_says_what_is_used_up() {
    let inbox = Arc::new(MemoryInbox::new());
    let yes =
        || ApproverReply::from(Decision::approve("ann", "test").hold_for(ApprovalScope::Session));
    let approver = ScriptedApprover::new([yes(), yes(), ApproverReply::Nobody]);
    let asked = Arc::clone(&approver.asked);
    let executor = Executor::new(policy(Budgets::of_run(limits(1, 0, 0))))
        .with_inbox(Arc::clone(&inbox) as _)
        .with_approver(approver);
    let session = Session::new(tools());
    for expected in [Status::Ok, Status::Ok, Status::Ok] {
        let outcome = executor.execute(&session, call("delete")).await;
        assert_eq!(outcome.status, expected, "{outcome:?}");
    }
    // The approval is not a grant for the session: haft asks about each further call.
    let said: Vec<String> = asked.lock().iter().map(|one| one.reason.clone()).collect();
    assert_eq!(
        said,
        [
            "the budget of 1 deletion a run is used up: 1 of 1",
            "the budget of 1 deletion a run is used up: 2 of 1",
        ]
    );
    assert!(
        asked
            .lock()
            .iter()
            .all(haft::approval::ApprovalRequest::is_decided_each_time)
    );
    assert_eq!(session.uses().deletions, 3);
    let refused = executor.execute(&session, call("delete")).await;
    assert_ne!(refused.status, Status::Ok);
    assert_eq!(session.uses().deletions, 3);
}

/// Returns a command that works on the workspace itself, as its tool declares it.
fn direct(name: &str, jailed: bool, risk: Risk) -> Arc<dyn haft::tool::Tool> {
    let effect = Effect::Run {
        command: "make".to_owned(),
        argv: None,
        jailed,
        on_copy: false,
    };
    TestTool::of(TestTool::echo(name))
        .wanting(vec![Permission { effect, risk }])
        .arc()
}

#[tokio::test]
async fn commands_whose_deletions_cannot_be_counted_are_asked_about_where_there_is_a_budget_of_them()
 {
    let home = tempfile::tempdir().unwrap();
    let day = |limits| Budgets::default().with_day(limits, Ledger::in_folder(home.path()));
    let said = "haft cannot count the deletions of a command that works directly on the workspace, and a budget of deletions is set";
    let all = || {
        ToolRegistry::new()
            .with(direct("jailed", true, Risk::High))
            .and_then(|all| all.with(direct("bare", false, Risk::High)))
            .and_then(|all| all.with(direct("reads", true, Risk::Safe)))
            .unwrap()
    };
    let yes =
        || ApproverReply::from(Decision::approve("ann", "test").hold_for(ApprovalScope::Session));
    let rows = [
        (Budgets::of_run(limits(9, 0, 0)), true),
        (day(limits(9, 0, 0)), true),
        (day(limits(0, 9, 9)), false),
    ];
    for (budgets, asks) in rows {
        for name in ["jailed", "bare", "reads"] {
            let rules = Policy::builder(Profile::Trusted).allow(name).allow("Bash");
            let policy = rules.build().unwrap().with_budgets(budgets.clone());
            let approver = ScriptedApprover::new([yes(), yes()]);
            let asked = Arc::clone(&approver.asked);
            let executor = Executor::new(policy.clone()).with_approver(approver);
            let session = Session::new(all());
            // An approval lets one call through, even if it is for the session.
            for _ in 0..2 {
                let outcome = executor.execute(&session, call(name)).await;
                assert_eq!(outcome.status, Status::Ok, "{name} {outcome:?}");
            }
            let reasons: Vec<String> = asked.lock().iter().map(|one| one.reason.clone()).collect();
            let asks = asks && name != "reads";
            assert_eq!(reasons, vec![said; if asks { 2 } else { 0 }], "{name}");
            // Automatic approvers do not lift the limit.
            let executor = Executor::new(policy).with_approver(AutoApprove::up_to(Risk::Critical));
            let outcome = executor.execute(&Session::new(all()), call(name)).await;
            let expected = if asks { Status::Denied } else { Status::Ok };
            assert_eq!(outcome.status, expected, "{name} {outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_command_that_reaches_out_is_a_send() {
    for (reaches_out, expected) in [(true, Status::Denied), (false, Status::Ok)] {
        let budgets = Budgets::of_run(limits(0, 1, 0)).commands_reach_out(reaches_out);
        let rules = Policy::builder(Profile::Trusted)
            .allow("jailed")
            .allow("Bash");
        let executor = Executor::new(rules.build().unwrap().with_budgets(budgets));
        let tools = ToolRegistry::new().with(direct("jailed", true, Risk::High));
        let session = Session::new(tools.unwrap());
        let first = executor.execute(&session, call("jailed")).await;
        let second = executor.execute(&session, call("jailed")).await;
        assert_eq!((first.status, second.status), (Status::Ok, expected));
    }
}

#[tokio::test]
async fn neither_a_grant_nor_an_approver_that_asks_nobody_lifts_a_budget() {
    let budgets = || Budgets::of_run(limits(1, 0, 0));
    let asks = || {
        let rules = Policy::builder(Profile::Workspace).ask("delete");
        rules.build().unwrap().with_budgets(budgets())
    };
    // The grant for the session is older than the moment at which the budget is used up.
    let yes =
        ApproverReply::from(Decision::approve("ann", "test").hold_for(ApprovalScope::Session));
    let approver = ScriptedApprover::new([yes]);
    let asked = Arc::clone(&approver.asked);
    let executor = Executor::new(asks()).with_approver(approver);
    let session = Session::new(tools());
    let first = executor.execute(&session, call("delete")).await;
    let second = executor.execute(&session, call("delete")).await;
    assert_eq!((first.status, second.status), (Status::Ok, Status::Denied));
    let reason = asked.lock().last().unwrap().reason.clone();
    assert!(
        reason.starts_with("the budget of 1 deletion a run is used up"),
        "{reason}"
    );
    assert!(reason.contains("; The ask rule delete"), "{reason}");

    let executor = Executor::new(asks()).with_approver(AutoApprove::up_to(Risk::Critical));
    let session = Session::new(tools());
    let first = executor.execute(&session, call("delete")).await;
    let second = executor.execute(&session, call("delete")).await;
    assert_eq!((first.status, second.status), (Status::Ok, Status::Denied));
}

#[tokio::test]
async fn calls_of_a_script_count_for_its_run() {
    let executor = Executor::new(policy(Budgets::of_run(limits(2, 0, 0))));
    let session = Session::new(tools());
    executor.execute(&session, call("delete")).await;
    let chain = ToolCall::new("chain", json!({"calls": ["delete", "delete"]}).to_string());
    let outcome = executor.execute(&session, chain).await;
    assert!(
        outcome.to_model().contains(r#"["ok","denied"]"#),
        "{}",
        outcome.to_model()
    );
    let after = executor.execute(&session, call("delete")).await;
    assert_eq!(after.status, Status::Denied);
}

#[tokio::test]
async fn a_resumed_run_goes_on_with_what_it_has_used() {
    let sink = Arc::new(MemoryAudit::new());
    let executor = Executor::new(policy(Budgets::of_run(limits(3, 0, 0))));
    let executor = executor.with_audit(Arc::clone(&sink) as _);
    let session = Session::new(tools());
    for name in ["delete_three", "delete", "look"] {
        executor.execute(&session, call(name)).await;
    }
    let recorded = sink
        .events()
        .iter()
        .fold(EffectCounts::NONE, |all, event| match &event.what {
            EventKind::CallStarted(record) => all.plus(record.uses),
            _ => all,
        });
    assert_eq!((recorded.deletions, session.uses()), (3, recorded));
    let resumed = Session::builder(Arc::new(tools()))
        .resume(session.run().clone(), 3)
        .with_uses(recorded)
        .build()
        .unwrap();
    let outcome = executor.execute(&resumed, call("delete")).await;
    assert_eq!(outcome.status, Status::Denied);
}

#[tokio::test]
async fn a_ledger_that_cannot_be_read_has_calls_asked_about() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_folder(home.path());
    std::fs::write(ledger.file(), "not a ledger").unwrap();
    let inbox = Arc::new(MemoryInbox::new());
    let budgets = Budgets::default().with_day(limits(0, 0, 5), ledger.clone());
    let executor = Executor::new(policy(budgets))
        .with_inbox(Arc::clone(&inbox) as _)
        .with_approver(ScriptedApprover::new([
            ApproverReply::Later,
            Decision::approve("ann", "test").into(),
        ]));
    let session = Session::new(tools());
    // A call without a budget for the day needs no ledger.
    let page = executor.execute(&session, call("page")).await;
    assert_eq!(page.status, Status::Ok, "{page:?}");
    let outcome = executor.execute(&session, call("command")).await;
    assert_eq!(outcome.status, Status::Suspended, "{outcome:?}");
    let id = ApprovalId::new(outcome.approval.as_deref().unwrap());
    let reason = inbox.get(&id).await.unwrap().unwrap().request.reason;
    assert!(
        reason.contains("cannot be counted") && reason.contains("day.json"),
        "{reason}"
    );
    assert_eq!(
        std::fs::read_to_string(ledger.file()).unwrap(),
        "not a ledger"
    );
}

#[tokio::test]
async fn changed_budgets_hold_from_the_next_call_on() {
    let executor = Executor::new(policy(Budgets::default()));
    let session = Session::new(tools());
    for _ in 0..2 {
        let outcome = executor.execute(&session, call("delete")).await;
        assert_eq!(outcome.status, Status::Ok);
    }
    for (most, expected) in [
        (2, Status::Denied),
        (3, Status::Ok),
        (3, Status::Denied),
        (0, Status::Ok),
    ] {
        executor.replace_policy(policy(Budgets::of_run(limits(most, 0, 0))));
        let outcome = executor.execute(&session, call("delete")).await;
        assert_eq!(outcome.status, expected, "{most}");
    }
}

#[tokio::test]
async fn the_explanation_names_the_budget() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_folder(home.path());
    let budgets = Budgets::default().with_day(limits(1, 0, 0), ledger);
    let executor = Executor::new(policy(budgets));
    let session = Session::new(tools());
    let explain = || {
        let tools = session.tools();
        let entry = tools.entry("delete").unwrap().clone();
        executor.explain(&entry, "{}").unwrap()
    };
    let before = explain();
    assert_eq!(before.verdict, Verdict::Allow);
    let mut layers = before.layers.iter();
    let layer = layers.find(|layer| layer.rule == "guard budgets").unwrap();
    assert_eq!(layer.reason.to_string(), "deletions a day: 0 of 1 used");
    executor.execute(&session, call("delete")).await;
    let explained = explain();
    assert_eq!(explained.verdict, Verdict::Ask);
    let part = explained
        .parts
        .iter()
        .find(|part| part.kind == "remove")
        .unwrap();
    assert_eq!(
        (part.verdict, part.rule.to_string()),
        (Verdict::Ask, "guard budgets".to_owned())
    );
    let layers = explained.layers.iter();
    let layer = layers
        .into_iter()
        .find(|layer| layer.rule == "guard budgets")
        .unwrap();
    let reason = layer.reason.to_string();
    assert_eq!(reason, "the budget of 1 deletion a day is used up: 1 of 1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn calls_side_by_side_never_use_more_than_there_is(
        names in prop::collection::vec(prop::sample::select(vec!["delete", "delete_three", "page", "command", "look"]), 1..40),
        most in (0u64..12, 0u64..6, 0u64..6),
        of_day: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        let limits = limits(most.0, most.1, most.2);
        let ledger = Ledger::in_folder(home.path());
        let budgets = if of_day {
            Budgets::default().with_day(limits, ledger.clone())
        } else {
            Budgets::of_run(limits)
        };
        let (uses, ran) = runtime.block_on(async {
            let executor = Executor::new(policy(budgets));
            let session = Session::new(tools());
            let calls = names.iter().map(|name| {
                let (executor, session, name) = (executor.clone(), session.clone(), name.to_string());
                tokio::spawn(async move {
                    let outcome = executor.execute(&session, ToolCall::new(name.as_str(), "{}")).await;
                    (name, outcome.status)
                })
            });
            let calls: Vec<_> = calls.collect();
            let mut ran = Vec::new();
            for call in calls {
                let (name, status) = call.await.unwrap();
                if status == Status::Ok {
                    ran.push(name);
                }
            }
            (session.uses(), ran)
        });
        let count = |name: &str| ran.iter().filter(|one| *one == name).count() as u64;
        let counted = EffectCounts {
            deletions: count("delete") + 3 * count("delete_three"),
            sends: count("page"),
            commands: count("command"),
        };
        prop_assert_eq!(uses, counted);
        for (limit, used) in [(limits.deletions, uses.deletions), (limits.sends, uses.sends), (limits.commands, uses.commands)] {
            prop_assert!(limit.is_none_or(|limit| used <= limit), "{:?} {:?}", limits, uses);
        }
        if of_day {
            let today = ledger.today().unwrap().uses;
            for counted in CountedEffect::ALL {
                let expected = limits.get(counted).map_or(0, |_| uses.get(counted));
                prop_assert_eq!(today.get(counted), expected, "{:?}", counted);
            }
        }
    }
}
