//! Many tools: which are declared, how others are added, and that none is added from outside the view.

use std::sync::Arc;

use haft::future::BoxFuture;
use haft::result::ToolResult;
use haft::testing::TestTool;
use haft::{CallContext, Executor, Policy, Session, ToolRegistry, ToolSpec, ToolsetExt as _};
use haft_agent::conversation::{ConversationEntry, MemoryConversation};
use haft_agent::testing::ScriptedModel;
use haft_agent::{Agent, AgentOptions, Conversation, suggest};
use serde_json::Value;

use crate::support::{Log, last_answers, noting, text};

/// Returns `read_file`, `tool_expand_tools`, and a tool for each animal.
fn registry(log: &Log, animals: &[&str]) -> ToolRegistry {
    let registry = ToolRegistry::new();
    let expand = TestTool::with_body(
        TestTool::echo("tool_expand_tools"),
        |arguments: Value, context: CallContext| {
            let names: Vec<String> =
                serde_json::from_value(arguments["tool_names"].clone()).unwrap();
            let expanded = context.expand(names.iter().map(String::as_str));
            let count = expanded.len();
            Box::pin(async move { Ok(ToolResult::text(format!("{count} expanded"))) })
                as BoxFuture<'static, _>
        },
    );
    registry.add_all([expand.arc()]).unwrap();
    registry
        .add_all([noting(TestTool::echo("read_file"), log)])
        .unwrap();
    for animal in animals {
        let spec = ToolSpec {
            description: format!("Feed the {animal} in the zoo."),
            ..TestTool::echo(&format!("feed_{animal}"))
        };
        registry.add_all([noting(spec, log)]).unwrap();
    }
    registry
}

const MANY: [&str; 20] = [
    "ant", "bear", "cat", "dog", "eel", "fox", "goat", "hen", "ibis", "jackal", "koala", "lion",
    "mole", "newt", "owl", "pig", "quail", "rat", "seal", "toad",
];

/// Returns the lists of declared names, in order.
async fn offered(kept: &Arc<MemoryConversation>) -> Vec<Vec<String>> {
    let entries = kept.entries().await.unwrap();
    let offered = entries.into_iter().filter_map(|entry| match entry {
        ConversationEntry::Offered(names) => Some(names),
        _ => None,
    });
    offered.collect()
}

#[tokio::test]
async fn few_tools_are_declared_as_they_are_and_of_many_those_that_fit() {
    for (animals, declared) in [
        (&MANY[..13], 15),
        // The baseline, and the tool that the prompt is about.
        (&MANY[..14], 3),
        (&MANY[..], 3),
    ] {
        let log = Log::default();
        let session = Session::new(suggest::view(registry(&log, animals)));
        let model = ScriptedModel::new().says("ok");
        let kept = Arc::new(MemoryConversation::new());
        let agent = Agent::new(model, Executor::new(Policy::workspace()), session);
        let mut agent = agent.keep_in(kept.clone()).await.unwrap();
        agent.run("bear").await.unwrap();
        let names = offered(&kept).await;
        assert_eq!(names.len(), 1);
        assert_eq!(names[0].len(), declared, "{names:?}");
        assert!(names[0].contains(&"feed_bear".to_owned()));
    }
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_not_declared_is_refused_with_the_call_to_make() {
    let log = Log::default();
    let tools = registry(&log, &MANY);
    tools
        .add_all([noting(TestTool::echo("secret"), &log)])
        .unwrap();
    // Tools outside the view stay out.
    let session = Session::new(suggest::view(tools.except(["secret"])));
    let model = ScriptedModel::new()
        .calls([("a", "feed_toad", "{}"), ("b", "secret", "{}")])
        .calls([(
            "c",
            "tool_expand_tools",
            r#"{"tool_names":["feed_toad","secret"]}"#,
        )])
        .calls([("d", "feed_toad", "{}"), ("e", "secret", "{}")])
        .says("ok");
    let kept = Arc::new(MemoryConversation::new());
    let agent = Agent::new(model.clone(), Executor::new(Policy::workspace()), session);
    let mut agent = agent.keep_in(kept.clone()).await.unwrap();
    agent.run("bear").await.unwrap();
    assert_eq!(log.words(), ["feed_toad {}"]);
    let first = model.requests()[1].messages.clone();
    let Some(haft_wire::Message::Results(answers)) = first.last() else {
        panic!("{first:?}");
    };
    assert!(
        text(&answers[0])
            .contains(r#"call tool_expand_tools with {"tool_names":["feed_toad"]} first"#),
        "{}",
        text(&answers[0])
    );
    assert!(text(&answers[1]).starts_with("not_found: "));
    assert!(text(&last_answers(&model)[1]).starts_with("not_found: "));
    // Tools declared before keep their positions.
    let names = offered(&kept).await;
    assert_eq!(names.len(), 2);
    assert!(names[1].starts_with(&names[0]), "{names:?}");
    assert_eq!(names[1].last().map(String::as_str), Some("feed_toad"));
    // A new process declares the same tools.
    let session = Session::new(suggest::view(registry(&log, &MANY)));
    let again = Agent::new(
        ScriptedModel::new().says("ok"),
        Executor::new(Policy::workspace()),
        session,
    );
    let mut again = again.keep_in(kept.clone()).await.unwrap();
    again.run("bear").await.unwrap();
    assert_eq!(offered(&kept).await.len(), 2);
}

#[tokio::test]
async fn a_model_chooses_tools_and_one_that_cannot_leaves_them_to_the_search() {
    for (answers, declared) in [
        (vec![r#"{"tool_ids":[1,3,999]}"#], 4),
        (vec!["none", r#"Sure: {"tool_ids":[2]}"#], 3),
        (vec!["none", "none"], 3),
    ] {
        let log = Log::default();
        let session = Session::new(suggest::view(registry(&log, &MANY)));
        let mut chooser = ScriptedModel::new();
        for answer in answers {
            chooser = chooser.says(answer);
        }
        let kept = Arc::new(MemoryConversation::new());
        let agent = Agent::new(
            ScriptedModel::new().says("ok"),
            Executor::new(Policy::workspace()),
            session,
        );
        let agent = agent.with_options(AgentOptions {
            chooser: Some(Arc::new(chooser.clone())),
            ..AgentOptions::default()
        });
        let mut agent = agent.keep_in(kept.clone()).await.unwrap();
        agent.run("bear").await.unwrap();
        assert_eq!(offered(&kept).await[0].len(), declared);
        let asked = format!("{:?}", chooser.requests()[0].messages);
        assert!(
            asked.contains("1. feed_bear: Feed the bear in the zoo."),
            "{asked}"
        );
        assert!(
            !asked.contains("read_file"),
            "the baseline is not chosen from"
        );
    }
}
