//! OpenAI Responses: writes replies, complete and streamed.

use serde_json::{Value, json};

use crate::compose::{ComposedReply, OutCall, ReplyOutput};
use crate::conversation::EchoedRequest;
use crate::random::Random;
use crate::scenario::ScenarioStop;
use crate::stream::StreamEvent;

use super::memory::encrypt;

/// The creation time of every reply, in seconds since 1970: constant, so that replies are reproducible.
const CREATED: u64 = 1_780_000_000;

pub(crate) fn id(reply: &ComposedReply) -> String {
    format!("resp_{:06}", reply.number)
}

/// Returns the output items of a reply.
pub(crate) fn items(reply: &ComposedReply, own: &EchoedRequest) -> Vec<Value> {
    let item = |(at, output): (usize, &ReplyOutput)| {
        let number = reply.number;
        match output {
            ReplyOutput::Text(text) => message(
                &format!("msg_{number:06}_{at}"),
                &json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
            ),
            ReplyOutput::Refusal(text) => message(
                &format!("msg_{number:06}_{at}"),
                &json!({"type": "refusal", "refusal": text}),
            ),
            ReplyOutput::Thinking(text) => {
                let id = format!("rs_{number:06}_{at}");
                let mut item = json!({
                    "type": "reasoning", "id": id,
                    "summary": [{"type": "summary_text", "text": text}],
                });
                if own.encrypted {
                    item["encrypted_content"] = encrypt(text).into();
                }
                item
            }
            ReplyOutput::Call(made) => call(made, &format!("{number:06}_{at}")),
            ReplyOutput::Item(item) => item.clone(),
        }
    };
    reply.outputs.iter().enumerate().map(item).collect()
}

fn message(id: &str, part: &Value) -> Value {
    json!({
        "type": "message", "id": id, "status": "completed", "role": "assistant", "content": [part],
    })
}

fn call(made: &OutCall, tail: &str) -> Value {
    let mut item = if made.is_freeform {
        json!({
            "type": "custom_tool_call", "id": format!("ctc_{tail}"), "call_id": made.id,
            "name": made.name, "input": made.arguments,
        })
    } else {
        json!({
            "type": "function_call", "id": format!("fc_{tail}"), "call_id": made.id,
            "name": made.name, "arguments": made.arguments, "status": "completed",
        })
    };
    if let Some(namespace) = &made.namespace {
        item["namespace"] = namespace.as_str().into();
    }
    item
}

/// Writes a complete reply with these items and this status.
fn response(reply: &ComposedReply, own: &EchoedRequest, output: &[Value], status: &str) -> Value {
    let body = &own.body;
    let or = |name: &str, default: Value| match body.get(name) {
        Some(value) if !value.is_null() => value.clone(),
        _ => default,
    };
    let ended = status != "in_progress";
    let incomplete = match reply.stop {
        ScenarioStop::Length if ended => json!({"reason": "max_output_tokens"}),
        ScenarioStop::Filter if ended => json!({"reason": "content_filter"}),
        _ => Value::Null,
    };
    let usage = reply.usage;
    let usage = if ended {
        json!({
            "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.thinking},
            "total_tokens": usage.input + usage.output,
        })
    } else {
        Value::Null
    };
    json!({
        "id": id(reply), "object": "response", "created_at": CREATED, "status": status,
        "background": false, "error": null, "incomplete_details": incomplete,
        "instructions": or("instructions", Value::Null), "max_output_tokens": or("max_output_tokens", Value::Null),
        "model": reply.model, "output": output,
        "parallel_tool_calls": or("parallel_tool_calls", true.into()),
        "previous_response_id": or("previous_response_id", Value::Null),
        "reasoning": or("reasoning", json!({"effort": null, "summary": null})),
        "store": own.store, "temperature": or("temperature", json!(1.0)),
        "text": or("text", json!({"format": {"type": "text"}})),
        "tool_choice": or("tool_choice", "auto".into()), "tools": or("tools", json!([])),
        "top_p": or("top_p", json!(1.0)), "truncation": or("truncation", "disabled".into()),
        "usage": usage, "user": null, "metadata": or("metadata", json!({})),
    })
}

fn status(reply: &ComposedReply) -> &'static str {
    match reply.stop {
        ScenarioStop::Length | ScenarioStop::Filter => "incomplete",
        _ => "completed",
    }
}

/// Writes a complete reply.
pub(crate) fn whole(reply: &ComposedReply, own: &EchoedRequest) -> Value {
    response(reply, own, &items(reply, own), status(reply))
}

