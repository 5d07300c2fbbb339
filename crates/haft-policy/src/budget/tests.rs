//! What calls count as, when a budget is used up, and how that is reported.

use serde_json::json;

use super::*;
use crate::explain::proposal::PROPOSED_RULE;
use crate::untrusted::SERVER_EFFECT;
use haft_types::permission::PathClaim;
use haft_types::spec::{Risk, ToolName};

fn spec(open_world: bool) -> ToolSpec {
    let name = ToolName::new("tool").unwrap();
    ToolSpec {
        open_world,
        ..ToolSpec::new(name, "A tool.", json!({"type": "object"}))
    }
}

fn other(kind: &str) -> Effect {
    Effect::Other {
        kind: kind.to_owned(),
        value: "x".to_owned(),
    }
}

fn uses(deletions: u64, sends: u64, commands: u64) -> EffectCounts {
    EffectCounts {
        deletions,
        sends,
        commands,
    }
}

#[test]
fn each_effect_counts_as_what_it_does() {
    let file = || PathClaim::plain("a");
    let run = Effect::Run {
        command: "make".to_owned(),
        argv: None,
        jailed: true,
        on_copy: true,
    };
    let page = Effect::connect("https://example.com/", "example.com");
    let rows = [
        (false, vec![], EffectCounts::NONE),
        (true, vec![], uses(0, 1, 0)),
        (
            false,
            vec![Effect::Read(file()), Effect::Write(file())],
            EffectCounts::NONE,
        ),
        (
            false,
            vec![Effect::Remove(file()), Effect::Remove(file())],
            uses(2, 0, 0),
        ),
        (false, vec![run], uses(0, 0, 1)),
        // A connection is one send, even for an open-world tool.
        (true, vec![page.clone()], uses(0, 1, 0)),
        (false, vec![page.clone(), page], uses(0, 2, 0)),
        (true, vec![other(SERVER_EFFECT)], uses(0, 1, 0)),
        (false, vec![other(SERVER_EFFECT)], EffectCounts::NONE),
        (false, vec![other("search")], uses(0, 1, 0)),
        (
            false,
            vec![other(PROPOSED_RULE), other(BUDGET_EFFECT)],
            EffectCounts::NONE,
        ),
        (false, vec![Effect::Question], EffectCounts::NONE),
    ];
    for (open_world, effects, expected) in rows {
        let permission = |effect: &Effect| Permission {
            effect: effect.clone(),
            risk: Risk::High,
        };
        let permissions: Vec<_> = effects.iter().map(permission).collect();
        let found = EffectCounts::of(&spec(open_world), &permissions);
        assert_eq!(found, expected, "{open_world} {effects:?}");
    }
}

#[test]
fn a_budget_that_is_used_up_is_said_with_its_numbers() {
    let limits = EffectLimits {
        deletions: Some(20),
        commands: Some(1),
        ..EffectLimits::default()
    };
    let rows = [
        (uses(19, 0, 0), uses(1, 0, 0), None),
        (uses(0, 99, 0), uses(0, 99, 0), None),
        (uses(99, 0, 0), uses(0, 1, 0), None),
        (
            uses(20, 0, 0),
            uses(1, 0, 0),
            Some("the budget of 20 deletions a day is used up: 20 of 20"),
        ),
        (
            uses(22, 0, 0),
            uses(1, 0, 0),
            Some("the budget of 20 deletions a day is used up: 22 of 20"),
        ),
        (
            uses(18, 0, 0),
            uses(5, 0, 0),
            Some("the budget of 20 deletions a day has room for 2 more, but the call needs 5"),
        ),
        (
            uses(0, 0, 1),
            uses(0, 0, 1),
            Some("the budget of 1 command a day is used up: 1 of 1"),
        ),
        (uses(u64::MAX, 0, 0), uses(0, 0, 1), None),
    ];
    for (used, wanted, said) in rows {
        let used_up = limits.first_exceeded(Period::Day, used, wanted);
        let found = used_up.map(|used_up| used_up.to_string());
        assert_eq!(found.as_deref(), said, "{used:?} {wanted:?}");
    }
}

#[test]
fn what_the_record_has_of_a_call_is_read_back() {
    for (uses, text) in [
        (EffectCounts::NONE, "{}"),
        (uses(3, 0, 1), r#"{"deletions":3,"commands":1}"#),
    ] {
        assert_eq!(serde_json::to_string(&uses).unwrap(), text);
        assert_eq!(serde_json::from_str::<EffectCounts>(text).unwrap(), uses);
    }
}

#[test]
fn a_command_is_uncounted_or_a_send_where_its_work_is_not_seen() {
    let deletions = EffectLimits {
        deletions: Some(2),
        ..EffectLimits::default()
    };
    let commands = EffectLimits {
        commands: Some(2),
        ..EffectLimits::default()
    };
    let day = |limits| Budgets::default().with_day(limits, Ledger::in_folder("/nowhere"));
    let run = |jailed, on_copy, risk| Permission {
        effect: Effect::Run {
            command: "make".to_owned(),
            argv: None,
            jailed,
            on_copy,
        },
        risk,
    };
    let (of_run, of_day) = (Budgets::of_run(deletions), day(deletions));
    let open = Budgets::of_run(deletions).commands_reach_out(true);
    // The budgets, the command, whether it is uncounted, and the number of sends.
    let rows = [
        (&of_run, run(true, false, Risk::High), true, 0),
        (&of_day, run(true, false, Risk::High), true, 0),
        (&of_day, run(true, false, Risk::Critical), true, 0),
        (&of_day, run(true, false, Risk::Safe), false, 0),
        (&of_day, run(true, true, Risk::High), false, 0),
        (&of_day, run(false, false, Risk::High), true, 1),
        (&of_day, run(false, false, Risk::Safe), false, 0),
        (&open, run(true, false, Risk::High), true, 1),
        (&open, run(true, false, Risk::Safe), false, 0),
        (&open, run(true, true, Risk::High), false, 0),
        (&day(commands), run(true, false, Risk::High), false, 0),
    ];
    for (budgets, permission, uncounted, sends) in rows {
        let wanted = budgets.wanted(&spec(false), std::slice::from_ref(&permission));
        let found = (wanted.uncounted, wanted.uses);
        assert_eq!(found, (uncounted, uses(0, sends, 1)), "{permission:?}");
        let standing = budgets.standing(EffectCounts::NONE, wanted);
        let uncounted_is_said = matches!(
            standing.of(CountedEffect::Deletions),
            Some(BudgetError::Uncounted)
        );
        assert_eq!(uncounted_is_said, uncounted, "{permission:?}");
    }
    // Another program's tool declares what its command removes: a folder counts as one.
    let removal = Permission::remove(PathClaim::plain("sub"));
    let wanted = of_day.wanted(&spec(false), &[run(false, false, Risk::Safe), removal]);
    assert!(wanted.uncounted, "{wanted:?}");
}
