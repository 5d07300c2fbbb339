//! Reads the items of a request: turns of the model, and the client's answers to its calls.

use serde_json::Value;

use crate::conversation::{Conversation, HistoryCall, HistoryResult};
use crate::fields::{content, list, member, text};
use crate::refusal::ProviderError;

use super::memory::{self, ReplyStore};
use super::{message_text, tools};

/// Calls that the client answers: their type, the member with their id, and the type and member of the answer.
const CALLS: [[&str; 4]; 8] = [
    [
        "function_call",
        "call_id",
        "function_call_output",
        "call_id",
    ],
    [
        "custom_tool_call",
        "call_id",
        "custom_tool_call_output",
        "call_id",
    ],
    ["shell_call", "call_id", "shell_call_output", "call_id"],
    ["local_shell_call", "id", "local_shell_call_output", "id"],
    [
        "apply_patch_call",
        "call_id",
        "apply_patch_call_output",
        "call_id",
    ],
    [
        "computer_call",
        "call_id",
        "computer_call_output",
        "call_id",
    ],
    [
        "tool_search_call",
        "call_id",
        "tool_search_output",
        "call_id",
    ],
    [
        "mcp_approval_request",
        "id",
        "mcp_approval_response",
        "approval_request_id",
    ],
];
/// Other items written by the model.
const MODEL: [&str; 11] = [
    "reasoning",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "compaction",
    "tool_search_output",
];

/// A call that waits for its answer.
struct ResponsesPendingCall {
    kind: &'static str,
    id: String,
    item: Value,
}

/// Reads the items into the conversation.
pub(super) fn read(
    items: &[Value],
    memory: &ReplyStore,
    conversation: &mut Conversation,
) -> Result<(), ProviderError> {
    let mut reader = ItemReader {
        conversation,
        open: Vec::new(),
        in_turn: false,
    };
    for (at, item) in items.iter().enumerate() {
        reader.item(item, at)?;
        memory::check_item(memory, items, at)?;
    }
    let mut open = reader.open.iter();
    // A missing approval counts as a denial, not as an error.
    match open.find(|open| open.kind != "mcp_approval_request") {
        Some(open) => {
            let kind = open.kind.replace('_', " ");
            let words = format!("No tool output found for {kind} {}.", open.id);
            Err(ProviderError::invalid(words).at("input"))
        }
        None => Ok(()),
    }
}

struct ItemReader<'c> {
    conversation: &'c mut Conversation,
    open: Vec<ResponsesPendingCall>,
    in_turn: bool,
}

