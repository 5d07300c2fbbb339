//! The calls of a reply: which run, in which order, and what the model reads about those that do not.

use haft_agent::testing::{ScriptedModel, function_call};
use haft_agent::{Agent, RunEnd};
use haft_wire::{CallKind, StopReason, TurnItem};

use crate::support::{Log, agent, last_answers, text, watcher};

#[tokio::test]
async fn a_task_of_several_turns_ends_with_its_answer() {
    let (log, events) = (Log::default(), Log::default());
    let model = ScriptedModel::new()
        .calls([("a", "safe", r#"{"n":1}"#), ("b", "plain", r#"{"n":2}"#)])
        .calls([("a", "docs__search", r#"{"n":3}"#)])
        .says("done");
    let mut agent = agent(&model, &log).with_watcher(watcher(&events));
    let finished = agent.run("do it").await.unwrap();
    assert_eq!(finished.end, RunEnd::Done);
    assert_eq!(finished.text, "done");
    assert_eq!((finished.spent.turns, finished.spent.tokens()), (3, 45));
    assert_eq!(
        log.words(),
        [
            r#"safe {"n":1}"#,
            r#"plain {"n":2}"#,
            r#"docs.search {"n":3}"#
        ]
    );
    assert_eq!(
        events.words(),
        [
            "message ",
            "usage",
            "call safe",
            "result safe false",
            "call plain",
            "result plain false",
            "message ",
            "usage",
            "call docs.search",
            "result docs.search false",
            "delta",
            "message done",
            "usage",
            "done done"
        ]
    );
}

#[tokio::test]
async fn every_call_gets_an_honest_answer() {
    let rows: [(&str, &str, &str); 12] = [
        ("safe", r#"{"n":1}"#, r#"{"n":1}"#),
        ("safe", "", "{}"),
        ("nosuch", "{}", "not_found: no tool \"nosuch\""),
        ("plian", "{}", "did you mean plain?"),
        ("safe", r#"{"n":"#, "invalid_arguments: "),
        ("safe", "plainly no JSON", "invalid_arguments: "),
        ("safe", "[1]", "invalid_arguments: "),
        ("safe", "null", "invalid_arguments: "),
        ("safe", r#"{"n":1,"n":2}"#, "invalid_arguments: "),
        (
            "plain",
            r#"{"fail":true}"#,
            "failed: it failed as it was told",
        ),
        ("risky", "{}", "denied: "),
        ("na me\u{1F980}", "{}", "not_found: "),
    ];
    for (name, arguments, expect) in rows {
        let model = ScriptedModel::new()
            .calls([("a", name, arguments)])
            .says("so be it");
        let finished = agent(&model, &Log::default()).run("go").await.unwrap();
        assert_eq!(finished.end, RunEnd::Done);
        let answers = last_answers(&model);
        let read = text(&answers[0]);
        assert!(read.contains(expect), "{name} {arguments}: {read}");
        assert_eq!(answers[0].is_error, !expect.starts_with('{'), "{name}");
    }
}

#[tokio::test]
async fn of_two_calls_with_one_id_the_first_runs() {
    let log = Log::default();
    let model = ScriptedModel::new()
        .calls([("a", "safe", r#"{"n":1}"#), ("a", "safe", r#"{"n":2}"#)])
        .says("ok");
    agent(&model, &log).run("go").await.unwrap();
    assert_eq!(log.words(), [r#"safe {"n":1}"#]);
    let answers = last_answers(&model);
    assert!(text(&answers[1]).contains("has the id \"a\", too"));
}

#[tokio::test]
async fn a_reply_of_two_hundred_calls_is_answered_whole() {
    let log = Log::default();
    let ids: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
    let calls = ids.iter().map(|id| (id.as_str(), "safe", "{}"));
    let model = ScriptedModel::new().calls(calls).says("ok");
    let finished = agent(&model, &log).run("go").await.unwrap();
    assert_eq!(finished.end, RunEnd::Done);
    let answers = last_answers(&model);
    assert_eq!(answers.len(), 200);
    assert!(
        answers
            .iter()
            .zip(&ids)
            .all(|(answer, id)| answer.call.id == *id)
    );
    assert_eq!(log.words().len(), 128);
    assert!(text(&answers[128]).contains("the first 128 of a reply are run"));
}

#[tokio::test]
async fn a_call_that_may_be_cut_is_not_run_and_the_others_are() {
    let log = Log::default();
    let call = |id, arguments| TurnItem::Call(function_call(id, "safe", arguments));
    let model = ScriptedModel::new()
        .replies(
            vec![call("a", r#"{"n":1}"#), call("b", r#"{"n":2}"#)],
            StopReason::Length,
        )
        .replies(
            vec![
                call("a", r#"{"n":3}"#),
                TurnItem::Text("and then".to_owned()),
            ],
            StopReason::Length,
        )
        .says("ok");
    agent(&model, &log).run("go").await.unwrap();
    assert_eq!(log.words(), [r#"safe {"n":1}"#, r#"safe {"n":3}"#]);
}

#[tokio::test]
async fn calls_safe_beside_others_overlap_and_the_rest_keep_their_order() {
    use haft::future::BoxFuture;
    use haft::result::ToolResult;
    use haft::spec::ToolSpec;
    use haft::testing::TestTool;
    use haft::{Executor, Policy, Session, ToolRegistry};

    let log = Log::default();
    let both = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    let registry = ToolRegistry::new();
    for (name, concurrency_safe) in [("beside", true), ("alone", false)] {
        let (log, both) = (log.clone(), both.clone());
        let spec = ToolSpec {
            concurrency_safe,
            ..TestTool::echo(name)
        };
        let body = move |arguments: serde_json::Value, _| {
            let (log, both) = (log.clone(), both.clone());
            Box::pin(async move {
                log.note(format!("begin {name} {}", arguments["n"]));
                if concurrency_safe {
                    // Each waits for the other.
                    both.wait().await;
                }
                log.note(format!("end {name}"));
                Ok(ToolResult::text("ok"))
            }) as BoxFuture<'static, _>
        };
        registry
            .add_all([TestTool::with_body(spec, body).arc()])
            .unwrap();
    }
    let model = ScriptedModel::new()
        .calls([
            ("a", "beside", r#"{"n":1}"#),
            ("b", "beside", r#"{"n":2}"#),
            ("c", "alone", r#"{"n":3}"#),
            ("d", "alone", r#"{"n":4}"#),
        ])
        .says("ok");
    let session = Session::new(registry);
    let mut agent = Agent::new(model, Executor::new(Policy::workspace()), session);
    agent.run("go").await.unwrap();
    assert_eq!(
        log.words(),
        [
            "begin beside 1",
            "begin beside 2",
            "end beside",
            "end beside",
            "begin alone 3",
            "end alone",
            "begin alone 4",
            "end alone"
        ]
    );
}

#[tokio::test]
async fn a_freeform_call_is_one_with_the_argument_input() {
    let log = Log::default();
    let mut call = function_call("a", "plain", "a \"text\"\n");
    call.kind = CallKind::Freeform;
    let model = ScriptedModel::new()
        .replies(vec![TurnItem::Call(call)], StopReason::Calls)
        .says("ok");
    agent(&model, &log).run("go").await.unwrap();
    assert_eq!(log.words(), [r#"plain {"input":"a \"text\"\n"}"#]);
}
