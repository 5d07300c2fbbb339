//! How a run ends other than by an answer: budgets, repetition, cancellation, the provider's stop reason.

use std::time::Duration;

use haft_agent::testing::{ScriptedModel, function_call};
use haft_agent::{AgentError, AgentOptions, Budget, ExceededBudget, Prices, RunEnd};
use haft_wire::{Message, StopReason, TurnItem, Usage};

use crate::support::{Log, agent, last_answers, text};

fn within(budget: Budget) -> AgentOptions {
    AgentOptions {
        budget,
        prices: Some(Prices {
            input: 1_000_000.0,
            cached: 0.0,
            output: 0.0,
        }),
        ..AgentOptions::default()
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn a_budget_that_is_used_up_ends_the_run_and_another_prompt_has_turns_again() {
    let no = Budget {
        turns: None,
        ..Budget::default()
    };
    let rows = [
        (
            Budget {
                turns: Some(2),
                ..no
            },
            ExceededBudget::Turns(2),
            2,
        ),
        (
            Budget {
                tokens: Some(30),
                ..no
            },
            ExceededBudget::Tokens(30),
            2,
        ),
        // Each reply reads ten tokens, at a price of 1 each.
        (
            Budget {
                money: Some(29.5),
                ..no
            },
            ExceededBudget::Money(29.5),
            3,
        ),
        // The prompt has two bytes, and a call with its answer a few more.
        (
            Budget {
                bytes: Some(2),
                ..no
            },
            ExceededBudget::Bytes(2),
            1,
        ),
        (
            Budget {
                time: Some(Duration::ZERO),
                ..no
            },
            ExceededBudget::Time(Duration::ZERO),
            0,
        ),
    ];
    for (budget, exceeded, turns) in rows {
        let mut model = ScriptedModel::new();
        for n in 0..5 {
            model = model.calls([("a", "safe", format!("{{\"n\":{n}}}").as_str())]);
        }
        let mut agent = agent(&model, &Log::default()).with_options(within(budget));
        let finished = agent.run("go").await.unwrap();
        assert_eq!(finished.end, RunEnd::Budget(exceeded));
        assert_eq!(finished.spent.turns, turns, "{budget:?}");
        // Every call has its answer: the conversation can continue.
        assert!(!agent.is_open());
        if budget.turns.is_some() {
            let again = agent.run("go on").await.unwrap();
            assert_eq!(again.spent.turns, 4);
        }
    }
}

#[tokio::test]
async fn a_model_that_repeats_a_failing_call_is_told_and_then_stopped() {
    let mut model = ScriptedModel::new();
    // The notation of the arguments does not matter, nor do successful calls in between.
    for arguments in [r#"{"fail":true,"n":1}"#, r#"{"n":1, "fail":true}"#] {
        for _ in 0..3 {
            model = model.calls([("a", "plain", arguments), ("b", "safe", "{}")]);
        }
    }
    let mut agent = agent(&model, &Log::default());
    let finished = agent.run("go").await.unwrap();
    let end = RunEnd::Repeating {
        tool: "plain".to_owned(),
        times: 5,
    };
    assert_eq!(finished.end, end);
    assert_eq!(model.requests().len(), 5);
    let noticed: Vec<bool> = (1..5)
        .map(|request| {
            let messages = &model.requests()[request].messages;
            let Some(Message::Results(answers)) = messages.last() else {
                panic!("{messages:?}");
            };
            text(&answers[0]).contains("This same call has failed")
        })
        .collect();
    assert_eq!(noticed, [false, false, true, true]);
    // The user may let the model try again.
    let again = agent.run("it works now").await;
    assert!(matches!(again, Err(AgentError::Model(_))), "{again:?}");
    assert_eq!(model.requests().len(), 7);
}

#[tokio::test]
async fn what_the_provider_says_of_a_stop_is_how_the_run_ends() {
    let text = |text: &str| vec![TurnItem::Text(text.to_owned())];
    for (stop, end) in [
        (StopReason::End, RunEnd::Done),
        (StopReason::Length, RunEnd::Length),
        (StopReason::Filter, RunEnd::Filtered),
        (
            StopReason::Other("odd".to_owned()),
            RunEnd::Stopped("odd".to_owned()),
        ),
    ] {
        let model = ScriptedModel::new().replies(text("x"), stop);
        let finished = agent(&model, &Log::default()).run("go").await.unwrap();
        assert_eq!(finished.end, end);
    }
    let model = ScriptedModel::new()
        .replies(text("first"), StopReason::Pause)
        .says("then");
    let finished = agent(&model, &Log::default()).run("go").await.unwrap();
    assert_eq!(
        (finished.end, finished.text.as_str()),
        (RunEnd::Done, "then")
    );
    // The turn that paused is sent back.
    assert_eq!(model.requests()[1].messages.len(), 2);
}

#[tokio::test]
async fn a_run_is_cancelled_while_the_model_answers_and_while_a_tool_runs() {
    let model = ScriptedModel::new().hangs().says("later");
    let mut agent = agent(&model, &Log::default());
    let control = agent.control();
    let asked = model.clone();
    let cancel = async move {
        while asked.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        control.cancel();
    };
    let (finished, ()) = tokio::join!(agent.run("go"), cancel);
    assert_eq!(finished.unwrap().end, RunEnd::Cancelled);
    assert_eq!(agent.run("go on").await.unwrap().text, "later");
}

/// Returns an agent with a tool that never ends, and a signal that it has started.
fn hanging(model: &ScriptedModel) -> (haft_agent::Agent, std::sync::Arc<tokio::sync::Notify>) {
    use haft::future::BoxFuture;
    use haft::testing::TestTool;
    use haft::{Executor, Policy, Session, ToolRegistry};

    let begun = std::sync::Arc::new(tokio::sync::Notify::new());
    let sign = begun.clone();
    let body = move |_, _| {
        sign.notify_one();
        Box::pin(std::future::pending()) as BoxFuture<'static, _>
    };
    let registry = ToolRegistry::new();
    registry
        .add_all([TestTool::with_body(TestTool::echo("hangs"), body).arc()])
        .unwrap();
    registry
        .add_all([TestTool::of(TestTool::echo("plain")).arc()])
        .unwrap();
    let executor = Executor::new(Policy::workspace());
    let agent = haft_agent::Agent::new(model.clone(), executor, Session::new(registry));
    (agent, begun)
}

#[tokio::test]
async fn stopping_the_calls_goes_on_with_the_run_and_cancelling_answers_them_all() {
    for cancel in [false, true] {
        let model = ScriptedModel::new()
            .calls([
                ("a", "hangs", "{}"),
                ("b", "plain", "{}"),
                ("c", "hangs", "{}"),
            ])
            .says("ok");
        let (mut agent, begun) = hanging(&model);
        let control = agent.control();
        let stop = async {
            begun.notified().await;
            if cancel {
                control.cancel();
            } else {
                assert!(control.stop_calls());
            }
        };
        let (finished, ()) = tokio::join!(agent.run("go"), stop);
        let end = finished.unwrap().end;
        assert_eq!(
            end,
            if cancel {
                RunEnd::Cancelled
            } else {
                RunEnd::Done
            }
        );
        if cancel {
            agent.run("go on").await.unwrap();
        }
        let answers = last_answers(&model);
        assert!(text(&answers[0]).contains("the user ended this call"));
        let why = if cancel {
            "not run: the user ended the run before"
        } else {
            "not run: the user stopped the calls of this reply before"
        };
        for answer in &answers[1..] {
            assert_eq!(text(answer), why);
        }
    }
}

#[tokio::test]
async fn an_empty_prompt_is_refused_and_one_that_was_kept_is_left_out() {
    use haft_agent::conversation::{Conversation as _, ConversationEntry, MemoryConversation};
    use haft_wire::ContentPart;

    let text = |text: &str| ContentPart::Text(text.to_owned());
    for blank in [vec![], vec![text("")], vec![text(" \n"), text("\t")]] {
        let kept = std::sync::Arc::new(MemoryConversation::new());
        kept.append(&ConversationEntry::User(blank.clone()))
            .unwrap();
        let model = ScriptedModel::new().says("ok");
        let agent = agent(&model, &Log::default());
        let mut agent = agent.keep_in(kept).await.unwrap();
        let refused = agent.run_with(blank.clone()).await;
        assert!(matches!(refused, Err(AgentError::Empty)), "{refused:?}");
        assert!(model.requests().is_empty());
        assert_eq!(agent.resume().await.unwrap().end, RunEnd::Done);
        assert!(model.requests().is_empty(), "there is nothing to ask");
        assert_eq!(agent.run("go").await.unwrap().text, "ok");
        assert_eq!(model.requests()[0].messages.len(), 1, "{blank:?}");
    }
}

#[tokio::test]
async fn a_failing_model_breaks_the_run_off_and_resuming_asks_again() {
    let model = ScriptedModel::new()
        .calls([("a", "safe", "{}")])
        .fails("overloaded")
        .says("at last");
    let log = Log::default();
    let mut agent = agent(&model, &log);
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.to_string(), "overloaded");
    assert_eq!(agent.resume().await.unwrap().text, "at last");
    assert_eq!(log.words(), ["safe {}"]);
}

#[tokio::test]
async fn usage_counts_what_is_cached_once() {
    let usage = Usage {
        input: 100,
        cached: 80,
        output: 7,
        thinking: 3,
    };
    let call = vec![TurnItem::Call(function_call("a", "safe", "{}"))];
    let model = ScriptedModel::new()
        .replies_at(call, StopReason::Calls, usage)
        .replies_at(vec![TurnItem::Text("x".to_owned())], StopReason::End, usage);
    let finished = agent(&model, &Log::default()).run("go").await.unwrap();
    let spent = finished.spent;
    assert_eq!((spent.input, spent.cached, spent.output), (200, 160, 14));
}

#[tokio::test]
async fn what_a_provider_does_not_say_of_its_cost_is_estimated_and_bounded() {
    let usage = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    let words = "x".repeat(400);
    for (reported, read, wrote) in [
        (usage(0, 0), true, true),
        (usage(7, 0), false, true),
        (usage(0, 7), true, false),
        (usage(7, 7), false, false),
    ] {
        let mut model = ScriptedModel::new();
        for n in 0..5 {
            let call = function_call("a", "safe", &format!("{{\"n\":{n}}}"));
            let items = vec![TurnItem::Text(words.clone()), TurnItem::Call(call)];
            model = model.replies_at(items, StopReason::Calls, reported);
        }
        let budget = Budget {
            turns: Some(1),
            ..Budget::default()
        };
        let mut agent = agent(&model, &Log::default()).with_options(within(budget));
        let spent = agent.run(words.clone()).await.unwrap().spent;
        assert_eq!(spent.input >= 100, read, "{spent:?}");
        assert_eq!(spent.output >= 100, wrote, "{spent:?}");
        let estimated = if read { spent.input } else { 0 } + if wrote { spent.output } else { 0 };
        assert_eq!(spent.estimated, estimated, "{spent:?}");
        let money = Budget {
            turns: None,
            money: Some(100.0),
            ..Budget::default()
        };
        if read {
            let mut agent = agent.with_options(within(money));
            let end = agent.run("go on").await.unwrap().end;
            assert_eq!(end, RunEnd::Budget(ExceededBudget::Money(100.0)));
        }
    }
}
