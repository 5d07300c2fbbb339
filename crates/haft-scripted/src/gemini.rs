//! Gemini `generateContent`: reads and checks requests.

use std::collections::HashSet;

use serde_json::Value;

use crate::conversation::{
    AllowedTools, Conversation, HistoryCall, HistoryResult, RequestTool, ToolKind,
};
use crate::fields::{content, either, list, member, snake, text, texts};
use crate::random::digest;
use crate::refusal::ProviderError;
use crate::schema;

pub(crate) mod reply;

/// The known members of a request.
const MEMBERS: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
    "model",
];
/// The prefix of a signature. Followed by eight digits, it is base64, as a signature must be, in both alphabets.
const SIGNED: &str = "scripted";

/// Returns the signature of a call or a text.
pub(crate) fn signature(of: &str) -> String {
    format!("{SIGNED}{}", digest(of))
}

/// Reads a request to a model, streamed or not.
///
/// # Errors
/// If the provider would refuse it.
pub(crate) fn read(body: &Value, model: &str, stream: bool) -> Result<Conversation, ProviderError> {
    let known = |key: &String| {
        MEMBERS
            .iter()
            .any(|name| name == key || snake(name) == *key)
    };
    let mut keys = body
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys());
    if let Some(name) = keys.find(|key| !known(key)) {
        let words =
            format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field.");
        return Err(ProviderError::invalid(words));
    }
    let system = either(body, "systemInstruction");
    let mut conversation = Conversation {
        model: model.to_owned(),
        stream,
        system: content(system.and_then(|system| system.get("parts"))),
        tools: tools(body)?,
        ..Conversation::default()
    };
    choice(body, &mut conversation)?;
    contents(body, &mut conversation)?;
    Ok(conversation)
}

fn tools(body: &Value) -> Result<Vec<RequestTool>, ProviderError> {
    let mut tools: Vec<RequestTool> = Vec::new();
    let mut seen = HashSet::new();
    for (at, tool) in list(body, "tools").iter().enumerate() {
        let declarations = either(tool, "functionDeclarations").and_then(Value::as_array);
        for (number, function) in declarations.into_iter().flatten().enumerate() {
            let place =
                format!("GenerateContentRequest.tools[{at}].function_declarations[{number}]");
            let name = text(function, "name").unwrap_or_default();
            if !schema::is_gemini_name(name) {
                let words = format!(
                    "* {place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
                );
                return Err(ProviderError::invalid(words));
            }
            if !seen.insert(name) {
                let words = format!("Duplicate function declaration found: {name}");
                return Err(ProviderError::invalid(words));
            }
            let json_schema = either(function, "parametersJsonSchema");
            if json_schema.is_some() && member(function, "parameters").is_some() {
                let words = format!(
                    "* {place}: only one of parameters and parameters_json_schema may be set."
                );
                return Err(ProviderError::invalid(words));
            }
            if let Some(schema) = json_schema
                && text(schema, "type") != Some("object")
            {
                let words =
                    format!("* {place}.parameters_json_schema: must be a schema of type object.");
                return Err(ProviderError::invalid(words));
            }
            tools.push(RequestTool::new(name, ToolKind::Function));
        }
        let own = tool
            .as_object()
            .into_iter()
            .flat_map(|members| members.keys());
        let own = own.filter(|key| {
            !matches!(
                key.as_str(),
                "functionDeclarations" | "function_declarations"
            )
        });
        tools.extend(own.map(|key| RequestTool::new(key.as_str(), ToolKind::Provider)));
    }
    Ok(tools)
}

fn choice(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    let config =
        either(body, "toolConfig").and_then(|config| either(config, "functionCallingConfig"));
    let Some(config) = config else {
        return Ok(());
    };
    let names = either(config, "allowedFunctionNames").and_then(Value::as_array);
    let names: Vec<String> = names
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let mode = text(config, "mode").unwrap_or("AUTO");
    if !names.is_empty() && !matches!(mode, "ANY" | "VALIDATED") {
        let words = "Allowed function names should be set only when function calling mode is ANY.";
        return Err(ProviderError::invalid(words));
    }
    let declared = |name: &String| conversation.tools.iter().any(|tool| tool.name == *name);
    if let Some(name) = names.iter().find(|name| !declared(name)) {
        let words = format!("Allowed function name '{name}' is not declared.");
        return Err(ProviderError::invalid(words));
    }
    conversation.choice = match mode {
        "NONE" => AllowedTools::None,
        "ANY" if names.is_empty() => AllowedTools::Required,
        "ANY" => AllowedTools::Among(names, true),
        "VALIDATED" if !names.is_empty() => AllowedTools::Among(names, false),
        _ => AllowedTools::Auto,
    };
    Ok(())
}

/// A call that waits for its response.
struct GeminiPendingCall<'b> {
    id: Option<&'b str>,
    name: &'b str,
}

