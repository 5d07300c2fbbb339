//! Recorded requests: with the same tools and the same history, haft writes the recorded body member by member, except for the
//! differences in a table with reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haft_wire::declared::{Function, SearchRunner};
use haft_wire::{
    Call, CallKind, ContentPart, Dialect, Message, Request, ToolChoice, ToolDeclaration,
    ToolOutput, Turn, TurnItem,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::alike::{DIFFERS, Seen, alike};
use crate::declared::{declare, raw};
use crate::recorded::{Recorded, recordings};
use crate::written::{call, request};

pub(crate) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a tool as a host would declare it; one with members that haft cannot express counts as the provider's.
fn declared(dialect: Dialect, tool: &Value) -> ToolDeclaration {
    let function = if dialect == Dialect::OpenAiChat {
        &tool["function"]
    } else {
        tool
    };
    let known = [
        "name",
        "description",
        "parameters",
        "strict",
        "type",
        "defer_loading",
        "function",
    ];
    let is_known = |value: &Value| {
        value
            .as_object()
            .is_some_and(|members| members.keys().all(|name| known.contains(&name.as_str())))
    };
    let is_function = matches!(tool["type"].as_str(), None | Some("function"))
        && is_known(tool)
        && is_known(function);
    if !is_function && *tool == json!({"type": "tool_search"}) {
        return ToolDeclaration::ToolSearch(SearchRunner::Provider);
    }
    if !is_function {
        return ToolDeclaration::Provider {
            dialect,
            spec: raw(tool),
        };
    }
    ToolDeclaration::Function(Function {
        name: text(function, "name").to_owned(),
        description: text(function, "description").to_owned(),
        parameters: Arc::from(raw(&function["parameters"])),
        strict: function["strict"] == json!(true),
        deferred: function["defer_loading"] == json!(true),
    })
}

fn choice(value: &Value) -> ToolChoice {
    match value {
        Value::String(word) => match word.as_str() {
            "none" => ToolChoice::None,
            "required" | "any" => ToolChoice::Required,
            _ => ToolChoice::Auto,
        },
        Value::Object(one) if one["type"] == "allowed_tools" => ToolChoice::Allowed {
            names: list(&one["tools"])
                .iter()
                .map(|tool| text(tool, "name").to_owned())
                .collect(),
            required: one["mode"] == "required",
        },
        Value::Object(_) => {
            let name = value["name"]
                .as_str()
                .or(value["function"]["name"].as_str());
            ToolChoice::Tool(name.unwrap().to_owned())
        }
        _ => ToolChoice::Auto,
    }
}

/// Converts a part of a user's content.
fn part(part: &Value) -> ContentPart {
    let of_url = |url: &str| {
        let (media_type, data) = url
            .strip_prefix("data:")
            .unwrap()
            .split_once(";base64,")
            .unwrap();
        (media_type.to_owned(), data.to_owned())
    };
    match text(part, "type") {
        "text" => ContentPart::Text(text(part, "text").to_owned()),
        "image_url" => {
            let (media_type, data) = of_url(text(&part["image_url"], "url"));
            ContentPart::Image { media_type, data }
        }
        "input_audio" => ContentPart::Audio {
            media_type: match text(&part["input_audio"], "format") {
                "mp3" => "audio/mpeg",
                _ => "audio/wav",
            }
            .to_owned(),
            data: text(&part["input_audio"], "data").to_owned(),
        },
        kind => panic!("a part of the type {kind}"),
    }
}

/// The turns of earlier replies, by the ids in them, to be sent back.
struct Turns(BTreeMap<String, Turn>);

impl Turns {
    fn learn(&mut self, turn: &Turn) {
        for call in turn.calls() {
            self.0.insert(call.id.clone(), turn.clone());
        }
        if turn.dialect == Dialect::OpenAiResponses {
            let items: Value = serde_json::from_str(turn.raw.get()).unwrap();
            for item in list(&items) {
                self.0.insert(text(item, "id").to_owned(), turn.clone());
            }
        }
    }
}

/// The content of a body, in the neutral format.
struct History {
    system: String,
    messages: Vec<Message>,
}

fn chat(body: &Value, turns: &Turns) -> History {
    let mut history = History {
        system: String::new(),
        messages: Vec::new(),
    };
    for (at, message) in list(&body["messages"]).iter().enumerate() {
        match text(message, "role") {
            "system" if at == 0 => text(message, "content").clone_into(&mut history.system),
            "system" => history
                .messages
                .push(Message::Host(text(message, "content").to_owned())),
            "user" => history.messages.push(match &message["content"] {
                Value::Array(parts) => Message::User(parts.iter().map(part).collect()),
                content => Message::user(content.as_str().unwrap()),
            }),
            "assistant" => {
                let known = turns.0.get(text(&message["tool_calls"][0], "id"));
                let of_body = || Turn {
                    dialect: Dialect::OpenAiChat,
                    items: Vec::new(),
                    raw: raw(message),
                };
                history
                    .messages
                    .push(Message::Model(known.cloned().unwrap_or_else(of_body)));
            }
            "tool" => {
                let answer = ToolOutput::text(
                    call(CallKind::Function, text(message, "tool_call_id"), "f"),
                    text(message, "content"),
                );
                push_answer(&mut history.messages, answer);
            }
            role => panic!("a message of {role}"),
        }
    }
    history
}

fn push_answer(messages: &mut Vec<Message>, answer: ToolOutput) {
    match messages.last_mut() {
        Some(Message::Results(answers)) => answers.push(answer),
        _ => messages.push(Message::Results(vec![answer])),
    }
}

fn responses(body: &Value, turns: &Turns) -> History {
    let mut history = History {
        system: text(body, "instructions").to_owned(),
        messages: Vec::new(),
    };
    if let Some(input) = body["input"].as_str() {
        history.messages.push(Message::user(input));
    }
    let mut last = String::new();
    for item in list(&body["input"]) {
        let id = text(item, "id");
        match (text(item, "type"), text(item, "role")) {
            ("", "user") => history.messages.push(Message::user(text(item, "content"))),
            ("", "system") => history
                .messages
                .push(Message::Host(text(item, "content").to_owned())),
            ("", "assistant") => history
                .messages
                .push(other(TurnItem::Text(text(item, "content").to_owned()))),
            ("function_call_output" | "tool_search_output", _) => {
                push_answer(&mut history.messages, answered(item));
            }
            ("additional_tools", _) => {}
            ("function_call", _)
                if id.is_empty() && !turns.0.contains_key(text(item, "call_id")) =>
            {
                history.messages.push(other(TurnItem::Call(Call {
                    arguments: text(item, "arguments").to_owned(),
                    namespace: item["namespace"].as_str().map(str::to_owned),
                    ..call(
                        CallKind::Function,
                        text(item, "call_id"),
                        text(item, "name"),
                    )
                })));
            }
            // The items of one reply are sent back together.
            _ => match turns
                .0
                .get(id)
                .or_else(|| turns.0.get(text(item, "call_id")))
            {
                Some(turn) if turn.raw.get() == last => {}
                Some(turn) => {
                    turn.raw.get().clone_into(&mut last);
                    history.messages.push(Message::Model(turn.clone()));
                }
                None => history.messages.push(Message::Model(Turn {
                    dialect: Dialect::OpenAiResponses,
                    items: Vec::new(),
                    raw: raw(&json!([item])),
                })),
            },
        }
    }
    history
}

/// Returns a turn of another dialect.
fn other(item: TurnItem) -> Message {
    Message::Model(Turn {
        dialect: Dialect::Anthropic,
        items: vec![item],
        raw: raw(&json!([])),
    })
}

fn answered(item: &Value) -> ToolOutput {
    let id = text(item, "call_id");
    if item["type"] == "tool_search_output" {
        let mut answer = ToolOutput::text(call(CallKind::ToolSearch, id, "tool_search"), "");
        answer.loads = list(&item["tools"])
            .iter()
            .map(|tool| text(tool, "name").to_owned())
            .collect();
        return answer;
    }
    let mut answer = ToolOutput::text(call(CallKind::Function, id, "f"), text(item, "output"));
    if item["output"].is_array() {
        answer.item = Some(raw(item));
    }
    answer
}

/// Returns the recorded body as JSON, and the one that haft writes.
fn both(dialect: Dialect, body: &Value, turns: &Turns, seen: &mut Seen) -> (Value, Value) {
    let history = if dialect == Dialect::OpenAiChat {
        chat(body, turns)
    } else {
        responses(body, turns)
    };
    let tools: Vec<ToolDeclaration> = list(&body["tools"])
        .iter()
        .map(|tool| declared(dialect, tool))
        .collect();
    let tools = declare(dialect, &tools);
    let own = [
        "messages",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "model",
        "stream",
        "stream_options",
    ];
    let extra: Vec<(String, Box<RawValue>)> = body
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| !own.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), raw(value)))
        .collect();
    let bytes = dialect.write(&Request {
        model: text(body, "model"),
        system: &history.system,
        choice: &choice(&body["tool_choice"]),
        stream: body["stream"] == json!(true),
        extra: &extra,
        ..request(&history.messages, &tools)
    });
    let mut ours: Value = serde_json::from_slice(&bytes.unwrap()).unwrap();
    let mut theirs = body.clone();
    alike(&mut theirs, &mut ours, seen);
    (theirs, ours)
}

