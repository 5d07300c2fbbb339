//! OpenAI Chat Completions: reads and checks requests.

use serde_json::Value;

use crate::conversation::{
    AllowedTools, Conversation, HistoryCall, HistoryResult, RequestTool, ToolKind,
};
use crate::fields::{content, list, member, text, unknown};
use crate::refusal::ProviderError;
use crate::schema;

pub(crate) mod reply;

/// The known members of a request.
const MEMBERS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
/// Maximum length of a call's id.
const LONGEST_ID: usize = 40;

/// Reads a request.
///
/// # Errors
/// If the provider would refuse it.
pub(crate) fn read(body: &Value) -> Result<Conversation, ProviderError> {
    if let Some(name) = body
        .as_object()
        .and_then(|members| unknown(members, MEMBERS))
    {
        return Err(ProviderError::invalid(format!(
            "Unrecognized request argument supplied: {name}"
        )));
    }
    let Some(model) = text(body, "model").filter(|model| !model.is_empty()) else {
        return Err(ProviderError::invalid("you must provide a model parameter"));
    };
    let stream = body.get("stream") == Some(&Value::Bool(true));
    let options = member(body, "stream_options");
    if options.is_some() && !stream {
        let words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(ProviderError::invalid(words).at("stream_options"));
    }
    let mut conversation = Conversation {
        model: model.to_owned(),
        stream,
        tools: tools(body)?,
        ..Conversation::default()
    };
    conversation.own.usage =
        options.and_then(|o| o.get("include_usage")) == Some(&Value::Bool(true));
    choice(body, &mut conversation)?;
    messages(body, &mut conversation)?;
    Ok(conversation)
}

fn tools(body: &Value) -> Result<Vec<RequestTool>, ProviderError> {
    let Some(tools) = member(body, "tools") else {
        return Ok(Vec::new());
    };
    let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
    if tools.is_empty() {
        let words = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        return Err(ProviderError::invalid(words)
            .at("tools")
            .code("empty_array"));
    }
    let tool = |(at, tool): (usize, &Value)| {
        let kind = text(tool, "type").unwrap_or_default();
        let (kind, inner) = match kind {
            "function" => (ToolKind::Function, &tool["function"]),
            "custom" => (ToolKind::Freeform, &tool["custom"]),
            other => {
                let words = format!(
                    "Invalid value: '{other}'. Supported values are: 'function' and 'custom'."
                );
                let place = format!("tools[{at}].type");
                return Err(ProviderError::invalid(words)
                    .at(place)
                    .code("invalid_value"));
            }
        };
        let place = format!(
            "tools[{at}].{}",
            if kind == ToolKind::Function {
                "function"
            } else {
                "custom"
            }
        );
        let name = schema::openai_name(inner, &place)?;
        if kind == ToolKind::Function {
            schema::openai(inner, &place)?;
        }
        Ok(RequestTool::new(name, kind))
    };
    tools.iter().enumerate().map(tool).collect()
}

fn choice(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    for name in ["tool_choice", "parallel_tool_calls"] {
        if member(body, name).is_some() && conversation.tools.is_empty() {
            let words = format!(
                "Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            );
            return Err(ProviderError::invalid(words).at(name));
        }
    }
    conversation.one_call = body.get("parallel_tool_calls") == Some(&Value::Bool(false));
    let Some(choice) = member(body, "tool_choice") else {
        return Ok(());
    };
    let name = |tool: &Value| {
        let inner = member(tool, "function").or_else(|| member(tool, "custom"));
        inner
            .and_then(|inner| text(inner, "name"))
            .map(str::to_owned)
    };
    conversation.choice = match (choice.as_str(), text(choice, "type")) {
        (Some("auto"), _) => AllowedTools::Auto,
        (Some("none"), _) => AllowedTools::None,
        (Some("required"), _) => AllowedTools::Required,
        (None, Some("function" | "custom")) => {
            AllowedTools::Among(name(choice).into_iter().collect(), true)
        }
        (None, Some("allowed_tools")) => {
            let allowed = &choice["allowed_tools"];
            let names = list(allowed, "tools").iter().filter_map(name).collect();
            AllowedTools::Among(names, text(allowed, "mode") == Some("required"))
        }
        _ => {
            let words = format!(
                "Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
            );
            return Err(ProviderError::invalid(words)
                .at("tool_choice")
                .code("invalid_value"));
        }
    };
    let AllowedTools::Among(names, _) = &conversation.choice else {
        return Ok(());
    };
    let declared = |name: &String| conversation.tools.iter().any(|tool| tool.name == *name);
    match names.iter().find(|name| !declared(name)) {
        Some(name) => {
            let words =
                format!("Invalid value for 'tool_choice': tool '{name}' not found in 'tools'.");
            Err(ProviderError::invalid(words).at("tool_choice"))
        }
        None => Ok(()),
    }
}

fn messages(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    let messages = list(body, "messages");
    if messages.is_empty() {
        let words = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        return Err(ProviderError::invalid(words)
            .at("messages")
            .code("empty_array"));
    }
    // The calls of the last turn without a result so far.
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(message, "role").unwrap_or_default();
        if role != "tool" {
            require_answers(&open)?;
            open.clear();
        }
        match role {
            "system" | "developer" => {
                conversation
                    .system
                    .push_str(&content(message.get("content")));
                conversation.system.push('\n');
            }
            "user" => {
                let text = content(message.get("content"));
                if !text.is_empty() {
                    conversation.user = text;
                }
            }
            "assistant" => open = assistant(message, at, conversation)?,
            "tool" => tool(message, at, &mut open, conversation)?,
            other => {
                let words = format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
                );
                let place = format!("messages[{at}].role");
                return Err(ProviderError::invalid(words)
                    .at(place)
                    .code("invalid_value"));
            }
        }
    }
    require_answers(&open)
}

