//! Recorded exchanges with Anthropic: every reply is read, and haft writes the recorded requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_wire::declared::{Function, SearchRunner};
use haft_wire::{
    ContentPart, Dialect, Message, Reply, ReplyLimits, Request, StopReason, ToolChoice,
    ToolDeclaration, ToolOutput, TurnItem, WireError,
};
use serde_json::{Value, json};

use crate::recorded::{
    Exchange, declare, events, exchanges, further, raw, reads_alike_however_cut,
};

const DIALECT: Dialect = Dialect::Anthropic;

/// Returns the content of a stream, assembled without haft.
fn content(stream: &str) -> (Vec<Value>, Value) {
    let (mut blocks, mut inputs, mut stop): (Vec<Value>, Vec<String>, Value) = Default::default();
    for event in events(stream) {
        let at = event["index"]
            .as_u64()
            .map_or(0, |at| usize::try_from(at).unwrap());
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => match delta["type"].as_str().unwrap() {
                "input_json_delta" => inputs[at].push_str(delta["partial_json"].as_str().unwrap()),
                "citations_delta" => match &mut blocks[at]["citations"] {
                    Value::Array(list) => list.push(delta["citation"].clone()),
                    none => *none = json!([delta["citation"]]),
                },
                kind => {
                    let member = kind.strip_suffix("_delta").unwrap();
                    let text = format!(
                        "{}{}",
                        blocks[at][member].as_str().unwrap(),
                        delta[member].as_str().unwrap()
                    );
                    blocks[at][member] = json!(text);
                }
            },
            "content_block_stop" if !inputs[at].is_empty() => {
                blocks[at]["input"] = serde_json::from_str(&inputs[at]).unwrap();
            }
            "message_delta" => stop = delta["stop_reason"].clone(),
            _ => {}
        }
    }
    (blocks, stop)
}

/// Asserts that a reply contains what the record contains, which is parsed here with `serde_json` only.
fn holds(reply: &Reply, blocks: &[Value], stop: &Value, name: &str) {
    let is = |block: &&Value, kind: &str| block["type"] == kind;
    let calls: Vec<Value> = blocks
        .iter()
        .filter(|block| is(block, "tool_use"))
        .map(|block| json!([block["id"], block["name"], block["input"]]))
        .collect();
    let read: Vec<Value> = reply
        .turn
        .calls()
        .map(|call| {
            json!([
                call.id,
                call.name,
                serde_json::from_str::<Value>(&call.arguments).unwrap()
            ])
        })
        .collect();
    assert_eq!(read, calls, "{name}");
    let texts: String = blocks
        .iter()
        .filter(|block| is(block, "text") && !block["text"].as_str().unwrap().trim().is_empty())
        .map(|block| block["text"].as_str().unwrap())
        .collect();
    assert_eq!(reply.turn.text(), texts, "{name}");
    let ours = ["text", "thinking", "tool_use"];
    let hosted = blocks
        .iter()
        .filter(|block| !ours.contains(&block["type"].as_str().unwrap()));
    let read = reply.turn.items.iter().filter_map(|item| match item {
        TurnItem::Hosted { raw, .. } => Some(serde_json::from_str::<Value>(raw.get()).unwrap()),
        TurnItem::Unknown { kind, .. } => panic!("{name}: {kind} is not known"),
        _ => None,
    });
    assert!(read.eq(hosted.cloned()), "{name}");
    let kept: Value = serde_json::from_str(reply.turn.raw.get()).unwrap();
    let blank =
        |block: &&Value| is(block, "text") && block["text"].as_str().unwrap().trim().is_empty();
    let expect: Vec<Value> = blocks
        .iter()
        .filter(|block| !blank(block))
        .cloned()
        .collect();
    assert_eq!(kept, Value::Array(expect), "{name}");
    let expect = match stop.as_str().unwrap() {
        "end_turn" => StopReason::End,
        "tool_use" => StopReason::Calls,
        "pause_turn" => StopReason::Pause,
        other => panic!("{name}: {other}"),
    };
    assert_eq!(reply.stop, expect, "{name}");
}

