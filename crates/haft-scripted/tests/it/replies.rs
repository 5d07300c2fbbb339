//! A tool-calling turn in every dialect, streamed or not, however the stream is split.

use haft_scripted::scenario::StreamCut;
use haft_scripted::{Dialect, Scenario, ScenarioServer, scenarios, serve};
use serde_json::{Value, json};

use crate::client::{Read, ask, go_on, post};
use crate::readers::read;

const TURN: &str = r#"
title = "One call"
[[turns]]
expect = { user = "Zürich", tools = ["docs.search"], results = [] }
usage = { input = 20, cached = 5, output = 9, thinking = 2 }
say = [
  { thinking = "Ich überlege – kurz." },
  { text = "I'll look it up: 你好 🎉." },
  { call = { id = "one", tool = "docs.search", arguments = { path = "naïve – 🎉.md", depth = 2 } } },
  { call = { tool = "plain", arguments = {} } },
]
[[turns]]
expect.results = [{ call = "one", contains = "15 degrees" }]
say = [{ text = "It is 15 degrees." }]
"#;

/// Plays both turns of the scenario with a server.
async fn hold(dialect: Dialect, stream: bool, server: &ScenarioServer) {
    let tools = match dialect {
        Dialect::Gemini => ["docs.search", "plain"],
        _ => ["docs__search", "plain"],
    };
    let row = format!("{dialect} {stream}");
    let mut body = ask(dialect, stream, "How warm is it in Zürich?", &tools);
    if dialect == Dialect::OpenAiChat && stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    let answer = post(server.address(), dialect, stream, &body).await;
    let first = read(dialect, stream, &answer);
    check_first(dialect, &first, tools[0], &row);
    go_on(dialect, &mut body, &first, &["It is 15 degrees.", "ok"]);
    let answer = post(server.address(), dialect, stream, &body).await;
    let last = read(dialect, stream, &answer);
    assert_eq!(last.text, "It is 15 degrees.", "{row}");
    assert!(last.calls.is_empty(), "{row}");
}

/// Checks that the first turn is that of the scenario.
fn check_first(dialect: Dialect, first: &Read, tool: &str, row: &str) {
    assert_eq!(first.text, "I'll look it up: 你好 🎉.", "{row}");
    assert_eq!(first.thinking, "Ich überlege – kurz.", "{row}");
    let [one, two] = first.calls.as_slice() else {
        panic!("{row}: {first:?}");
    };
    let named = (one.id.as_str(), one.name.as_str());
    assert_eq!(named, ("one", tool), "{row}");
    let arguments: Value = serde_json::from_str(&one.arguments).unwrap();
    let expect = json!({"path": "naïve – 🎉.md", "depth": 2});
    assert_eq!(arguments, expect, "{row}");
    let plain = (two.name.as_str(), two.arguments.as_str());
    assert_eq!(plain, ("plain", "{}"), "{row}");
    // Anthropic's count of tokens read excludes those from a cache.
    let (stop, read_anew) = match dialect {
        Dialect::OpenAiChat => ("tool_calls", 20),
        Dialect::OpenAiResponses => ("completed", 20),
        Dialect::Anthropic => ("tool_use", 15),
        Dialect::Gemini => ("STOP", 20),
    };
    assert_eq!(first.stop, stop, "{row}");
    let tokens = (first.input_tokens, first.output_tokens);
    assert_eq!(tokens, (read_anew, 9), "{row}");
}

#[tokio::test]
async fn a_turn_with_calls_is_held_in_every_dialect_streamed_and_not() {
    let cuts = [
        StreamCut::Random,
        StreamCut::Bytes,
        StreamCut::Events,
        StreamCut::Whole,
    ];
    for dialect in Dialect::ALL {
        for stream in [false, true] {
            for cut in cuts {
                let scenario = Scenario::from_toml(TURN).unwrap().with_pieces(cut);
                let server = serve(scenario).await.unwrap();
                hold(dialect, stream, &server).await;
                assert_eq!(server.problems(), [""; 0], "{dialect} {stream}");
                assert!(server.is_over(), "{dialect} {stream}");
                let requests = server.requests();
                let turns: Vec<Option<usize>> =
                    requests.iter().map(|request| request.turn).collect();
                assert_eq!(turns, [Some(0), Some(1)]);
            }
        }
    }
}

