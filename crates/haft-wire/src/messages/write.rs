//! Writes the body of a request.

use haft_json::escape::string;
use haft_json::members::Writer;

use super::history;
use crate::body::{extra, inexpressible, same_dialect};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::request::{Request, ToolChoice};

/// The members that haft writes itself.
const OWN: [&str; 7] = [
    "model",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "messages",
    "stream",
];
/// The default limit of tokens to write: the provider requires one.
const MAX_TOKENS: u32 = 8192;

/// Writes the body of a request.
///
/// # Errors
/// If this dialect cannot express part of it.
pub(crate) fn write(request: &Request<'_>) -> Result<Vec<u8>, WireError> {
    same_dialect(Dialect::Anthropic, request.tools)?;
    let messages = history::write(request.model, request.messages, &request.tools.names)?;
    let tools = request.tools.json();
    let mut out = Vec::with_capacity(messages.len() + tools.len() + request.system.len() + 256);
    let mut body = Writer::begin(&mut out);
    string(body.key("model"), request.model);
    let max_tokens = request.max_tokens.unwrap_or(MAX_TOKENS);
    body.key("max_tokens")
        .extend_from_slice(max_tokens.to_string().as_bytes());
    if !request.system.trim().is_empty() {
        string(body.key("system"), request.system);
    }
    if !tools.is_empty() {
        body.key("tools").extend_from_slice(tools);
        if let Some(choice) = choice(request)? {
            body.key("tool_choice").extend_from_slice(&choice);
        }
    }
    body.key("messages").extend_from_slice(&messages);
    if request.stream {
        body.key("stream").extend_from_slice(b"true");
    }
    extra(Dialect::Anthropic, &mut body, &OWN, request.extra)?;
    body.end();
    Ok(out)
}

/// Returns the choice of tools; `None` if it is the provider's default. A choice among several declared tools cannot be expressed;
/// a single required tool becomes that tool, and an empty choice becomes `none`.
fn choice(request: &Request<'_>) -> Result<Option<Vec<u8>>, WireError> {
    let (kind, name) = match request.choice {
        ToolChoice::Auto if request.parallel => return Ok(None),
        ToolChoice::Auto => ("auto", None),
        ToolChoice::None => ("none", None),
        ToolChoice::Required => ("any", None),
        ToolChoice::Tool(name) => ("tool", Some(name)),
        ToolChoice::Allowed { names, required } => match names.as_slice() {
            [] if !required => ("none", None),
            [name] if *required => ("tool", Some(name)),
            _ => {
                return Err(inexpressible(
                    Dialect::Anthropic,
                    "a choice among some of the declared tools; declare only those, or demand one",
                ));
            }
        },
    };
    let mut out = Vec::new();
    let mut object = Writer::begin(&mut out);
    string(object.key("type"), kind);
    if let Some(name) = name {
        string(object.key("name"), name);
    }
    if !request.parallel && kind != "none" {
        object
            .key("disable_parallel_tool_use")
            .extend_from_slice(b"true");
    }
    object.end();
    Ok(Some(out))
}