#[test]
fn every_recorded_reply_is_read_with_the_calls_and_blocks_of_the_record() {
    let Some(all) = exchanges("anthropic-messages") else {
        return;
    };
    let (mut whole, mut streams) = (0, 0);
    for one in &all {
        let (reply, blocks, stop, usage) = if let Some(stream) = &one.stream {
            streams += 1;
            let (blocks, stop) = content(stream);
            let last = events(stream)
                .into_iter()
                .rfind(|event| event["type"] == "message_delta");
            (
                reads_alike_however_cut(DIALECT, stream),
                blocks,
                stop,
                last.unwrap()["usage"].clone(),
            )
        } else {
            whole += 1;
            let reply = DIALECT
                .read(one.body.to_string().as_bytes(), ReplyLimits::default())
                .unwrap();
            let blocks = one.body["content"].as_array().unwrap().clone();
            (
                reply,
                blocks,
                one.body["stop_reason"].clone(),
                one.body["usage"].clone(),
            )
        };
        assert_eq!(one.status, 200);
        assert!(
            one.path.starts_with(&DIALECT.path("", false)),
            "{}",
            one.path
        );
        holds(&reply, &blocks, &stop, &one.name);
        assert_eq!(reply.usage.output, usage["output_tokens"], "{}", one.name);
        let input: u64 = [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ]
        .iter()
        .map(|name| usage[name].as_u64().unwrap())
        .sum();
        assert_eq!(reply.usage.input, input, "{}", one.name);
    }
    assert!(whole >= 59 && streams >= 9, "{whole} {streams}");
}

/// Returns a tool of a recorded request, as a host declares it.
fn declared(tool: &Value) -> ToolDeclaration {
    match tool["type"].as_str() {
        Some("tool_search_tool_bm25_20251119") => {
            ToolDeclaration::ToolSearch(SearchRunner::Provider)
        }
        Some(_) => ToolDeclaration::Provider {
            dialect: DIALECT,
            spec: raw(tool),
        },
        None => ToolDeclaration::Function(Function {
            name: tool["name"].as_str().unwrap().to_owned(),
            description: tool["description"].as_str().unwrap_or_default().to_owned(),
            parameters: raw(&tool["input_schema"]).into(),
            strict: tool["strict"] == true,
            deferred: tool["defer_loading"] == true,
        }),
    }
}

fn part(block: &Value) -> ContentPart {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match block["type"].as_str().unwrap() {
        "text" => ContentPart::Text(text(&block["text"])),
        "document" => ContentPart::File {
            name: String::new(),
            media_type: text(&block["source"]["media_type"]),
            data: STANDARD.encode(block["source"]["data"].as_str().unwrap()),
        },
        other => panic!("{other}"),
    }
}

/// Returns the history of a recorded request, as a host has it.
fn history(messages: &[Value]) -> Vec<Message> {
    let mut history = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        let blocks = message["content"].as_array().unwrap();
        if message["role"] == "assistant" {
            let body = json!({"content": blocks, "stop_reason": "end_turn"});
            let reply = DIALECT
                .read(body.to_string().as_bytes(), ReplyLimits::default())
                .unwrap();
            calls = reply.turn.calls().cloned().collect();
            history.push(Message::Model(reply.turn));
            continue;
        }
        let (mut answers, mut parts) = (Vec::new(), Vec::new());
        for block in blocks {
            if block["type"] != "tool_result" {
                parts.push(part(block));
                continue;
            }
            let call = calls
                .iter()
                .find(|call| call.id == block["tool_use_id"])
                .unwrap();
            let content = block["content"].as_array().unwrap();
            let loads = content.iter().filter_map(|one| one["tool_name"].as_str());
            answers.push(ToolOutput {
                parts: content
                    .iter()
                    .filter(|one| one["type"] != "tool_reference")
                    .map(part)
                    .collect(),
                is_error: block["is_error"] == true,
                loads: loads.map(str::to_owned).collect(),
                ..ToolOutput::text(call.clone(), "")
            });
        }
        if !answers.is_empty() {
            history.push(Message::Results(answers));
        }
        match parts.as_slice() {
            [] => {}
            [ContentPart::Text(note)] if message["role"] == "system" => {
                history.push(Message::Host(note.clone()));
            }
            _ => history.push(Message::User(parts)),
        }
    }
    history
}