#[tokio::test]
async fn a_seed_cuts_a_stream_at_its_own_places_and_within_characters() {
    let mut seen: Vec<Vec<Vec<u8>>> = Vec::new();
    for seed in [1, 1, 2] {
        let scenario = Scenario::from_toml(TURN).unwrap().with_seed(seed);
        let server = serve(scenario).await.unwrap();
        let body = ask(
            Dialect::Anthropic,
            true,
            "Zürich",
            &["docs__search", "plain"],
        );
        let answer = post(server.address(), Dialect::Anthropic, true, &body).await;
        assert!(answer.pieces.len() > 20, "{} pieces", answer.pieces.len());
        seen.push(answer.pieces);
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
    let cut = seen
        .iter()
        .flatten()
        .any(|piece| std::str::from_utf8(piece).is_err());
    assert!(cut, "no piece ends within a character");
}

#[tokio::test]
async fn a_response_is_continued_by_its_id_or_by_references_to_its_items() {
    let dialect = Dialect::OpenAiResponses;
    let tools = ["docs__search", "plain"];
    for by_reference in [false, true] {
        let server = serve(Scenario::from_toml(TURN).unwrap()).await.unwrap();
        let body = ask(dialect, false, "Zürich", &tools);
        let answer = post(server.address(), dialect, false, &body).await.json();
        let outputs = answer["output"].as_array().unwrap();
        let mut input: Vec<Value> = Vec::new();
        let mut next = ask(dialect, false, "", &tools);
        if by_reference {
            input.extend(body["input"].as_array().unwrap().clone());
            input.extend(
                outputs
                    .iter()
                    .map(|item| json!({"type": "item_reference", "id": item["id"]})),
            );
        } else {
            next["previous_response_id"] = answer["id"].clone();
        }
        for call in outputs
            .iter()
            .filter(|item| item["type"] == "function_call")
        {
            input.push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": "15 degrees"}));
        }
        next["input"] = input.into();
        let last = post(server.address(), dialect, false, &next).await;
        assert_eq!(read(dialect, false, &last).text, "It is 15 degrees.");
    }
}

/// Returns what a client of each dialect gets for the patch of the fifth turn.
async fn patch(dialect: Dialect, provider: bool) -> Value {
    let source =
        scenarios::SIX_TURNS.replace("expect.results", "expect.results = []\n#expect.results");
    let turns: Vec<&str> = source.split("[[turns]]").collect();
    let turn = turns
        .iter()
        .find(|turn| turn.contains("patch = {"))
        .unwrap();
    let say = turn.split_once("say = [").unwrap().1;
    let scenario = format!("title = \"t\"\n[[turns]]\nsay = [{say}");
    let server = serve(Scenario::from_toml(&scenario).unwrap())
        .await
        .unwrap();
    let mut body = ask(dialect, false, "go", &["apply_patch"]);
    if provider {
        body["tools"] = json!([{"type": "apply_patch"}]);
    }
    let answer = post(server.address(), dialect, false, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn a_patch_is_the_providers_own_where_it_is_declared_and_a_function_elsewhere() {
    let own = patch(Dialect::OpenAiResponses, true).await;
    let item = &own["output"][1];
    assert_eq!(item["type"], "apply_patch_call");
    assert_eq!(item["operation"]["type"], "update_file");
    assert_eq!(
        item["operation"]["diff"],
        "@@\n-A small project.\n+A small project with notes: see NOTES.md.\n"
    );
    for dialect in Dialect::ALL {
        let function = patch(dialect, false).await.to_string();
        let v4a = "*** Begin Patch";
        assert!(
            function.contains(v4a) && function.contains("*** Update File: README.md"),
            "{dialect}: {function}"
        );
    }
}

#[tokio::test]
async fn commands_are_the_shell_that_is_declared() {
    let scenario = r#"
    title = "t"
    [[turns]]
    say = [{ shell = { id = "s", commands = ["ls", "pwd"], timeout_ms = 1500 } }]
    "#;
    let rows = [
        (
            Dialect::OpenAiResponses,
            json!({"type": "shell", "environment": {"type": "local"}}),
            r#"{"commands":["ls","pwd"],"timeout_ms":1500}"#,
        ),
        (
            Dialect::OpenAiResponses,
            json!({"type": "local_shell"}),
            r#"["bash","-lc","pwd"]"#,
        ),
        (
            Dialect::Anthropic,
            json!({"type": "bash_20250124", "name": "bash"}),
            r#""id":"s_2","input":{"command":"pwd"},"name":"bash""#,
        ),
        (
            Dialect::Anthropic,
            json!({"name": "run_command", "input_schema": {"type": "object"}}),
            r#""input":{"command":"pwd","timeout_s":2},"name":"run_command""#,
        ),
    ];
    for (dialect, tool, expect) in rows {
        let server = serve(Scenario::from_toml(scenario).unwrap()).await.unwrap();
        let mut body = ask(dialect, false, "go", &[]);
        body["tools"] = json!([tool]);
        let answer = post(server.address(), dialect, false, &body).await.text();
        assert!(answer.contains(expect), "{tool}: {answer}");
    }
}

#[tokio::test]
async fn freeform_tools_namespaces_and_hosted_items_come_as_they_are_declared() {
    let scenario = r#"
    title = "t"
    [[turns]]
    say = [
      { item = { openai-responses = { type = "web_search_call", id = "ws_1", status = "completed" } } },
      { call = { id = "f", tool = "grammar", input = "a b" } },
      { call = { id = "n", tool = "docs.find", arguments = {} } },
    ]
    "#;
    for stream in [false, true] {
        let server = serve(Scenario::from_toml(scenario).unwrap()).await.unwrap();
        let mut body = ask(Dialect::OpenAiResponses, stream, "go", &[]);
        body["tools"] = json!([
            {"type": "custom", "name": "grammar"},
            {"type": "namespace", "name": "docs", "description": "d", "tools": [{"type": "function", "name": "find", "parameters": null}]},
        ]);
        let answer = post(server.address(), Dialect::OpenAiResponses, stream, &body).await;
        let response = if stream {
            answer.events().last().unwrap()["response"].clone()
        } else {
            answer.json()
        };
        let output = &response["output"];
        assert_eq!(
            output[0],
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed"})
        );
        assert_eq!(
            (&output[1]["type"], &output[1]["input"]),
            (&json!("custom_tool_call"), &json!("a b"))
        );
        assert_eq!(
            (&output[2]["name"], &output[2]["namespace"]),
            (&json!("find"), &json!("docs"))
        );
    }
    let server = serve(Scenario::from_toml(scenario).unwrap()).await.unwrap();
    let body = ask(Dialect::Gemini, false, "go", &["grammar", "docs.find"]);
    let read = read(
        Dialect::Gemini,
        false,
        &post(server.address(), Dialect::Gemini, false, &body).await,
    );
    assert_eq!(read.calls[0].arguments, r#"{"input":"a b"}"#);
    assert_eq!(read.calls.len(), 2);
}