fn differences(dialect: Dialect, recorded: &Recorded, seen: &mut Seen) -> Vec<String> {
    let mut turns = Turns(BTreeMap::new());
    let mut faults = Vec::new();
    for (at, exchange) in recorded.exchanges.iter().enumerate() {
        let body = &exchange.request.body;
        if body.is_object() {
            let (theirs, ours) = both(dialect, body, &turns, seen);
            let names: BTreeSet<&String> = theirs
                .as_object()
                .unwrap()
                .keys()
                .chain(ours.as_object().unwrap().keys())
                .collect();
            for name in names {
                if theirs.get(name) != ours.get(name) {
                    faults.push(format!(
                        "{} {at} {name}:\n  recorded {}\n  haft     {}",
                        recorded.file, theirs[name], ours[name]
                    ));
                }
            }
        }
        if let Ok(reply) = exchange.reply(dialect) {
            turns.learn(&reply.turn);
        }
    }
    faults
}

#[test]
fn recorded_requests_are_said_alike() {
    let mut seen = Seen::new();
    let mut faults = Vec::new();
    for dialect in [Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        for recorded in recordings(dialect) {
            faults.extend(differences(dialect, &recorded, &mut seen));
        }
    }
    assert!(
        faults.is_empty(),
        "{} members differ:\n{}",
        faults.len(),
        faults.join("\n")
    );
    if std::env::var_os("HAFT_DATA").is_some() {
        let rows: Seen = DIFFERS.iter().map(|(row, _)| *row).collect();
        assert_eq!(seen, rows, "rows that were of use, and those of the table");
    }
}
