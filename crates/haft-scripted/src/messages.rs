//! Anthropic Messages: reads and checks requests.

use std::collections::HashSet;

use serde_json::Value;

use crate::conversation::{
    AllowedTools, Conversation, HistoryCall, HistoryResult, RequestTool, ToolKind,
};
use crate::fields::{content, list, member, text, unknown};
use crate::random::digest;
use crate::refusal::ProviderError;
use crate::schema;

pub(crate) mod reply;

/// The known members of a request, including those of betas.
const MEMBERS: &[&str] = &[
    "betas",
    "billing_policy",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "diagnostics",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];
/// The prefix of a signature.
const SIGNED: &str = "scripted";

/// Returns the signature of a thinking block.
pub(crate) fn signature(thought: &str) -> String {
    format!("{SIGNED}{}", digest(thought))
}

/// Reads a request.
///
/// # Errors
/// If the provider would refuse it.
pub(crate) fn read(body: &Value) -> Result<Conversation, ProviderError> {
    if let Some(name) = body
        .as_object()
        .and_then(|members| unknown(members, MEMBERS))
    {
        let words = format!("{name}: Extra inputs are not permitted");
        return Err(ProviderError::invalid(words));
    }
    for name in ["model", "max_tokens", "messages"] {
        if member(body, name).is_none() {
            return Err(ProviderError::invalid(format!("{name}: Field required")));
        }
    }
    if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
        let words = "max_tokens: Input should be greater than or equal to 1";
        return Err(ProviderError::invalid(words));
    }
    let mut conversation = Conversation {
        model: text(body, "model").unwrap_or_default().to_owned(),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        system: content(body.get("system")),
        tools: tools(body)?,
        ..Conversation::default()
    };
    choice(body, &mut conversation)?;
    messages(body, &mut conversation)?;
    Ok(conversation)
}

fn tools(body: &Value) -> Result<Vec<RequestTool>, ProviderError> {
    let declared = list(body, "tools");
    let mut tools: Vec<RequestTool> = Vec::new();
    let mut seen = HashSet::new();
    for (at, tool) in declared.iter().enumerate() {
        let kind = text(tool, "type").unwrap_or("custom");
        if kind == "custom" {
            let place = format!("tools.{at}.custom");
            let name = text(tool, "name").unwrap_or_default();
            if !schema::is_name(name) {
                let words =
                    format!("{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'");
                return Err(ProviderError::invalid(words));
            }
            schema::anthropic(tool, &place)?;
            tools.push(RequestTool::new(name, ToolKind::Function));
        } else {
            tools.extend(provider(tool, kind));
        }
        if let Some(name) = text(tool, "name")
            && !seen.insert(name)
        {
            return Err(ProviderError::invalid("tools: Tool names must be unique."));
        }
    }
    let deferred = |tool: &Value| tool.get("defer_loading") == Some(&Value::Bool(true));
    if !declared.is_empty() && declared.iter().all(deferred) {
        let words = "At least one tool must have defer_loading=false.";
        return Err(ProviderError::invalid(words));
    }
    Ok(tools)
}

/// Returns the tools that a declaration of Anthropic's own adds. `bash_20250124` is known as `bash`, whatever its date.
fn provider(tool: &Value, kind: &str) -> Vec<RequestTool> {
    let name = text(tool, "name").unwrap_or(kind);
    vec![RequestTool::new(name, ToolKind::Provider)]
}

fn choice(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    let Some(choice) = member(body, "tool_choice") else {
        return Ok(());
    };
    let kind = text(choice, "type").unwrap_or_default();
    conversation.one_call = choice.get("disable_parallel_tool_use") == Some(&Value::Bool(true));
    conversation.choice = match kind {
        "auto" => AllowedTools::Auto,
        "none" => AllowedTools::None,
        "any" => AllowedTools::Required,
        "tool" => {
            let name = text(choice, "name").unwrap_or_default();
            AllowedTools::Among(vec![name.to_owned()], true)
        }
        other => {
            let words = format!(
                "tool_choice: Input tag '{other}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
            );
            return Err(ProviderError::invalid(words));
        }
    };
    if conversation.tools.is_empty() && matches!(kind, "any" | "tool") {
        let words = "tool_choice: tool_choice may only be specified while providing tools";
        return Err(ProviderError::invalid(words));
    }
    let declared = |name: &String| conversation.tools.iter().any(|tool| tool.name == *name);
    match &conversation.choice {
        AllowedTools::Among(names, _) if !names.iter().all(declared) => {
            let words = format!(
                "tool_choice: Tool '{}' not found in provided tools",
                names.join(", ")
            );
            Err(ProviderError::invalid(words))
        }
        _ => Ok(()),
    }
}

/// A call that waits for its result.
struct MessagesPendingCall<'b> {
    id: &'b str,
    toolset: Option<&'b str>,
}