impl ItemReader<'_> {
    fn item(&mut self, item: &Value, at: usize) -> Result<(), ProviderError> {
        let kind = text(item, "type").unwrap_or("message");
        if kind == "message" {
            return self.message(item, at);
        }
        if let Some(row) = CALLS.into_iter().find(|row| row[0] == kind) {
            return self.call(item, at, row);
        }
        let answer = CALLS.into_iter().find(|row| row[2] == kind);
        match answer {
            // A search that the provider ran is in the history with its output.
            Some(row) if text(item, "execution") != Some("server") => self.answer(item, at, row),
            _ if MODEL.contains(&kind) => {
                self.begin_turn();
                Ok(())
            }
            _ if kind == "additional_tools" => {
                self.in_turn = false;
                let place = format!("input[{at}].tools");
                self.conversation
                    .tools
                    .extend(tools(list(item, "tools"), &place)?);
                Ok(())
            }
            _ => {
                let words = format!("Invalid value: '{kind}'. It is not a type of an input item.");
                let place = format!("input[{at}].type");
                Err(ProviderError::invalid(words)
                    .at(place)
                    .code("invalid_value"))
            }
        }
    }

    fn begin_turn(&mut self) {
        if !self.in_turn {
            self.conversation.turns.push(Vec::new());
            self.in_turn = true;
        }
    }

    fn message(&mut self, item: &Value, at: usize) -> Result<(), ProviderError> {
        let words = message_text(item);
        match text(item, "role").unwrap_or_default() {
            "assistant" => {
                self.begin_turn();
                return Ok(());
            }
            "user" if !words.is_empty() => self.conversation.user = words,
            "user" => {}
            "system" | "developer" => {
                self.conversation.system.push('\n');
                self.conversation.system.push_str(&words);
            }
            other => {
                let words = format!(
                    "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
                );
                let place = format!("input[{at}].role");
                return Err(ProviderError::invalid(words)
                    .at(place)
                    .code("invalid_value"));
            }
        }
        self.in_turn = false;
        Ok(())
    }

    fn call(
        &mut self,
        item: &Value,
        at: usize,
        row: [&'static str; 4],
    ) -> Result<(), ProviderError> {
        let [kind, key, ..] = row;
        self.begin_turn();
        if kind == "tool_search_call" && text(item, "execution") != Some("client") {
            return Ok(());
        }
        let needed = match kind {
            "function_call" => ["call_id", "name", "arguments"].as_slice(),
            "custom_tool_call" => &["call_id", "name", "input"],
            _ => &[key],
        };
        let missing = needed.iter().find(|name| text(item, name).is_none());
        if let Some(name) = missing {
            let place = format!("input[{at}].{name}");
            let words = format!("Missing required parameter: '{place}'.");
            return Err(ProviderError::invalid(words)
                .at(place)
                .code("missing_required_parameter"));
        }
        let id = text(item, key).unwrap_or_default().to_owned();
        if let Some(turn) = self.conversation.turns.last_mut() {
            // The scenario's name for the call: its `call_id`, whatever its answer refers to.
            let named = text(item, "call_id").unwrap_or(&id);
            turn.push(HistoryCall {
                id: Some(named.to_owned()),
                result: None,
            });
        }
        self.open.push(ResponsesPendingCall {
            kind,
            id,
            item: item.clone(),
        });
        Ok(())
    }

    fn answer(
        &mut self,
        item: &Value,
        at: usize,
        row: [&'static str; 4],
    ) -> Result<(), ProviderError> {
        self.in_turn = false;
        let [kind, _, own, key] = row;
        let id = text(item, key).unwrap_or_default();
        let waits = self
            .open
            .iter()
            .position(|open| open.kind == kind && open.id == id);
        let Some(waits) = waits else {
            let what = own.replace('_', " ");
            let words = format!("No tool call found for {what} with {key} {id}.");
            return Err(ProviderError::invalid(words).at("input"));
        };
        let call = self.open.remove(waits);
        shape(item, own, &call.item).map_err(|words| {
            let place = format!("input[{at}]");
            ProviderError::invalid(format!("Invalid '{place}': {words}")).at(place)
        })?;
        let result = HistoryResult {
            text: answer_text(item),
            is_error: (own == "apply_patch_call_output")
                .then(|| text(item, "status") == Some("failed")),
        };
        let named = text(&call.item, "call_id").unwrap_or(id).to_owned();
        self.conversation.answer(&named, result);
        if own == "tool_search_output" {
            let place = format!("input[{at}].tools");
            self.conversation
                .tools
                .extend(tools(list(item, "tools"), &place)?);
        }
        Ok(())
    }
}

/// Checks that an answer has the members that its type requires.
fn shape(item: &Value, kind: &str, call: &Value) -> Result<(), String> {
    let output = member(item, "output");
    match kind {
        "function_call_output" | "custom_tool_call_output" => match output {
            Some(Value::String(_)) => Ok(()),
            Some(Value::Array(parts)) => {
                let known = |part: &&Value| {
                    matches!(
                        text(part, "type"),
                        Some("input_text" | "input_image" | "input_file")
                    )
                };
                match parts.iter().find(|part| !known(part)) {
                    Some(part) => Err(format!(
                        "output holds {part}; expected input_text, input_image or input_file."
                    )),
                    None => Ok(()),
                }
            }
            _ => Err("output must be a string or a list.".to_owned()),
        },
        "local_shell_call_output" if !output.is_some_and(Value::is_string) => {
            Err("output must be a string.".to_owned())
        }
        "apply_patch_call_output" => match text(item, "status") {
            Some("completed" | "failed") => Ok(()),
            other => Err(format!(
                "status must be 'completed' or 'failed', not {other:?}."
            )),
        },
        "shell_call_output" => shell(item, call),
        "computer_call_output" => computer(item, call),
        "mcp_approval_response" if !item.get("approve").is_some_and(Value::is_boolean) => {
            Err("approve must be a boolean.".to_owned())
        }
        _ => Ok(()),
    }
}

fn shell(item: &Value, call: &Value) -> Result<(), String> {
    let outputs = list(item, "output");
    let commands = list(&call["action"], "commands").len();
    if outputs.len() != commands {
        let found = outputs.len();
        return Err(format!(
            "output has {found} entries for {commands} commands."
        ));
    }
    let known = |output: &&Value| {
        let outcome = &output["outcome"];
        let ends = match text(outcome, "type") {
            Some("exit") => outcome.get("exit_code").is_some_and(Value::is_i64),
            Some("timeout") => true,
            _ => false,
        };
        ends && text(output, "stdout").is_some() && text(output, "stderr").is_some()
    };
    match outputs.iter().find(|output| !known(output)) {
        Some(output) => Err(format!(
            "output holds {output}; expected stdout, stderr and an outcome of type exit or timeout."
        )),
        None => Ok(()),
    }
}

fn computer(item: &Value, call: &Value) -> Result<(), String> {
    let output = &item["output"];
    let pictured = text(output, "image_url").or_else(|| text(output, "file_id"));
    if text(output, "type") != Some("computer_screenshot") || pictured.is_none() {
        return Err("output must be a computer_screenshot with image_url or file_id.".to_owned());
    }
    let acknowledged = list(item, "acknowledged_safety_checks");
    let is_open = |check: &&Value| {
        !acknowledged
            .iter()
            .any(|own| text(own, "id") == text(check, "id"))
    };
    match list(call, "pending_safety_checks").iter().find(is_open) {
        Some(check) => Err(format!(
            "the safety check {} is not acknowledged.",
            check["id"]
        )),
        None => Ok(()),
    }
}

/// Returns what a user would read of an answer.
fn answer_text(item: &Value) -> String {
    match item.get("output") {
        Some(Value::Array(parts)) if parts.iter().any(|part| part.get("stdout").is_some()) => {
            let text = |part: &Value| {
                let streams = ["stdout", "stderr"].map(|name| text(part, name).unwrap_or_default());
                streams.concat()
            };
            parts.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        output => content(output),
    }
}