/// Removes blocks and members that a host cannot express in the neutral format, or that haft omits because the provider does the
/// same without them. Each with its reason.
fn without_what_differs(body: &Value) -> Value {
    let mut body = body.clone();
    // The defaults are no stream and free choice.
    let members = body.as_object_mut().unwrap();
    if members["stream"] == false {
        members.remove("stream");
    }
    if members.get("tool_choice") == Some(&json!({"type": "auto"})) {
        members.remove("tool_choice");
    }
    // A single text is the same as a list with it.
    if let Some([one]) = members
        .get("system")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        let text = one["text"].clone();
        members.insert("system".to_owned(), text);
    }
    // An empty description has no meaning.
    for tool in members
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if tool["description"] == "" {
            tool.as_object_mut().unwrap().remove("description");
        }
    }
    let mut messages: Vec<Value> = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let mut blocks: Vec<Value> = message["content"].as_array().unwrap().clone();
        // Uploads are named by ids of the host's own account; adding tools in the middle is a separate beta.
        let beyond = |block: &Value| {
            block["source"]["type"] == "file"
                || ["container_upload", "tool_addition"].contains(&block["type"].as_str().unwrap())
        };
        blocks.retain(|block| !beyond(block));
        for block in &mut blocks {
            let block = block.as_object_mut().unwrap();
            // The host requests caching with the member of the whole body.
            block.remove("cache_control");
            // Success of a call is the default.
            if block.get("is_error") == Some(&json!(false)) {
                block.remove("is_error");
            }
            // A text is the same as a list with it.
            if let Some(text) = block.get("content").and_then(Value::as_str) {
                let list = json!([{"type": "text", "text": text}]);
                block.insert("content".to_owned(), list);
            }
        }
        // The provider merges neighbours of one role into one message.
        match messages
            .last_mut()
            .filter(|last| last["role"] == message["role"])
        {
            Some(last) => last["content"].as_array_mut().unwrap().extend(blocks),
            None if blocks.is_empty() => {}
            None => messages.push(json!({"role": message["role"], "content": blocks})),
        }
    }
    body["messages"] = json!(messages);
    body
}

fn choice(body: &Value) -> ToolChoice {
    match body["tool_choice"]["type"].as_str() {
        None | Some("auto") => ToolChoice::Auto,
        Some("none") => ToolChoice::None,
        Some("any") => ToolChoice::Required,
        Some("tool") => ToolChoice::Tool(body["tool_choice"]["name"].as_str().unwrap().to_owned()),
        Some(other) => panic!("{other}"),
    }
}

fn written(one: &Exchange, expect: &Value) -> Value {
    let tools: Vec<ToolDeclaration> = one.request["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(declared)
        .collect();
    let tools = declare(DIALECT, &tools);
    assert!(tools.lost.is_empty(), "{}: {:?}", one.name, tools.lost);
    let messages = history(expect["messages"].as_array().unwrap());
    let own = [
        "model",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "messages",
        "stream",
    ];
    let request = Request {
        model: one.request["model"].as_str().unwrap(),
        system: expect["system"].as_str().unwrap_or_default(),
        messages: &messages,
        tools: &tools,
        choice: &choice(&one.request),
        parallel: true,
        max_tokens: one.request["max_tokens"]
            .as_u64()
            .map(|most| u32::try_from(most).unwrap()),
        stream: one.request["stream"] == true,
        extra: &further(&one.request, &own),
    };
    let body = DIALECT.write(&request).unwrap();
    assert_eq!(
        body,
        DIALECT.write(&request).unwrap(),
        "{}: not the same bytes twice",
        one.name
    );
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn what_was_sent_is_what_haft_writes() {
    let Some(all) = exchanges("anthropic-messages") else {
        return;
    };
    for one in &all {
        let expect = without_what_differs(&one.request);
        let written = written(one, &expect);
        assert_eq!(
            written.as_object().unwrap().len(),
            expect.as_object().unwrap().len(),
            "{}",
            one.name
        );
        for (member, value) in expect.as_object().unwrap() {
            assert_eq!(&written[member], value, "{} {member}", one.name);
        }
    }
    assert!(all.len() >= 68);
}

#[test]
fn a_recorded_stream_that_ends_early_is_no_reply() {
    let Some(all) = exchanges("anthropic-messages") else {
        return;
    };
    for stream in all.iter().filter_map(|one| one.stream.as_ref()) {
        let last = stream.find("event: message_stop").unwrap();
        for end in [0, 1, last / 3, last / 2, last] {
            let mut reader = DIALECT.reader(ReplyLimits::default());
            reader
                .push(&stream.as_bytes()[..end], &mut Vec::new())
                .unwrap();
            assert!(!reader.is_whole());
            assert!(matches!(reader.finish(), Err(WireError::Cut(bytes)) if bytes == end));
        }
    }
}