fn contents(body: &Value, conversation: &mut Conversation) -> Result<(), ProviderError> {
    let contents = list(body, "contents");
    if contents.is_empty() {
        let words = "* GenerateContentRequest.contents: contents is not specified";
        return Err(ProviderError::invalid(words));
    }
    let mut open: Vec<GeminiPendingCall<'_>> = Vec::new();
    let mut before = "";
    for (at, item) in contents.iter().enumerate() {
        let parts = list(item, "parts");
        if parts.is_empty() {
            let words = format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
            );
            return Err(ProviderError::invalid(words));
        }
        let role = text(item, "role").unwrap_or("user");
        match role {
            "user" | "function" => {
                responses(parts, at, &open, conversation)?;
                open.clear();
                let text = content(item.get("parts"));
                if !text.is_empty() {
                    conversation.user = text;
                }
            }
            "model" => {
                // The provider merges consecutive contents of the same role.
                if before != "model" {
                    conversation.turns.push(Vec::new());
                }
                open.extend(model(parts, at, conversation)?);
                if !open.is_empty() && before.is_empty() {
                    let words = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
                    return Err(ProviderError::invalid(words));
                }
            }
            other => {
                let words = format!("Please use a valid role: user, model. ('{other}')");
                return Err(ProviderError::invalid(words));
            }
        }
        before = role;
    }
    require_answers(&open)?;
    check_signatures(contents, &conversation.model)
}

fn require_answers(open: &[GeminiPendingCall<'_>]) -> Result<(), ProviderError> {
    if open.is_empty() {
        return Ok(());
    }
    let words = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    Err(ProviderError::invalid(words))
}

/// Reads a turn of the model; returns its calls.
fn model<'b>(
    parts: &'b [Value],
    at: usize,
    conversation: &mut Conversation,
) -> Result<Vec<GeminiPendingCall<'b>>, ProviderError> {
    let mut open = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let Some(call) = either(part, "functionCall") else {
            continue;
        };
        let place = format!("contents[{at}].parts[{number}].function_call");
        let name = text(call, "name").unwrap_or_default();
        if name.is_empty() {
            let words = format!("* GenerateContentRequest.{place}.name: Name cannot be empty.");
            return Err(ProviderError::invalid(words));
        }
        if member(call, "args").is_some_and(|args| !args.is_object()) {
            let words = format!(
                "Invalid value at '{place}.args' (type.googleapis.com/google.protobuf.Struct)"
            );
            return Err(ProviderError::invalid(words));
        }
        open.push(GeminiPendingCall {
            id: text(call, "id"),
            name,
        });
    }
    let call = |open: &GeminiPendingCall<'_>| HistoryCall {
        id: open.id.map(str::to_owned),
        result: None,
    };
    if let Some(turn) = conversation.turns.last_mut() {
        turn.extend(open.iter().map(call));
    }
    Ok(open)
}

/// Reads the responses in a user's content: one for each call.
fn responses(
    parts: &[Value],
    at: usize,
    open: &[GeminiPendingCall<'_>],
    conversation: &mut Conversation,
) -> Result<(), ProviderError> {
    let found: Vec<&Value> = parts
        .iter()
        .filter_map(|part| either(part, "functionResponse"))
        .collect();
    if open.is_empty() && !found.is_empty() {
        let words = "Please ensure that function response turn comes immediately after a function call turn.";
        return Err(ProviderError::invalid(words));
    }
    if found.len() != open.len() {
        return require_answers(open);
    }
    let mut waiting: Vec<usize> = (0..open.len()).collect();
    for (number, response) in found.into_iter().enumerate() {
        let place = format!("contents[{at}].parts[{number}].function_response");
        let name = text(response, "name").unwrap_or_default();
        if name.is_empty() {
            let words = format!("* GenerateContentRequest.{place}.name: Name cannot be empty.");
            return Err(ProviderError::invalid(words));
        }
        let id = text(response, "id");
        // Without ids, the order determines which call is meant.
        let fits = |at: &usize| {
            open[*at].name == name && (id.is_none() || open[*at].id.is_none() || open[*at].id == id)
        };
        let Some(waits) = waiting.iter().position(fits) else {
            let words = format!(
                "* GenerateContentRequest.{place}: no function call of the preceding turn has the name '{name}' and this id."
            );
            return Err(ProviderError::invalid(words));
        };
        let call = waiting.remove(waits);
        let Some(result) = member(response, "response").filter(|result| result.is_object()) else {
            let words = format!(
                "Invalid value at '{place}.response' (type.googleapis.com/google.protobuf.Struct)"
            );
            return Err(ProviderError::invalid(words));
        };
        let result = HistoryResult {
            text: texts(result),
            is_error: Some(result.get("error").is_some()),
        };
        if let Some(call) = conversation
            .turns
            .last_mut()
            .and_then(|calls| calls.get_mut(call))
        {
            call.result = Some(result);
        }
    }
    Ok(())
}

/// Checks that the signatures came back: Gemini 3 requires one at the first call of each step since the user's last
/// message, and one of ours must be unchanged.
fn check_signatures(contents: &[Value], model: &str) -> Result<(), ProviderError> {
    let says = |content: &Value| {
        let own = text(content, "role").is_none_or(|role| role != "model");
        own && list(content, "parts")
            .iter()
            .any(|part| text(part, "text").is_some())
    };
    let last = contents.iter().rposition(says).unwrap_or_default();
    for (at, content) in contents.iter().enumerate() {
        let calls = list(content, "parts").iter().enumerate();
        let mut calls =
            calls.filter_map(|(at, part)| Some((at, part, either(part, "functionCall")?)));
        let Some((number, part, call)) = calls.next() else {
            continue;
        };
        let name = text(call, "name").unwrap_or_default();
        match either(part, "thoughtSignature").and_then(Value::as_str) {
            None if at > last && model.starts_with("gemini-3") => {
                let words = format!(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , position {}.",
                    number + 1
                );
                return Err(ProviderError::invalid(words));
            }
            Some(signed) if signed.starts_with(SIGNED) && signed != signature(name) => {
                return Err(ProviderError::invalid("Thought signature is not valid."));
            }
            _ => {}
        }
    }
    Ok(())
}