fn messages(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    let messages = list(body, "messages");
    if messages.is_empty() {
        return Err(ProviderError::invalid(
            "messages: at least one message is required",
        ));
    }
    let mut ids = HashSet::new();
    let mut open: Vec<MessagesPendingCall<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(message, "role").unwrap_or_default();
        match role {
            "user" => {
                results(message, at, &mut open, conversation)?;
                let text = content(message.get("content"));
                if !text.is_empty() {
                    conversation.user = text;
                }
            }
            "assistant" => {
                require_answers(&open, at)?;
                open = assistant(message, at, &mut ids, conversation)?;
            }
            // Instructions in the middle of a conversation.
            "system" if at > 0 => {
                require_answers(&open, at)?;
                conversation.system.push('\n');
                conversation
                    .system
                    .push_str(&content(message.get("content")));
            }
            other => {
                let words = format!(
                    "messages: Unexpected role \"{other}\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role."
                );
                return Err(ProviderError::invalid(words));
            }
        }
        if at == 0 && role != "user" {
            let words = "messages: first message must use the \"user\" role";
            return Err(ProviderError::invalid(words));
        }
        blocks(message, at)?;
    }
    require_answers(&open, messages.len())
}

fn require_answers(open: &[MessagesPendingCall<'_>], at: usize) -> Result<(), ProviderError> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(|call| call.id).collect();
    let ids = ids.join(", ");
    Err(ProviderError::invalid(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )))
}

/// Checks the blocks of a message.
fn blocks(message: &Value, at: usize) -> Result<(), ProviderError> {
    let body = member(message, "content");
    let is_empty = match body {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(blocks)) => blocks.is_empty(),
        _ => true,
    };
    if is_empty {
        let words = format!(
            "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        );
        return Err(ProviderError::invalid(words));
    }
    for (number, block) in list(message, "content").iter().enumerate() {
        let place = format!("messages.{at}.content.{number}");
        match text(block, "type") {
            Some("text") if text(block, "text").is_none_or(str::is_empty) => {
                let words = "messages: text content blocks must be non-empty";
                return Err(ProviderError::invalid(words));
            }
            Some("thinking") => {
                let thought = text(block, "thinking").unwrap_or_default();
                let signed = text(block, "signature").unwrap_or_default();
                let forged = signed.starts_with(SIGNED) && signed != signature(thought);
                if signed.is_empty() || forged {
                    let words = format!("{place}: Invalid `signature` in `thinking` block");
                    return Err(ProviderError::invalid(words));
                }
            }
            Some(_) => {}
            None => {
                return Err(ProviderError::invalid(format!(
                    "{place}.type: Field required"
                )));
            }
        }
    }
    Ok(())
}

/// Reads a turn of the model; returns its calls.
fn assistant<'b>(
    message: &'b Value,
    at: usize,
    ids: &mut HashSet<&'b str>,
    conversation: &mut Conversation,
) -> Result<Vec<MessagesPendingCall<'b>>, ProviderError> {
    let mut open = Vec::new();
    for (number, block) in list(message, "content").iter().enumerate() {
        if text(block, "type") != Some("tool_use") {
            continue;
        }
        let place = format!("messages.{at}.content.{number}");
        let id = text(block, "id").unwrap_or_default();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if id.is_empty() || !id.chars().all(letter) {
            let words =
                format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'");
            return Err(ProviderError::invalid(words));
        }
        if !ids.insert(id) {
            return Err(ProviderError::invalid(format!(
                "{place}: `tool_use` ids must be unique"
            )));
        }
        if text(block, "name").is_none_or(str::is_empty) {
            return Err(ProviderError::invalid(format!(
                "{place}.tool_use.name: Field required"
            )));
        }
        if !block.get("input").is_some_and(Value::is_object) {
            let words = format!("{place}.tool_use.input: Input should be a valid dictionary");
            return Err(ProviderError::invalid(words));
        }
        let toolset = text(block, "toolset_name");
        open.push(MessagesPendingCall { id, toolset });
    }
    let call = |open: &MessagesPendingCall<'_>| HistoryCall {
        id: Some(open.id.to_owned()),
        result: None,
    };
    conversation.turns.push(open.iter().map(call).collect());
    Ok(open)
}

/// Reads the results of a user's message, which precede everything else in it.
fn results(
    message: &Value,
    at: usize,
    open: &mut Vec<MessagesPendingCall<'_>>,
    conversation: &mut Conversation,
) -> Result<(), ProviderError> {
    let mut seen = HashSet::new();
    for (number, block) in list(message, "content").iter().enumerate() {
        if text(block, "type") != Some("tool_result") {
            require_answers(open, at)?;
            continue;
        }
        let place = format!("messages.{at}.content.{number}");
        let id = text(block, "tool_use_id").unwrap_or_default();
        let Some(waits) = open.iter().position(|call| call.id == id) else {
            let words = if seen.contains(id) {
                format!(
                    "{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                )
            } else {
                format!(
                    "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            };
            return Err(ProviderError::invalid(words));
        };
        let call = open.remove(waits);
        seen.insert(id);
        if call.toolset != text(block, "toolset_name") {
            let words = format!(
                "{place}: `toolset_name` must match the `toolset_name` of the `tool_use` block"
            );
            return Err(ProviderError::invalid(words));
        }
        let is_error = block.get("is_error") == Some(&Value::Bool(true));
        let mut parts = list(block, "content").iter();
        if is_error && parts.any(|part| text(part, "type") != Some("text")) {
            let words = format!(
                "{place}.tool_result: all content must be type \"text\" if \"is_error\" is true"
            );
            return Err(ProviderError::invalid(words));
        }
        let result = HistoryResult {
            text: content(block.get("content")),
            is_error: Some(is_error),
        };
        conversation.answer(id, result);
    }
    require_answers(open, at)
}
