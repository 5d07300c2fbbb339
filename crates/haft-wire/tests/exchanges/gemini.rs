//! Recorded exchanges with Gemini and Vertex AI: every reply is read, and haft writes the recorded requests.

use haft_wire::declared::Function;
use haft_wire::{
    ContentPart, Dialect, Message, Reply, ReplyLimits, Request, StopReason, ToolChoice,
    ToolDeclaration, ToolOutput, TurnItem, WireError,
};
use serde_json::{Map, Value, json};

use crate::recorded::{
    Exchange, declare, events, exchanges, further, raw, reads_alike_however_cut,
};

const DIALECT: Dialect = Dialect::Gemini;

/// Asserts that a reply contains what the record contains, which is parsed here with `serde_json` only.
fn holds(reply: &Reply, parts: &[Value], name: &str) {
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| part.get("functionCall"))
        .enumerate()
        .map(|(at, call)| {
            let made = json!(format!("call-{at}"));
            json!([call.get("id").unwrap_or(&made), call["name"], call["args"]])
        })
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
    for is_thought in [false, true] {
        let spoken = parts
            .iter()
            .filter(|part| (part["thought"] == true) == is_thought);
        let texts: String = spoken.filter_map(|part| part["text"].as_str()).collect();
        let read: String = reply
            .turn
            .items
            .iter()
            .filter_map(|item| match item {
                TurnItem::Text(text) if !is_thought => Some(text.as_str()),
                TurnItem::Thinking(text) if is_thought => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(read, texts, "{name}");
    }
    let other = parts
        .iter()
        .filter(|part| part.get("text").is_none() && part.get("functionCall").is_none());
    let read = reply.turn.items.iter().filter_map(|item| match item {
        TurnItem::Hosted { raw, .. } | TurnItem::Unknown { raw, .. } => {
            Some(serde_json::from_str::<Value>(raw.get()).unwrap())
        }
        _ => None,
    });
    assert!(read.eq(other.cloned()), "{name}");
    let kept: Value = serde_json::from_str(reply.turn.raw.get()).unwrap();
    let signatures = |parts: &[Value]| -> Vec<Value> {
        parts
            .iter()
            .filter_map(|part| part.get("thoughtSignature").cloned())
            .collect()
    };
    assert_eq!(
        signatures(kept["parts"].as_array().unwrap()),
        signatures(parts),
        "{name}"
    );
}

fn parts(chunk: &Value) -> Vec<Value> {
    chunk["candidates"][0]["content"]["parts"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

#[test]
fn every_recorded_reply_is_read_with_the_calls_and_parts_of_the_record() {
    let Some(all) = exchanges("gemini-generate") else {
        return;
    };
    let (mut whole, mut streams, mut errors) = (0, 0, 0);
    for one in &all {
        let (reply, parts, last) = if let Some(stream) = &one.stream {
            streams += 1;
            let chunks = events(stream);
            let parts: Vec<Value> = chunks.iter().flat_map(parts).collect();
            (
                reads_alike_however_cut(DIALECT, stream),
                parts,
                chunks.last().unwrap().clone(),
            )
        } else {
            let read = DIALECT.read(one.body.to_string().as_bytes(), ReplyLimits::default());
            if one.status != 200 {
                errors += 1;
                let kind = one.body["error"]["status"].as_str().unwrap();
                assert!(
                    matches!(&read, Err(WireError::Provider { kind: read, .. }) if read == kind),
                    "{read:?}"
                );
                continue;
            }
            whole += 1;
            let reply = read.unwrap();
            assert_eq!(
                serde_json::from_str::<Value>(reply.turn.raw.get()).unwrap(),
                one.body["candidates"][0]["content"]
            );
            (reply, parts(&one.body), one.body.clone())
        };
        holds(&reply, &parts, &one.name);
        let expect = match last["candidates"][0]["finishReason"].as_str().unwrap() {
            "STOP" if reply.turn.calls().next().is_some() => StopReason::Calls,
            "STOP" => StopReason::End,
            other => StopReason::Other(other.to_owned()),
        };
        assert_eq!(reply.stop, expect, "{}", one.name);
        assert_eq!(
            reply.usage.input,
            last["usageMetadata"]["promptTokenCount"].as_u64().unwrap()
                + last["usageMetadata"]["toolUsePromptTokenCount"]
                    .as_u64()
                    .unwrap_or_default(),
            "{}",
            one.name
        );
        assert_eq!(
            reply.model.as_deref(),
            last["modelVersion"].as_str(),
            "{}",
            one.name
        );
    }
    assert!(
        whole >= 51 && streams >= 7 && errors >= 2,
        "{whole} {streams} {errors}"
    );
}

/// Converts names to camel case; the provider accepts both spellings. Schemas and arguments belong to the host.
fn camel(value: &Value) -> Value {
    let spelt = |name: &str| {
        let mut out = String::new();
        let mut up = false;
        for c in name.chars() {
            match c {
                '_' => up = true,
                c if up => {
                    out.extend(c.to_uppercase());
                    up = false;
                }
                c => out.push(c),
            }
        }
        out
    };
    match value {
        Value::Array(list) => list.iter().map(camel).collect(),
        Value::Object(members) => {
            let one = |(name, value): (&String, &Value)| {
                let is_open = [
                    "args",
                    "response",
                    "parameters",
                    "parametersJsonSchema",
                    "parameters_json_schema",
                    "generationConfig",
                ]
                .contains(&name.as_str());
                (
                    spelt(name),
                    if is_open { value.clone() } else { camel(value) },
                )
            };
            Value::Object(members.iter().map(one).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Returns the text of a recorded result, and whether it is an error: the recording library uses other names.
fn result(response: &Value) -> (String, bool) {
    if let Some(text) = response.get("error").and_then(Value::as_str) {
        return (text.to_owned(), true);
    }
    let value = response.get("return_value").unwrap_or(response);
    (
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
        false,
    )
}

/// A single tool is the same as a list with it; functions come first, in one tool; schemas are JSON Schemas.
fn in_order(tools: Value) -> Value {
    let tools: Vec<Value> = if tools.is_array() {
        tools.as_array().unwrap().clone()
    } else {
        vec![tools]
    };
    let (mut functions, mut other) = (Vec::new(), Vec::new());
    for tool in tools {
        match tool.get("functionDeclarations") {
            Some(list) => functions.extend(list.as_array().unwrap().clone()),
            None => other.push(tool),
        }
    }
    for function in &mut functions {
        let function = function.as_object_mut().unwrap();
        if let Some(schema) = function.remove("parameters") {
            function.insert("parametersJsonSchema".to_owned(), schema);
        }
    }
    if !functions.is_empty() {
        other.insert(0, json!({"functionDeclarations": functions}));
    }
    json!(other)
}

/// Removes members that a host cannot express in the neutral format, or that haft writes differently. Each with its reason.
fn without_what_differs(body: &Value) -> Value {
    let mut body = camel(body);
    let members = body.as_object_mut().unwrap();
    // The provider ignores the role of the instructions.
    if let Some(system) = members.get_mut("systemInstruction") {
        system.as_object_mut().unwrap().remove("role");
    }
    let tools = members.remove("tools").unwrap();
    members.insert("tools".to_owned(), in_order(tools));
    // An empty list of names means none.
    let config = members.get_mut("toolConfig");
    let calling = config.and_then(|config| config.get_mut("functionCallingConfig"));
    if let Some(calling) = calling
        && calling["allowedFunctionNames"] == json!([])
    {
        calling
            .as_object_mut()
            .unwrap()
            .remove("allowedFunctionNames");
    }
    let contents = members["contents"].as_array_mut().unwrap();
    for content in contents.iter_mut() {
        let parts = content["parts"].as_array_mut().unwrap();
        // Files by address are the host's own.
        parts.retain(|part| part.get("fileData").is_none());
        for part in parts {
            if let Some(answer) = part.get_mut("functionResponse") {
                if let Some(files) = answer.get_mut("parts").and_then(Value::as_array_mut) {
                    files.retain(|file| file.get("fileData").is_none());
                    if files.is_empty() {
                        answer.as_object_mut().unwrap().remove("parts");
                    }
                }
                let (text, is_error) = result(&answer["response"]);
                answer["response"] = if is_error {
                    json!({"error": text})
                } else {
                    json!({"output": text})
                };
            }
        }
    }
    contents.retain(|content| content["parts"] != json!([]));
    body
}

fn file(part: &Value) -> ContentPart {
    if let Some(text) = part["text"].as_str() {
        return ContentPart::Text(text.to_owned());
    }
    let media_type = part["inlineData"]["mimeType"].as_str().unwrap().to_owned();
    let data = part["inlineData"]["data"].as_str().unwrap().to_owned();
    if media_type.starts_with("audio/") {
        return ContentPart::Audio { media_type, data };
    }
    ContentPart::Image { media_type, data }
}

/// Returns the history of a recorded request, as a host has it.
fn history(contents: &[Value]) -> Vec<Message> {
    let mut history = Vec::new();
    let mut calls = Vec::new();
    for content in contents {
        let parts = content["parts"].as_array().unwrap();
        if content["role"] == "model" {
            let body = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
            let reply = DIALECT
                .read(body.to_string().as_bytes(), ReplyLimits::default())
                .unwrap();
            calls.extend(reply.turn.calls().cloned());
            history.push(Message::Model(reply.turn));
            continue;
        }
        let answers: Vec<ToolOutput> = parts
            .iter()
            .filter_map(|part| part.get("functionResponse"))
            .map(|answer| {
                let mine = |call: &haft_wire::Call| answer.get("id").is_none_or(|id| call.id == *id) && call.name == answer["name"];
                let at = calls.iter().position(mine).unwrap();
                let (text, is_error) = result(&json!({if answer["response"].get("error").is_some() { "error" } else { "return_value" }: answer["response"].as_object().unwrap().values().next().unwrap()}));
                let mut parts = vec![ContentPart::Text(text)];
                parts.extend(answer["parts"].as_array().into_iter().flatten().map(file));
                ToolOutput {
                    parts,
                    is_error,
                    ..ToolOutput::text(calls.remove(at), "")
                }
            })
            .collect();
        if answers.is_empty() {
            history.push(Message::User(parts.iter().map(file).collect()));
        } else {
            history.push(Message::Results(answers));
        }
    }
    history
}

fn choice(config: &Value) -> ToolChoice {
    let names = config["allowedFunctionNames"]
        .as_array()
        .into_iter()
        .flatten();
    let names: Vec<String> = names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    match config["mode"].as_str() {
        None | Some("VALIDATED") => ToolChoice::Auto,
        Some("ANY") if names.is_empty() => ToolChoice::Required,
        Some("ANY") => ToolChoice::Allowed {
            names,
            required: true,
        },
        Some(other) => panic!("{other}"),
    }
}

fn written(one: &Exchange, expect: &Value) -> Value {
    let mut config = expect["toolConfig"].clone();
    let calling = config
        .as_object_mut()
        .and_then(|config| config.remove("functionCallingConfig"))
        .unwrap_or_default();
    let mut tools = Vec::new();
    for tool in expect["tools"].as_array().unwrap() {
        let Some(functions) = tool.get("functionDeclarations") else {
            tools.push(ToolDeclaration::Provider {
                dialect: DIALECT,
                spec: raw(tool),
            });
            continue;
        };
        tools.extend(functions.as_array().unwrap().iter().map(|function| {
            ToolDeclaration::Function(Function {
                name: function["name"].as_str().unwrap().to_owned(),
                description: function["description"].as_str().unwrap().to_owned(),
                parameters: raw(&function["parametersJsonSchema"]).into(),
                strict: calling["mode"] == "VALIDATED",
                deferred: false,
            })
        }));
    }
    let tools = declare(DIALECT, &tools);
    let mut extra = further(
        expect,
        &["contents", "systemInstruction", "tools", "toolConfig"],
    );
    if config.as_object().is_some_and(|config| !config.is_empty()) {
        extra.push(("toolConfig".to_owned(), raw(&config)));
    }
    let (_, model) = one.path.rsplit_once('/').unwrap();
    let (model, _) = model.split_once(':').unwrap();
    // Vertex AI has a longer path.
    if one.path.starts_with("/v1beta/") {
        assert_eq!(one.path, DIALECT.path(model, one.stream.is_some()));
    }
    let messages = history(expect["contents"].as_array().unwrap());
    let request = Request {
        model,
        system: expect["systemInstruction"]["parts"][0]["text"]
            .as_str()
            .unwrap_or_default(),
        messages: &messages,
        tools: &tools,
        choice: &choice(&calling),
        parallel: true,
        max_tokens: None,
        stream: one.stream.is_some(),
        extra: &extra,
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
    let Some(all) = exchanges("gemini-generate") else {
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
    assert!(all.len() >= 60);
}

#[test]
fn a_recorded_stream_that_ends_early_is_no_reply() {
    let Some(all) = exchanges("gemini-generate") else {
        return;
    };
    for stream in all.iter().filter_map(|one| one.stream.as_ref()) {
        let last = stream.trim_end().rfind("data:").unwrap();
        for end in [0, 1, last / 2, last, stream.trim_end().len()] {
            let mut reader = DIALECT.reader(ReplyLimits::default());
            reader
                .push(&stream.as_bytes()[..end], &mut Vec::new())
                .unwrap();
            assert!(!reader.is_whole());
            assert!(matches!(reader.finish(), Err(WireError::Cut(bytes)) if bytes == end));
        }
    }
}
