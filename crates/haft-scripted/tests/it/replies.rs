//! A tool-calling turn in every dialect, streamed and not, however the stream is cut.

use haft_scripted::scenario::Cut;
use haft_scripted::{Dialect, Scenario, Server, scenarios, serve};
use serde_json::{Value, json};

use crate::client::{Answer, Made, Read, ask, go_on, post};

/// Reads a reply in any dialect, streamed or not.
pub(crate) fn read(dialect: Dialect, stream: bool, answer: &Answer) -> Read {
    assert_eq!(answer.status, 200, "{dialect}: {}", answer.text());
    assert!(answer.is_whole, "{dialect}: {}", answer.text());
    match (dialect, stream) {
        (Dialect::OpenAiChat, false) => chat(&answer.json()),
        (Dialect::OpenAiChat, true) => chat(&chat_chunks(&answer.events())),
        (Dialect::OpenAiResponses, false) => responses(&answer.json()),
        (Dialect::OpenAiResponses, true) => responses(&responses_events(&answer.events())),
        (Dialect::Anthropic, false) => messages(&answer.json()),
        (Dialect::Anthropic, true) => messages(&messages_events(&answer.events())),
        (Dialect::Gemini, false) => gemini(&[answer.json()]),
        (Dialect::Gemini, true) => gemini(&answer.events()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn chat(body: &Value) -> Read {
    assert_eq!(body["object"], "chat.completion");
    let message = &body["choices"][0]["message"];
    let calls = message["tool_calls"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    Read {
        text: text(&message["content"]),
        thinking: text(&message["reasoning_content"]),
        calls: calls
            .iter()
            .map(|call| Made {
                id: text(&call["id"]),
                name: text(&call["function"]["name"]),
                arguments: text(&call["function"]["arguments"]),
            })
            .collect(),
        stop: text(&body["choices"][0]["finish_reason"]),
        input_tokens: body["usage"]["prompt_tokens"].as_u64().unwrap(),
        output_tokens: body["usage"]["completion_tokens"].as_u64().unwrap(),
        raw: message.clone(),
    }
}

/// The chunks as the body that they stand for.
fn chat_chunks(events: &[Value]) -> Value {
    assert_eq!(events.last(), Some(&json!("[DONE]")));
    let mut message = json!({"role": "assistant"});
    let mut calls: Vec<Value> = Vec::new();
    let (mut stop, mut usage) = (Value::Null, Value::Null);
    for chunk in &events[..events.len() - 1] {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        usage = chunk["usage"].clone();
        let Some(choice) = chunk["choices"].get(0) else {
            continue;
        };
        let delta = &choice["delta"];
        stop = choice["finish_reason"].clone();
        for key in ["content", "reasoning_content"] {
            if let Some(piece) = delta[key].as_str() {
                message[key] = format!("{}{piece}", text(&message[key])).into();
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            if at == calls.len() {
                calls.push(
                    json!({"id": call["id"], "type": "function", "function": call["function"]}),
                );
            } else {
                let whole = &mut calls[at]["function"]["arguments"];
                *whole = format!("{}{}", text(whole), text(&call["function"]["arguments"])).into();
            }
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({"object": "chat.completion", "choices": [{"message": message, "finish_reason": stop}], "usage": usage})
}

fn responses(body: &Value) -> Read {
    assert_eq!(body["object"], "response");
    let mut read = Read {
        stop: text(&body["status"]),
        input_tokens: body["usage"]["input_tokens"].as_u64().unwrap(),
        output_tokens: body["usage"]["output_tokens"].as_u64().unwrap(),
        raw: body["output"].clone(),
        ..Read::default()
    };
    for item in body["output"].as_array().unwrap() {
        match item["type"].as_str().unwrap() {
            "message" => read.text += &text(&item["content"][0]["text"]),
            "reasoning" => read.thinking += &text(&item["summary"][0]["text"]),
            "function_call" => read.calls.push(Made {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: text(&item["arguments"]),
            }),
            other => panic!("{other}"),
        }
    }
    read
}

/// The response of the last event; its deltas must add up to it.
fn responses_events(events: &[Value]) -> Value {
    let mut texts = Vec::new();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], json!(number), "{event}");
        let at = usize::try_from(event["output_index"].as_u64().unwrap_or_default()).unwrap();
        let kind = event["type"].as_str().unwrap();
        if kind == "response.output_item.added" {
            texts.push(String::new());
        } else if kind.ends_with(".delta") {
            texts[at] += event["delta"].as_str().unwrap();
        }
    }
    let response = events.last().unwrap()["response"].clone();
    for (item, text) in response["output"].as_array().unwrap().iter().zip(texts) {
        let own = [
            &item["content"][0]["text"],
            &item["summary"][0]["text"],
            &item["arguments"],
        ];
        assert!(own.contains(&&json!(text)), "{item}: {text}");
    }
    response
}

fn messages(body: &Value) -> Read {
    assert_eq!(body["type"], "message");
    let mut read = Read {
        stop: text(&body["stop_reason"]),
        input_tokens: body["usage"]["input_tokens"].as_u64().unwrap(),
        output_tokens: body["usage"]["output_tokens"].as_u64().unwrap(),
        raw: json!({"role": "assistant", "content": body["content"]}),
        ..Read::default()
    };
    for block in body["content"].as_array().unwrap() {
        match block["type"].as_str().unwrap() {
            "text" => read.text += &text(&block["text"]),
            "thinking" => read.thinking += &text(&block["thinking"]),
            "tool_use" => read.calls.push(Made {
                id: text(&block["id"]),
                name: text(&block["name"]),
                arguments: block["input"].to_string(),
            }),
            other => panic!("{other}"),
        }
    }
    read
}

/// The events as the message that they stand for.
fn messages_events(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut input = String::new();
    for event in &events[1..] {
        let at = usize::try_from(event["index"].as_u64().unwrap_or_default()).unwrap();
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                message["content"]
                    .as_array_mut()
                    .unwrap()
                    .push(event["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => {
                for key in ["text", "thinking", "signature"] {
                    if let Some(piece) = delta[key].as_str() {
                        let whole = &mut message["content"][at][key];
                        *whole = format!("{}{piece}", text(whole)).into();
                    }
                }
                input += delta["partial_json"].as_str().unwrap_or_default();
            }
            "content_block_stop" if !input.is_empty() => {
                message["content"][at]["input"] = serde_json::from_str(&input).unwrap();
            }
            "message_delta" => {
                message["stop_reason"] = delta["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    message
}

fn gemini(chunks: &[Value]) -> Read {
    let last = chunks.last().unwrap();
    let mut read = Read {
        stop: text(&last["candidates"][0]["finishReason"]),
        input_tokens: last["usageMetadata"]["promptTokenCount"].as_u64().unwrap(),
        output_tokens: ["candidatesTokenCount", "thoughtsTokenCount"]
            .map(|key| last["usageMetadata"][key].as_u64().unwrap())
            .iter()
            .sum(),
        ..Read::default()
    };
    let mut parts: Vec<Value> = Vec::new();
    for part in chunks.iter().flat_map(|chunk| {
        chunk["candidates"][0]["content"]["parts"]
            .as_array()
            .unwrap()
    }) {
        match (part["text"].as_str(), part["thought"] == true) {
            (Some(text), true) => read.thinking += text,
            (Some(text), false) => read.text += text,
            (None, _) => read.calls.push(Made {
                id: text(&part["functionCall"]["id"]),
                name: text(&part["functionCall"]["name"]),
                arguments: part["functionCall"]["args"].to_string(),
            }),
        }
        if part["text"] != "" {
            parts.push(part.clone());
        }
    }
    read.raw = json!({"role": "model", "parts": parts});
    read
}

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

async fn hold(dialect: Dialect, stream: bool, server: &Server) {
    let tools = match dialect {
        Dialect::Gemini => ["docs.search", "plain"],
        _ => ["docs__search", "plain"],
    };
    let mut body = ask(dialect, stream, "How warm is it in Zürich?", &tools);
    if dialect == Dialect::OpenAiChat && stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    let first = read(
        dialect,
        stream,
        &post(server.address(), dialect, stream, &body).await,
    );
    let row = format!("{dialect} {stream}");
    assert_eq!(first.text, "I'll look it up: 你好 🎉.", "{row}");
    assert_eq!(first.thinking, "Ich überlege – kurz.", "{row}");
    let [one, two] = first.calls.as_slice() else {
        panic!("{row}: {first:?}");
    };
    assert_eq!(
        (one.id.as_str(), one.name.as_str()),
        ("one", tools[0]),
        "{row}"
    );
    let arguments: Value = serde_json::from_str(&one.arguments).unwrap();
    assert_eq!(
        arguments,
        json!({"path": "naïve – 🎉.md", "depth": 2}),
        "{row}"
    );
    assert_eq!(
        (two.name.as_str(), two.arguments.as_str()),
        ("plain", "{}"),
        "{row}"
    );
    let expect = match dialect {
        Dialect::OpenAiChat => "tool_calls",
        Dialect::OpenAiResponses => "completed",
        Dialect::Anthropic => "tool_use",
        Dialect::Gemini => "STOP",
    };
    assert_eq!(first.stop, expect, "{row}");
    let read_anew = if dialect == Dialect::Anthropic {
        15
    } else {
        20
    };
    assert_eq!(
        (first.input_tokens, first.output_tokens),
        (read_anew, 9),
        "{row}"
    );

    go_on(dialect, &mut body, &first, &["It is 15 degrees.", "ok"]);
    let last = read(
        dialect,
        stream,
        &post(server.address(), dialect, stream, &body).await,
    );
    assert_eq!(last.text, "It is 15 degrees.", "{row}");
    assert!(last.calls.is_empty(), "{row}");
}

#[tokio::test]
async fn a_turn_with_calls_is_held_in_every_dialect_streamed_and_not() {
    let cuts = [Cut::Random, Cut::Bytes, Cut::Events, Cut::Whole];
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

/// What a client of each dialect gets of the patch of the fifth turn.
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
        let response = match stream {
            true => answer.events().last().unwrap()["response"].clone(),
            false => answer.json(),
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
