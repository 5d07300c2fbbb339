//! OpenAI Chat Completions: writes replies, complete and streamed.

use serde_json::{Map, Value, json};

use crate::compose::{ComposedReply, OutCall, ReplyOutput};
use crate::random::Random;
use crate::scenario::ScenarioStop;
use crate::stream::StreamEvent;

/// The creation time of every reply, in seconds since 1970: constant, so that replies are reproducible.
const CREATED: u64 = 1_780_000_000;

fn finish(stop: ScenarioStop) -> &'static str {
    match stop {
        ScenarioStop::End | ScenarioStop::Pause => "stop",
        ScenarioStop::Calls => "tool_calls",
        ScenarioStop::Length => "length",
        ScenarioStop::Filter => "content_filter",
    }
}

fn usage(reply: &ComposedReply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.thinking, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

fn call(call: &OutCall) -> Value {
    let (id, name, arguments) = (&call.id, &call.name, &call.arguments);
    if call.is_freeform {
        json!({"id": id, "type": "custom", "custom": {"name": name, "input": arguments}})
    } else {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }
}

/// Returns the texts that `pick` selects, joined; null if there are none.
fn join(reply: &ComposedReply, pick: fn(&ReplyOutput) -> Option<&str>) -> Value {
    let texts: Vec<&str> = reply.outputs.iter().filter_map(pick).collect();
    if texts.is_empty() {
        Value::Null
    } else {
        texts.concat().into()
    }
}

fn content(output: &ReplyOutput) -> Option<&str> {
    match output {
        ReplyOutput::Text(text) => Some(text),
        _ => None,
    }
}

fn thoughts(output: &ReplyOutput) -> Option<&str> {
    match output {
        ReplyOutput::Thinking(text) => Some(text),
        _ => None,
    }
}

fn refusal(output: &ReplyOutput) -> Option<&str> {
    match output {
        ReplyOutput::Refusal(text) => Some(text),
        _ => None,
    }
}

/// Writes a complete reply.
pub(crate) fn whole(reply: &ComposedReply) -> Value {
    let mut message = json!({
        "role": "assistant", "content": join(reply, content),
        "refusal": join(reply, refusal), "annotations": [],
    });
    let thoughts = join(reply, thoughts);
    if !thoughts.is_null() {
        message["reasoning_content"] = thoughts;
    }
    let mut calls = Vec::new();
    for output in &reply.outputs {
        match output {
            ReplyOutput::Call(made) => calls.push(call(made)),
            ReplyOutput::Item(Value::Object(members)) => add(&mut message, members),
            _ => {}
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": id(reply), "object": "chat.completion", "created": CREATED, "model": reply.model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply.stop),
        }],
        "usage": usage(reply), "service_tier": "default", "system_fingerprint": "fp_scripted",
    })
}

fn id(reply: &ComposedReply) -> String {
    format!("chatcmpl-{:06}", reply.number)
}

/// Adds the members that a scenario gives to a message.
fn add(message: &mut Value, members: &Map<String, Value>) {
    for (key, value) in members {
        message[key.as_str()] = value.clone();
    }
}

/// Writes a reply as events.
pub(crate) fn events(
    reply: &ComposedReply,
    with_usage: bool,
    random: &mut Random,
) -> Vec<StreamEvent> {
    let mut chunks = Chunks {
        reply,
        with_usage,
        random,
        events: Vec::new(),
    };
    chunks.delta(&json!({"role": "assistant", "content": "", "refusal": null}));
    let mut calls = 0;
    for output in &reply.outputs {
        match output {
            ReplyOutput::Text(text) => chunks.texts("content", text),
            ReplyOutput::Thinking(text) => chunks.texts("reasoning_content", text),
            ReplyOutput::Refusal(text) => chunks.texts("refusal", text),
            ReplyOutput::Call(made) => {
                chunks.call(made, calls);
                calls += 1;
            }
            ReplyOutput::Item(members) => chunks.delta(members),
        }
    }
    chunks.end()
}

struct Chunks<'r> {
    reply: &'r ComposedReply,
    with_usage: bool,
    random: &'r mut Random,
    events: Vec<StreamEvent>,
}

impl Chunks<'_> {
    fn chunk(&mut self, choices: &Value, usage: &Value) -> StreamEvent {
        let mut chunk = json!({
            "id": id(self.reply), "object": "chat.completion.chunk", "created": CREATED,
            "model": self.reply.model, "service_tier": "default",
            "system_fingerprint": "fp_scripted", "choices": choices,
            "obfuscation": self.random.padding(),
        });
        if self.with_usage {
            chunk["usage"] = usage.clone();
        }
        StreamEvent::data(&chunk)
    }

    fn delta(&mut self, delta: &Value) {
        let choices =
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
        let event = self.chunk(&choices, &Value::Null);
        self.events.push(event);
    }

    fn texts(&mut self, key: &str, text: &str) {
        for piece in self.random.deltas(text) {
            self.delta(&json!({key: piece}));
        }
    }

    fn call(&mut self, made: &OutCall, index: usize) {
        let (key, argument) = if made.is_freeform {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        let mut head = call(made);
        head["index"] = index.into();
        head[key][argument] = "".into();
        self.delta(&json!({"tool_calls": [head]}));
        for piece in self.random.deltas(&made.arguments) {
            self.delta(&json!({"tool_calls": [{"index": index, key: {argument: piece}}]}));
        }
    }

    fn end(mut self) -> Vec<StreamEvent> {
        let finish = finish(self.reply.stop);
        let choices = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish}]);
        let event = self.chunk(&choices, &Value::Null);
        self.events.push(event.closing());
        if self.with_usage {
            let event = self.chunk(&json!([]), &usage(self.reply));
            self.events.push(event.closing());
        }
        let done = StreamEvent {
            text: "data: [DONE]\n\n".to_owned(),
            is_closing: true,
        };
        self.events.push(done);
        self.events
    }
}
