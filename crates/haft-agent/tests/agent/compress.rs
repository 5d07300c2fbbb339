//! A history that grows too long for the model's window.

use std::sync::Arc;

use haft::artifact::memory::MemoryArtifacts;
use haft::testing::TestTool;
use haft::{Executor, Policy, Session, ToolRegistry};
use haft_agent::conversation::MemoryConversation;
use haft_agent::testing::{ScriptedModel, function_call};
use haft_agent::{Agent, AgentOptions};
use haft_wire::{Message, StopReason, TurnItem, Usage};

use crate::support::{Log, noting};

fn usage(input: u64) -> Usage {
    Usage {
        input,
        output: 0,
        ..Usage::default()
    }
}

/// Returns a model that makes this many calls, with this many tokens of context at the end.
fn model(calls: usize, last: u64) -> ScriptedModel {
    let mut model = ScriptedModel::new();
    let long = format!("{{\"text\":\"{}\"}}", "long ".repeat(1000));
    for n in 0..calls {
        let call = vec![TurnItem::Call(function_call("a", "plain", &long))];
        let tokens = if n + 1 == calls { last } else { 10 };
        model = model.replies_at(call, StopReason::Calls, usage(tokens));
    }
    model
}

fn agent(model: &ScriptedModel) -> Agent {
    let registry = ToolRegistry::new();
    for name in ["plain", "read_artifact"] {
        registry
            .add_all([noting(TestTool::echo(name), &Log::default())])
            .unwrap();
    }
    let executor =
        Executor::new(Policy::workspace()).with_artifacts(Arc::new(MemoryArtifacts::new()));
    Agent::new(model.clone(), executor, Session::new(registry)).with_options(AgentOptions {
        window: Some(10_000),
        ..AgentOptions::default()
    })
}

/// Asserts that every call is directly followed by its answer.
fn assert_paired(messages: &[Message]) {
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::Model(turn) => {
                let calls = turn.calls().count();
                let answers = match messages.get(at + 1) {
                    Some(Message::Results(answers)) => answers.len(),
                    _ => 0,
                };
                assert_eq!(calls, answers, "message {at}");
            }
            Message::Results(_) => assert!(matches!(messages[at - 1], Message::Model(_))),
            _ => {}
        }
    }
}

#[tokio::test]
async fn old_results_are_kept_aside_before_anything_is_summed_up() {
    // Eight turns of about 1,250 tokens each; five of them are older than the last three.
    let model = model(8, 8_000).says("ok");
    let kept = Arc::new(MemoryConversation::new());
    let mut first = self::agent(&model).keep_in(kept.clone()).await.unwrap();
    first.run("go").await.unwrap();
    let messages = model.requests().last().unwrap().messages.clone();
    assert_paired(&messages);
    let shown: Vec<bool> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Results(answers) => Some(
                answers[0]
                    .texts()
                    .contains("An old result, shortened: the whole text of"),
            ),
            _ => None,
        })
        .collect();
    assert_eq!(shown, [true, true, true, true, true, false, false, false]);
    // Only the history went to the model.
    assert_eq!(model.requests().len(), 9);
    // Another process reads the same history.
    let again = self::agent(&model).keep_in(kept).await.unwrap();
    assert_eq!(
        format!("{:?}", again.messages()),
        format!("{:?}", first.messages())
    );
}

#[tokio::test]
async fn what_is_still_too_long_is_summed_up_and_marked_and_no_pair_is_broken() {
    let summary = r#"{"overview":"Texts were written.","open_tasks":["write more"]}"#;
    let model = model(6, 50_000).says(summary).says("ok");
    let kept = Arc::new(MemoryConversation::new());
    let mut first = self::agent(&model).keep_in(kept.clone()).await.unwrap();
    first.run("write texts").await.unwrap();
    let requests = model.requests();
    let asked = requests
        .iter()
        .filter(|request| request.system.starts_with("You sum up"));
    let asked: Vec<_> = asked.collect();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|request| request.tools.is_empty()));
    let last = &requests.last().unwrap().messages;
    assert_paired(last);
    let summed = format!("{:?}", last[0]);
    assert!(summed.contains("It is for reference only"), "{summed}");
    assert!(
        summed.contains("Texts were written.") && summed.contains("- write more"),
        "{summed}"
    );
    assert!(
        summed.contains("The user's last words in that part:\\nwrite texts"),
        "{summed}"
    );
    assert_eq!(last.len(), 1 + 3 * 2);
    let again = self::agent(&model).keep_in(kept).await.unwrap();
    assert_eq!(
        format!("{:?}", again.messages()),
        format!("{:?}", first.messages())
    );
    let entries = again.messages().len();
    assert_eq!(entries, 1 + 3 * 2 + 1);
}

#[tokio::test]
async fn a_summary_that_fails_leaves_the_history_as_it_is() {
    let model = model(6, 50_000).fails("overloaded").says("ok");
    let finished = agent(&model).run("go").await.unwrap();
    assert_eq!(finished.text, "ok");
    let last = model.requests().last().unwrap().messages.len();
    assert_eq!(last, 1 + 6 * 2);
}
