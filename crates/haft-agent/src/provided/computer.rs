//! `computer` of Responses, and the members of Anthropic's computer and browser toolsets: actions, as calls of a tool of the host.

use haft::result::Content;
use haft::{Outcome, ToolCall};
use serde_json::{Value, json};

use crate::provided::step::{Next, ToolStep, one, with_item};

/// The answer to members of a toolset that follow a failed one in the same turn.
pub(crate) const BATCH_FAILED: &str =
    "Not executed: an earlier computer action in this turn failed.";

/// An image of one white pixel: the item of an answer must hold an image, even if there is none.
const NO_PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==";

/// Handles `computer`: its actions in one call, with the safety checks that the provider wants the user to see.
pub(super) fn computer(item: &Value, done: &[Outcome]) -> Next {
    let id = item["call_id"].as_str().unwrap_or_default();
    let Some(outcome) = done.last() else {
        let actions = match (&item["actions"], &item["action"]) {
            (Value::Array(actions), _) if !actions.is_empty() => Value::Array(actions.clone()),
            (_, Value::Object(action)) => json!([action]),
            _ => {
                let text = "invalid_arguments: the call names no action";
                return with_item(text, true, failed_item(id));
            }
        };
        let mut arguments = json!({"actions": actions});
        if let Some(checks) = pending(item) {
            arguments["pending_safety_checks"] = checks.clone();
        }
        return Next::Call(ToolStep::new("computer", arguments));
    };
    let text = outcome.to_model();
    let picture = outcome.content.iter().find_map(|content| match content {
        Content::Image { data, mime_type } => Some(format!("data:{mime_type};base64,{data}")),
        _ => None,
    });
    let Some(picture) = picture.filter(|_| outcome.is_ok()) else {
        return with_item(&text, true, failed_item(id));
    };
    let mut answer = screenshot(id, &picture);
    // The call has run: the user who was asked about it saw them.
    if let Some(checks) = pending(item) {
        answer["acknowledged_safety_checks"] = checks.clone();
    }
    with_item(&text, false, answer.to_string())
}

/// Returns the checks of a call that have to be acknowledged.
fn pending(item: &Value) -> Option<&Value> {
    let checks = &item["pending_safety_checks"];
    checks
        .as_array()
        .filter(|list| !list.is_empty())
        .map(|_| checks)
}

/// Returns whether a step is for a call with safety checks, which the user must see.
pub(crate) fn pending_checks(call: &ToolCall) -> bool {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    call.name == "computer" && pending(&arguments).is_some()
}

fn screenshot(id: &str, url: &str) -> Value {
    json!({
        "type": "computer_call_output", "call_id": id,
        "output": {"type": "computer_screenshot", "image_url": url},
    })
}

/// Returns the item for a failed call; it has no member for text.
pub(super) fn failed_item(id: &str) -> String {
    screenshot(id, NO_PICTURE).to_string()
}

/// Handles a member of a toolset.
pub(super) fn member(tool: &'static str, name: &str, input: &Value, done: &[Outcome]) -> Next {
    one(done, || {
        ToolStep::new(tool, json!({"action": name, "input": input}))
    })
}
