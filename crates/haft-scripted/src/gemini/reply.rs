//! Gemini `generateContent`: writes replies, complete and streamed.

use serde_json::{Value, json};

use crate::compose::{ComposedReply, ReplyOutput};
use crate::random::Random;
use crate::scenario::ScenarioStop;
use crate::stream::StreamEvent;

use super::signature;

fn finish(stop: ScenarioStop) -> &'static str {
    match stop {
        ScenarioStop::End | ScenarioStop::Calls | ScenarioStop::Pause => "STOP",
        ScenarioStop::Length => "MAX_TOKENS",
        ScenarioStop::Filter => "SAFETY",
    }
}

fn response(reply: &ComposedReply, parts: &[Value], finish: Option<&str>) -> Value {
    let usage = reply.usage;
    let written = usage.output.saturating_sub(usage.thinking);
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage.input, "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": written, "thoughtsTokenCount": usage.thinking,
            "totalTokenCount": usage.input + usage.output,
        },
        "modelVersion": reply.model, "responseId": format!("response-{:06}", reply.number),
    })
}

/// Returns the parts of a reply. The first call carries a signature, as at the provider.
fn parts(reply: &ComposedReply, with_ids: bool) -> Result<Vec<Value>, String> {
    let mut first = true;
    let part = |output: &ReplyOutput| {
        Ok(match output {
            ReplyOutput::Text(text) | ReplyOutput::Refusal(text) => json!({"text": text}),
            ReplyOutput::Thinking(text) => json!({"text": text, "thought": true}),
            ReplyOutput::Call(call) => {
                let mut part = json!({"functionCall": {"name": call.name, "args": call.object()?}});
                if with_ids {
                    part["functionCall"]["id"] = call.id.as_str().into();
                }
                if std::mem::take(&mut first) {
                    part["thoughtSignature"] = signature(&call.name).into();
                }
                part
            }
            ReplyOutput::Item(item) => item.clone(),
        })
    };
    reply.outputs.iter().map(part).collect()
}

/// Writes a complete reply.
///
/// # Errors
/// If the raw arguments of a call are not an object.
pub(crate) fn whole(reply: &ComposedReply, with_ids: bool) -> Result<Value, String> {
    let parts = parts(reply, with_ids)?;
    Ok(response(reply, &parts, Some(finish(reply.stop))))
}

/// Writes a reply as events: texts in pieces, calls complete, and an empty text at the end with the stop reason.
///
/// # Errors
/// If the raw arguments of a call are not an object.
pub(crate) fn events(
    reply: &ComposedReply,
    with_ids: bool,
    random: &mut Random,
) -> Result<Vec<StreamEvent>, String> {
    let mut events = Vec::new();
    for part in parts(reply, with_ids)? {
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            events.push(StreamEvent::data(&response(reply, &[part], None)));
            continue;
        };
        for piece in random.deltas(text) {
            let mut part = part.clone();
            part["text"] = piece.into();
            events.push(StreamEvent::data(&response(reply, &[part], None)));
        }
    }
    let end = response(reply, &[json!({"text": ""})], Some(finish(reply.stop)));
    events.push(StreamEvent::data(&end).closing());
    Ok(events)
}