fn require_answers(open: &[String]) -> Result<(), ProviderError> {
    if open.is_empty() {
        return Ok(());
    }
    let ids = open.join(", ");
    let words = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
    );
    Err(ProviderError::invalid(words).at("messages"))
}

/// Reads a turn of the model; returns the ids of its calls.
fn assistant(
    message: &Value,
    at: usize,
    conversation: &mut Conversation,
) -> Result<Vec<String>, ProviderError> {
    let calls = list(message, "tool_calls");
    let says = member(message, "content").is_some() || member(message, "refusal").is_some();
    if calls.is_empty() && !says {
        let words =
            format!("Invalid value for 'content': expected a string, got null. (messages[{at}])");
        return Err(ProviderError::invalid(words).at(format!("messages.[{at}].content")));
    }
    let mut ids = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let place = format!("messages[{at}].tool_calls[{number}]");
        let id = text(call, "id").unwrap_or_default();
        if id.is_empty() || id.len() > LONGEST_ID {
            let words = format!(
                "Invalid '{place}.id': expected a string with 1 to {LONGEST_ID} characters, but got {}.",
                id.len()
            );
            return Err(ProviderError::invalid(words).at(format!("{place}.id")));
        }
        let inner = match text(call, "type") {
            Some("custom") => text(&call["custom"], "name").zip(text(&call["custom"], "input")),
            // Some providers that use this dialect omit the type.
            _ => text(&call["function"], "name").zip(text(&call["function"], "arguments")),
        };
        if inner.is_none() {
            let words = format!(
                "Missing required parameter: '{place}.function': a name and arguments as a string."
            );
            return Err(ProviderError::invalid(words)
                .at(place)
                .code("missing_required_parameter"));
        }
        ids.push(id.to_owned());
    }
    let call = |id: &String| HistoryCall {
        id: Some(id.clone()),
        result: None,
    };
    conversation.turns.push(ids.iter().map(call).collect());
    Ok(ids)
}

/// Reads a result.
fn tool(
    message: &Value,
    at: usize,
    open: &mut Vec<String>,
    conversation: &mut Conversation,
) -> Result<(), ProviderError> {
    let has_calls = at > 0 && !conversation.turns.last().is_none_or(Vec::is_empty);
    if !has_calls {
        let words = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
        return Err(ProviderError::invalid(words).at(format!("messages.[{at}].role")));
    }
    let id = text(message, "tool_call_id").unwrap_or_default();
    let Some(waits) = open.iter().position(|open| open == id) else {
        let words = format!(
            "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
        );
        return Err(ProviderError::invalid(words).at(format!("messages.[{at}].tool_call_id")));
    };
    open.remove(waits);
    let parts = list(message, "content");
    let other = parts
        .iter()
        .filter_map(|part| text(part, "type"))
        .find(|kind| *kind != "text");
    if member(message, "content").is_none() || other.is_some() {
        let words =
            format!("Invalid 'messages[{at}]'. Content blocks are expected to be of type text.");
        return Err(ProviderError::invalid(words)
            .at(format!("messages[{at}]"))
            .code("invalid_value"));
    }
    let result = HistoryResult {
        text: content(message.get("content")),
        is_error: None,
    };
    conversation.answer(id, result);
    Ok(())
}
