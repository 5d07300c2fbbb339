//! An event as a line of NDJSON (contract §6).

use haft::text::clip;
use haft_wire::Delta;
use serde_json::{Value, json};

use crate::end::{RunEnd, RunResult};
use crate::event::AgentEvent;

/// Maximum number of characters of a call's arguments or result in a line.
const MAX_TEXT: usize = 100_000;

impl AgentEvent<'_> {
    /// Writes the event as one line of JSON, with its line feed: `message` (with `delta` for a piece, `text` for the whole),
    /// `tool_call`, `tool_result` (with the `outcome` of contract §3), `approval`, `usage`, `done`, and `notice`. Pieces of a
    /// call's arguments are left out: `tool_call` has them complete.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        let Some(value) = self.to_json() else {
            return;
        };
        out.extend_from_slice(value.to_string().as_bytes());
        out.push(b'\n');
    }

    /// Returns the event as a value, to which a host may add its own members; `None` for events without a line.
    pub fn to_json(&self) -> Option<Value> {
        Some(match self {
            Self::Delta(Delta::Text(text)) => {
                json!({"type": "message", "role": "assistant", "delta": text})
            }
            Self::Delta(Delta::Thinking(text)) => {
                json!({"type": "message", "role": "thinking", "delta": text})
            }
            Self::Delta(_) => return None,
            Self::Message { text } => json!({"type": "message", "role": "assistant", "text": text}),
            Self::Retry {
                pause_ms,
                why,
                discards,
            } => {
                json!({"type": "notice", "text": why, "retry_ms": pause_ms, "discards": discards})
            }
            Self::Notice { text } => json!({"type": "notice", "text": text}),
            Self::ToolCall {
                id,
                tool,
                arguments,
            } => json!({
                "type": "tool_call", "tool_call_id": id, "tool": tool, "arguments": parsed(arguments),
            }),
            Self::ToolResult { .. } => self.result()?,
            Self::Approval { id, tool, approval } => {
                json!({"type": "approval", "tool_call_id": id, "tool": tool, "approval": approval})
            }
            Self::Usage {
                model,
                usage,
                spent,
            } => json!({
                "type": "usage", "model": model,
                "input": usage.input, "cached": usage.cached, "output": usage.output, "thinking": usage.thinking,
                "total": spent,
            }),
            Self::Done(finished) => done(finished),
        })
    }

    fn result(&self) -> Option<Value> {
        let Self::ToolResult {
            id,
            tool,
            outcome,
            text,
            is_error,
        } = self
        else {
            return None;
        };
        let mut line = json!({
            "type": "tool_result", "tool_call_id": id, "tool": tool, "ok": !is_error,
            "text": clip(text, MAX_TEXT),
        });
        if let Some(Ok(outcome)) = outcome.map(serde_json::to_value) {
            line["outcome"] = outcome;
        }
        Some(line)
    }
}

fn done(finished: &RunResult) -> Value {
    let mut line = json!({
        "type": "done", "end": finished.end.as_str(), "text": finished.text, "total": finished.spent,
    });
    if finished.end != RunEnd::Done {
        line["message"] = finished.end.describe().into();
    }
    if let RunEnd::Suspended(waiting) = &finished.end {
        let ids = waiting.iter().map(|call| call.approval.as_str());
        line["approvals"] = ids.collect::<Vec<_>>().into();
    }
    line
}

/// Returns arguments as JSON if they are valid JSON, else as text.
fn parsed(arguments: &str) -> Value {
    if arguments.len() > MAX_TEXT {
        return clip(arguments, MAX_TEXT).into();
    }
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}
