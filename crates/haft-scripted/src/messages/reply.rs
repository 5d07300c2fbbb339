//! Anthropic Messages: writes replies, complete and streamed.

use serde_json::{Value, json};

use crate::compose::{ComposedReply, ReplyOutput};
use crate::random::Random;
use crate::scenario::ScenarioStop;
use crate::stream::StreamEvent;

use super::signature;

fn stop_reason(reply: &ComposedReply) -> &'static str {
    let refused = |output: &ReplyOutput| matches!(output, ReplyOutput::Refusal(_));
    match reply.stop {
        ScenarioStop::End if reply.outputs.iter().any(refused) => "refusal",
        ScenarioStop::End => "end_turn",
        ScenarioStop::Calls => "tool_use",
        ScenarioStop::Length => "max_tokens",
        ScenarioStop::Filter => "refusal",
        ScenarioStop::Pause => "pause_turn",
    }
}

fn usage(reply: &ComposedReply, output: u64) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output, "service_tier": "standard",
    })
}

fn message(reply: &ComposedReply, content: &[Value], stop: Option<&str>, output: u64) -> Value {
    json!({
        "id": format!("msg_{:06}", reply.number), "type": "message", "role": "assistant",
        "model": reply.model, "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": usage(reply, output),
    })
}

fn block(output: &ReplyOutput) -> Result<Value, String> {
    Ok(match output {
        ReplyOutput::Text(text) | ReplyOutput::Refusal(text) => {
            json!({"type": "text", "text": text})
        }
        ReplyOutput::Thinking(text) => {
            json!({"type": "thinking", "thinking": text, "signature": signature(text)})
        }
        ReplyOutput::Call(call) => json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": call.object()?,
            "caller": {"type": "direct"},
        }),
        ReplyOutput::Item(item) => item.clone(),
    })
}

/// Writes a complete reply.
///
/// # Errors
/// If the raw arguments of a call are not an object.
pub(crate) fn whole(reply: &ComposedReply) -> Result<Value, String> {
    let blocks: Result<Vec<Value>, String> = reply.outputs.iter().map(block).collect();
    let stop = stop_reason(reply);
    Ok(message(reply, &blocks?, Some(stop), reply.usage.output))
}

/// Writes a reply as events.
pub(crate) fn events(reply: &ComposedReply, random: &mut Random) -> Vec<StreamEvent> {
    let start = json!({"type": "message_start", "message": message(reply, &[], None, 1)});
    let mut events = vec![event(&start)];
    for (index, output) in reply.outputs.iter().enumerate() {
        let (first, deltas) = parts(output, random);
        let start = json!({"type": "content_block_start", "index": index, "content_block": first});
        events.push(event(&start));
        if index == 0 {
            events.push(event(&json!({"type": "ping"})));
        }
        events.extend(deltas.iter().map(|delta| {
            event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        events.push(event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": usage(reply, reply.usage.output),
    });
    events.push(event(&end).closing());
    events.push(event(&json!({"type": "message_stop"})).closing());
    events
}

fn event(value: &Value) -> StreamEvent {
    StreamEvent::named(value["type"].as_str().unwrap_or_default(), value)
}

/// Returns a block as it starts, and the deltas that follow.
fn parts(output: &ReplyOutput, random: &mut Random) -> (Value, Vec<Value>) {
    match output {
        ReplyOutput::Text(text) | ReplyOutput::Refusal(text) => {
            let delta = |piece| json!({"type": "text_delta", "text": piece});
            let deltas = random.deltas(text).into_iter().map(delta);
            (json!({"type": "text", "text": ""}), deltas.collect())
        }
        ReplyOutput::Thinking(text) => {
            let delta = |piece| json!({"type": "thinking_delta", "thinking": piece});
            let mut deltas: Vec<Value> = random.deltas(text).into_iter().map(delta).collect();
            deltas.push(json!({"type": "signature_delta", "signature": signature(text)}));
            let first = json!({"type": "thinking", "thinking": "", "signature": ""});
            (first, deltas)
        }
        ReplyOutput::Call(call) => {
            let first = json!({
                "type": "tool_use", "id": call.id, "name": call.name, "input": {},
                "caller": {"type": "direct"},
            });
            (first, inputs(&call.arguments, random))
        }
        ReplyOutput::Item(item) => match item.get("input").filter(|input| input.is_object()) {
            Some(input) => {
                let deltas = inputs(&input.to_string(), random);
                let mut first = item.clone();
                first["input"] = json!({});
                (first, deltas)
            }
            None => (item.clone(), Vec::new()),
        },
    }
}

/// Returns arguments in pieces, the first one empty as at the provider; no other for `{}`.
fn inputs(arguments: &str, random: &mut Random) -> Vec<Value> {
    let delta = |piece: String| json!({"type": "input_json_delta", "partial_json": piece});
    let mut pieces = vec![String::new()];
    if arguments != "{}" {
        pieces.extend(random.deltas(arguments));
    }
    pieces.into_iter().map(delta).collect()
}