/// Writes a reply as events.
pub(crate) fn events(
    reply: &ComposedReply,
    own: &EchoedRequest,
    random: &mut Random,
) -> Vec<StreamEvent> {
    let mut writer = EventWriter {
        random,
        events: Vec::new(),
    };
    let begun = response(reply, own, &[], "in_progress");
    writer.event("response.created", json!({"response": begun}));
    writer.event("response.in_progress", json!({"response": begun}));
    let items = items(reply, own);
    for (at, item) in items.iter().enumerate() {
        writer.item(at, item);
    }
    let ended = response(reply, own, &items, status(reply));
    let name = format!("response.{}", status(reply));
    writer.event(&name, json!({"response": ended}));
    if let Some(last) = writer.events.last_mut() {
        last.is_closing = true;
    }
    writer.events
}

struct EventWriter<'r> {
    random: &'r mut Random,
    events: Vec<StreamEvent>,
}

impl EventWriter<'_> {
    fn event(&mut self, name: &str, mut value: Value) {
        value["type"] = name.into();
        value["sequence_number"] = self.events.len().into();
        self.events.push(StreamEvent::named(name, &value));
    }

    /// Writes a text in pieces: `NAME.delta` for each, then `NAME.done` with the complete text in the member `whole`.
    fn deltas(&mut self, name: &str, at: &Value, whole: &str, text: &str) {
        for piece in self.random.deltas(text) {
            let mut delta = at.clone();
            delta["delta"] = piece.into();
            delta["obfuscation"] = self.random.padding().into();
            self.event(&format!("{name}.delta"), delta);
        }
        let mut done = at.clone();
        done[whole] = text.into();
        self.event(&format!("{name}.done"), done);
    }

    fn item(&mut self, at: usize, item: &Value) {
        let kind = item["type"].as_str().unwrap_or_default();
        let place = json!({"item_id": item["id"], "output_index": at});
        let mut begun = item.clone();
        match kind {
            "message" => begun["content"] = json!([]),
            "reasoning" => begun["summary"] = json!([]),
            "function_call" => begun["arguments"] = "".into(),
            "custom_tool_call" => begun["input"] = "".into(),
            _ => {}
        }
        if begun.get("status").is_some() {
            begun["status"] = "in_progress".into();
        }
        self.event(
            "response.output_item.added",
            json!({"output_index": at, "item": begun}),
        );
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match kind {
            "message" => self.message(&place, &item["content"][0]),
            "reasoning" => self.reasoning(&place, &item["summary"][0]),
            "function_call" => {
                let mut place = place;
                place["name"] = item["name"].clone();
                self.deltas(
                    "response.function_call_arguments",
                    &place,
                    "arguments",
                    &text("arguments"),
                );
            }
            "custom_tool_call" => {
                self.deltas(
                    "response.custom_tool_call_input",
                    &place,
                    "input",
                    &text("input"),
                );
            }
            "shell_call" => self.commands(at, &item["action"]["commands"]),
            _ => {}
        }
        self.event(
            "response.output_item.done",
            json!({"output_index": at, "item": item}),
        );
    }

    fn message(&mut self, place: &Value, part: &Value) {
        let mut place = place.clone();
        place["content_index"] = 0.into();
        let (name, key) = match part["type"].as_str() {
            Some("refusal") => ("response.refusal", "refusal"),
            _ => ("response.output_text", "text"),
        };
        let with = |part: &Value| {
            let mut place = place.clone();
            place["part"] = part.clone();
            place
        };
        let mut empty = part.clone();
        empty[key] = "".into();
        self.event("response.content_part.added", with(&empty));
        let text = part[key].as_str().unwrap_or_default();
        let mut deltas = place.clone();
        if key == "text" {
            deltas["logprobs"] = json!([]);
        }
        self.deltas(name, &deltas, key, text);
        self.event("response.content_part.done", with(part));
    }

    fn reasoning(&mut self, place: &Value, part: &Value) {
        let mut place = place.clone();
        place["summary_index"] = 0.into();
        let with = |part: Value| {
            let mut place = place.clone();
            place["part"] = part;
            place
        };
        let empty = json!({"type": "summary_text", "text": ""});
        self.event("response.reasoning_summary_part.added", with(empty));
        let text = part["text"].as_str().unwrap_or_default();
        self.deltas("response.reasoning_summary_text", &place, "text", text);
        self.event("response.reasoning_summary_part.done", with(part.clone()));
    }

    fn commands(&mut self, at: usize, commands: &Value) {
        let commands = commands.as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, command) in commands.iter().enumerate() {
            let place = json!({"output_index": at, "command_index": index});
            let mut added = place.clone();
            added["command"] = "".into();
            self.event("response.shell_call_command.added", added);
            let text = command.as_str().unwrap_or_default();
            self.deltas("response.shell_call_command", &place, "command", text);
        }
    }
}
