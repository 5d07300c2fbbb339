//! OpenAI Responses: reads and checks requests.

use serde_json::Value;

use crate::conversation::{AllowedTools, Conversation, RequestTool, ToolKind};
use crate::fields::{content, list, member, text, unknown};
use crate::refusal::ProviderError;
use crate::schema;

mod items;
mod memory;
pub(crate) mod reply;

pub(crate) use memory::ReplyStore;

/// The known members of a request; `client_metadata` is undocumented, but Codex sends it.
const MEMBERS: &[&str] = &[
    "access_programs",
    "background",
    "background_options",
    "client_metadata",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
/// The types of tools that the provider defines or runs.
const PROVIDER: &[&str] = &[
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "programmatic_tool_calling",
    "shell",
    "tool_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
];

/// Reads a request; the memory has the answers to earlier ones.
///
/// # Errors
/// If the provider would refuse it.
pub(crate) fn read(body: &Value, memory: &ReplyStore) -> Result<Conversation, ProviderError> {
    if let Some(name) = body
        .as_object()
        .and_then(|members| unknown(members, MEMBERS))
    {
        let words = format!("Unknown parameter: '{name}'.");
        return Err(ProviderError::invalid(words)
            .at(name)
            .code("unknown_parameter"));
    }
    for name in ["model", "input"] {
        if member(body, name).is_none() {
            let words = format!("Missing required parameter: '{name}'.");
            return Err(ProviderError::invalid(words)
                .at(name)
                .code("missing_required_parameter"));
        }
    }
    let tools = tools(list(body, "tools"), "tools")?;
    let mut conversation = Conversation {
        model: text(body, "model").unwrap_or_default().to_owned(),
        stream: body.get("stream") == Some(&Value::Bool(true)),
        system: text(body, "instructions").unwrap_or_default().to_owned(),
        tools,
        one_call: body.get("parallel_tool_calls") == Some(&Value::Bool(false)),
        ..Conversation::default()
    };
    let include = list(body, "include");
    conversation.own.encrypted = include
        .iter()
        .any(|word| word == "reasoning.encrypted_content");
    conversation.own.store = body.get("store") != Some(&Value::Bool(false));
    let items = memory.resolve(body)?;
    items::read(&items, memory, &mut conversation)?;
    choice(body, &mut conversation)?;
    conversation.own.items = items;
    conversation.own.body = body.clone();
    Ok(conversation)
}

/// Reads a list of declared tools, including those in namespaces.
fn tools(declared: &[Value], place: &str) -> Result<Vec<RequestTool>, ProviderError> {
    let mut tools = Vec::new();
    for (at, tool) in declared.iter().enumerate() {
        let place = format!("{place}[{at}]");
        match text(tool, "type").unwrap_or_default() {
            "function" => {
                let name = schema::openai_name(tool, &place)?;
                schema::openai(tool, &place)?;
                tools.push(RequestTool::new(name, ToolKind::Function));
            }
            "custom" => {
                let name = schema::openai_name(tool, &place)?;
                tools.push(RequestTool::new(name, ToolKind::Freeform));
            }
            "namespace" => {
                let namespace = schema::openai_name(tool, &place)?;
                let inner = self::tools(list(tool, "tools"), &format!("{place}.tools"))?;
                tools.extend(inner.into_iter().map(|tool| RequestTool {
                    namespace: Some(namespace.clone()),
                    ..tool
                }));
            }
            kind if PROVIDER.contains(&kind) => {
                tools.push(RequestTool::new(kind, ToolKind::Provider));
            }
            other => {
                let words = format!(
                    "Invalid value: '{other}'. Supported values are: 'function', 'custom', 'namespace', '{}'.",
                    PROVIDER.join("', '")
                );
                let place = format!("{place}.type");
                return Err(ProviderError::invalid(words)
                    .at(place)
                    .code("invalid_value"));
            }
        }
    }
    Ok(tools)
}

fn choice(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    let Some(choice) = member(body, "tool_choice") else {
        return Ok(());
    };
    let name = |tool: &Value| {
        let kind = text(tool, "type").unwrap_or_default();
        text(tool, "name").unwrap_or(kind).to_owned()
    };
    conversation.choice = match (choice.as_str(), text(choice, "type")) {
        (Some("auto"), _) => AllowedTools::Auto,
        (Some("none"), _) => AllowedTools::None,
        (Some("required"), _) => AllowedTools::Required,
        (None, Some("allowed_tools")) => {
            let names = list(choice, "tools").iter().map(name).collect();
            AllowedTools::Among(names, text(choice, "mode") == Some("required"))
        }
        (None, Some(_)) => AllowedTools::Among(vec![name(choice)], true),
        _ => {
            let words = format!(
                "Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
            );
            return Err(ProviderError::invalid(words)
                .at("tool_choice")
                .code("invalid_value"));
        }
    };
    let declared = |name: &String| conversation.tools.iter().any(|tool| tool.name == *name);
    match &conversation.choice {
        AllowedTools::Among(names, _) if !names.iter().all(declared) => {
            let names = names.join("', '");
            let words = format!("Tool choice '{names}' not found in 'tools' parameter.");
            Err(ProviderError::invalid(words).at("tool_choice"))
        }
        _ => Ok(()),
    }
}

/// Returns the text of a message's content.
fn message_text(item: &Value) -> String {
    content(item.get("content"))
}
