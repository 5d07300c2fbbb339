//! haft's own writer and reader of every dialect complete the task of six turns with the server.

use std::sync::Arc;

use haft_scripted::scenario::StreamCut;
use haft_scripted::{Dialect, Scenario, scenarios, serve};
use haft_wire::declared::Function;
use haft_wire::declarer::VersionedTool;
use haft_wire::{
    Call, CallKind, Declarer, Message, Reply, ReplyLimits, Request, ToolChoice, ToolDeclaration,
    ToolOutput,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::client::{self, headers, send};

/// The tools of the task; the ones with longer names test their mapping.
const TOOLS: [&str; 7] = [
    "list_files",
    "read_file",
    "load_skill",
    "tool_chain",
    "write_file",
    "apply_patch",
    "docs.search",
];

fn tools(dialect: Dialect, provider: bool) -> Vec<(String, ToolDeclaration)> {
    let parameters: Arc<RawValue> = to_raw_value(&json!({"type": "object"})).unwrap().into();
    let own = |name: &&str| {
        let tool = ToolDeclaration::Function(Function {
            name: (*name).to_owned(),
            description: "Does it.".to_owned(),
            parameters: Arc::clone(&parameters),
            strict: false,
            deferred: false,
        });
        ((*name).to_owned(), tool)
    };
    let names = TOOLS
        .iter()
        .filter(|name| !provider || **name != "apply_patch");
    let mut tools: Vec<(String, ToolDeclaration)> = names.map(own).collect();
    if provider {
        let spec = to_raw_value(&json!({"type": "apply_patch"})).unwrap();
        tools.push((
            "own".to_owned(),
            ToolDeclaration::Provider { dialect, spec },
        ));
    }
    tools
}

/// Returns the answer to a call that the next turn expects.
fn answer(call: &Call) -> ToolOutput {
    let call = call.clone();
    match call.id.as_str() {
        "list" => ToolOutput::text(call, "README.md"),
        "read" => ToolOutput::text(call, "# X\n\nA small project.\n"),
        "chain" => ToolOutput::text(call, "{\"counted\": true}"),
        "denied" => ToolOutput::error(call, "denied: .git is protected"),
        id if matches!(call.kind, CallKind::Provider(_)) => {
            let item =
                json!({"type": "apply_patch_call_output", "call_id": id, "status": "completed"});
            ToolOutput {
                item: Some(to_raw_value(&item).unwrap()),
                ..ToolOutput::text(call, "done")
            }
        }
        _ => ToolOutput::text(call, "done"),
    }
}

fn read(dialect: Dialect, stream: bool, answer: &client::Answer) -> Reply {
    assert_eq!(answer.status, 200, "{dialect}: {}", answer.text());
    if !stream {
        return dialect.read(&answer.body, ReplyLimits::default()).unwrap();
    }
    let mut reader = dialect.reader(ReplyLimits::default());
    let mut deltas = Vec::new();
    for piece in &answer.pieces {
        reader.push(piece, &mut deltas).unwrap();
    }
    assert!(reader.is_whole(), "{dialect}: {}", answer.text());
    reader.finish().unwrap()
}

/// Completes the task; returns the calls made, and the last text.
async fn task(
    dialect: Dialect,
    stream: bool,
    provider: bool,
    cut: StreamCut,
    seed: u64,
) -> (Vec<(String, Value)>, String) {
    let scenario = Scenario::from_toml(scenarios::SIX_TURNS).unwrap();
    let server = serve(scenario.with_pieces(cut).with_seed(seed))
        .await
        .unwrap();
    let tools = tools(dialect, provider);
    let entries: Vec<VersionedTool<'_>> = tools
        .iter()
        .map(|(version, tool)| VersionedTool { version, tool })
        .collect();
    let declarations = Declarer::new(dialect).declare(&entries);
    let mut messages = vec![Message::user("Write the release notes.")];
    let mut calls = Vec::new();
    let mut text = String::new();
    while !server.is_over() {
        let request = Request {
            model: "gemini-3-flash",
            system: "Be brief.",
            messages: &messages,
            tools: &declarations,
            choice: &ToolChoice::Auto,
            parallel: true,
            max_tokens: None,
            stream,
            extra: &[],
        };
        let body = String::from_utf8(dialect.write(&request).unwrap()).unwrap();
        let path = dialect.path("gemini-3-flash", stream);
        let response = send(server.address(), &path, headers(dialect), &body).await;
        let reply = read(dialect, stream, &response);
        text = reply.turn.text();
        let answers: Vec<ToolOutput> = reply.turn.calls().map(answer).collect();
        for call in reply.turn.calls() {
            let name = declarations.called(call).unwrap_or(&call.name);
            let arguments = serde_json::from_str(&call.arguments).unwrap();
            calls.push((name.to_owned(), arguments));
        }
        messages.push(Message::Model(reply.turn));
        if !answers.is_empty() {
            messages.push(Message::Results(answers));
        }
    }
    assert_eq!(server.problems(), [""; 0], "{dialect} {stream}");
    (calls, text)
}

#[tokio::test]
async fn the_same_calls_are_read_in_every_dialect_however_its_stream_is_cut() {
    let (expect, words) = task(Dialect::OpenAiChat, false, false, StreamCut::Whole, 0).await;
    let names: Vec<&str> = expect.iter().map(|(name, _)| name.as_str()).collect();
    let made = [
        "list_files",
        "read_file",
        "load_skill",
        "tool_chain",
        "write_file",
        "write_file",
        "apply_patch",
    ];
    assert_eq!(names, made);
    for dialect in Dialect::ALL {
        for (stream, cut) in [
            (false, StreamCut::Random),
            (true, StreamCut::Bytes),
            (true, StreamCut::Events),
        ] {
            let done = task(dialect, stream, false, cut, 1).await;
            assert_eq!(
                done,
                (expect.clone(), words.clone()),
                "{dialect} {stream} {cut:?}"
            );
        }
        for seed in 0..10 {
            let done = task(dialect, true, false, StreamCut::Random, seed).await;
            assert_eq!(
                done,
                (expect.clone(), words.clone()),
                "{dialect} seed {seed}"
            );
        }
    }
}

#[tokio::test]
async fn a_patch_of_the_provider_is_answered_in_its_own_words() {
    for stream in [false, true] {
        let (calls, _) = task(Dialect::OpenAiResponses, stream, true, StreamCut::Random, 3).await;
        let (_, item) = calls.last().unwrap();
        assert_eq!(item["operation"]["type"], "update_file", "{stream}");
    }
}
