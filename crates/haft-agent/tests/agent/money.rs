//! The policy's budgets of money: the operator is asked whether the run continues, and a day is counted across runs.

use std::sync::Arc;

use haft::approval::{ApproverReply, Decision};
use haft::budget::{Budgets, EffectLimits, Ledger, Period};
use haft::testing::ScriptedApprover;
use haft::{Executor, Policy, Session, ToolRegistry};
use haft_agent::testing::ScriptedModel;
use haft_agent::{Agent, AgentOptions, ExceededBudget, Prices, RunEnd, spend_more};

use crate::support::{Log, tools};

/// Options under which a reply costs 10.
fn priced() -> AgentOptions {
    AgentOptions {
        prices: Some(Prices {
            input: 1_000_000.0,
            cached: 0.0,
            output: 0.0,
        }),
        ..AgentOptions::default()
    }
}

fn model(turns: u32) -> ScriptedModel {
    let calls = |model: ScriptedModel, n| {
        let arguments = format!("{{\"n\":{n}}}");
        model.calls([("a", "safe", arguments.as_str())])
    };
    (0..turns).fold(ScriptedModel::new(), calls).says("Done.")
}

fn money(most: f64) -> EffectLimits {
    EffectLimits {
        money: Some(most),
        ..EffectLimits::default()
    }
}

/// Returns an agent whose executor asks this approver.
fn agent(budgets: Budgets, asks: bool, approver: ScriptedApprover) -> Agent {
    let policy = Policy::workspace().with_budgets(budgets);
    let mut executor = Executor::new(policy).with_approver(approver);
    if asks {
        let own = ToolRegistry::new().with(spend_more().unwrap()).unwrap();
        executor = executor.with_internal_tools(Arc::new(own));
    }
    let session = Session::new(tools(&Log::default()));
    Agent::new(model(8), executor, session).with_options(priced())
}

fn yes() -> ApproverReply {
    Decision::approve("ann", "test").into()
}

#[tokio::test]
async fn a_run_costs_as_much_again_with_each_approval_and_ends_without_one() {
    let ended = RunEnd::Budget(ExceededBudget::MoneyOf {
        limit: 15.0,
        period: Period::Run,
    });
    // Replies cost 10, 20 | 30, 40 | 50, 60: each time the sum has reached the approved amount, the operator is asked.
    let rows = [
        (true, vec![], 2, 1),
        (true, vec![yes()], 4, 2),
        (true, vec![yes(), yes()], 6, 3),
        (true, vec![Decision::deny("ann", "test").into()], 2, 1),
        // A host without the tool that asks.
        (false, vec![yes()], 2, 0),
    ];
    for (asks, answers, turns, asked) in rows {
        let approver = ScriptedApprover::new(answers.clone());
        let requests = Arc::clone(&approver.asked);
        let mut agent = agent(Budgets::of_run(money(15.0)), asks, approver);
        let finished = agent.run("go").await.unwrap();
        assert_eq!(finished.end, ended, "{answers:?}");
        assert_eq!(finished.spent.turns, turns, "{answers:?}");
        assert_eq!(requests.lock().len(), asked, "{answers:?}");
        let reasons: Vec<String> = requests
            .lock()
            .iter()
            .map(|one| one.reason.clone())
            .collect();
        let named = |reason: &String| reason.starts_with("the budget of 15 of money a run");
        assert!(reasons.iter().all(named), "{reasons:?}");
        assert!(!agent.is_open());
    }
}

#[tokio::test]
async fn a_day_counts_what_all_runs_cost() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_folder(home.path());
    let ended = RunEnd::Budget(ExceededBudget::MoneyOf {
        limit: 25.0,
        period: Period::Day,
    });
    for (turns, sum) in [(3, 30.0), (0, 30.0)] {
        let budgets = Budgets::default().with_day(money(25.0), ledger.clone());
        let mut agent = agent(budgets, true, ScriptedApprover::new([]));
        let finished = agent.run("go").await.unwrap();
        assert_eq!(finished.end, ended);
        assert_eq!(finished.spent.turns, turns);
        let today = ledger.today().unwrap();
        assert!((today.money - sum).abs() < 1e-9, "{today:?}");
    }
    // If the amount spent is unknown, the operator decides before anything is spent.
    std::fs::write(ledger.file(), "{").unwrap();
    let approver = ScriptedApprover::new([yes()]);
    let requests = Arc::clone(&approver.asked);
    let budgets = Budgets::default().with_day(money(25.0), ledger.clone());
    let mut agent = agent(budgets, true, approver);
    let finished = agent.run("go").await.unwrap();
    assert_eq!((finished.end, finished.spent.turns), (ended, 3));
    let reason = requests.lock()[0].reason.clone();
    assert!(
        reason.contains("is not known") && reason.contains("day.json"),
        "{reason}"
    );
}
