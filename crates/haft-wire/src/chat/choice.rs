//! Which tools may be called, in the Chat format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::body::inexpressible;
use crate::declarations::{DeclarationKind, Declarations};
use crate::dialect::Dialect;
use crate::error::WireError;
use crate::request::ToolChoice;

/// Writes the member, unless it has its default value.
pub(crate) fn write(
    body: &mut Writer<'_>,
    choice: &ToolChoice,
    tools: &Declarations,
) -> Result<(), WireError> {
    let word = |body: &mut Writer<'_>, word| string(body.key("tool_choice"), word);
    match choice {
        ToolChoice::Auto => {}
        ToolChoice::None if tools.json().is_empty() => {}
        ToolChoice::None => word(body, "none"),
        ToolChoice::Required => word(body, "required"),
        ToolChoice::Tool(name) => one(body.key("tool_choice"), name, tools)?,
        ToolChoice::Allowed { names, required } => {
            let mut member = Writer::begin(body.key("tool_choice"));
            string(member.key("type"), "allowed_tools");
            let mut inner = Writer::begin(member.key("allowed_tools"));
            string(
                inner.key("mode"),
                if *required { "required" } else { "auto" },
            );
            let list = inner.key("tools");
            list.push(b'[');
            for (at, name) in names.iter().enumerate() {
                if at > 0 {
                    list.push(b',');
                }
                one(list, name, tools)?;
            }
            list.push(b']');
            inner.end();
            member.end();
        }
    }
    Ok(())
}

/// Writes one tool as a choice refers to it.
fn one(out: &mut Vec<u8>, name: &str, tools: &Declarations) -> Result<(), WireError> {
    let sort = tools.of(name).map(|one| &one.sort);
    let mut member = Writer::begin(out);
    let kind = match sort {
        Some(DeclarationKind::Function | DeclarationKind::Namespace) => "function",
        Some(DeclarationKind::Freeform) => "custom",
        Some(DeclarationKind::Provider(words)) => {
            let kind = words.first().map_or(name, String::as_str);
            string(member.key("type"), kind);
            member.end();
            return Ok(());
        }
        None => {
            let what = format!("a choice of {name:?}, which is not declared");
            return Err(inexpressible(Dialect::OpenAiChat, what));
        }
    };
    string(member.key("type"), kind);
    let mut inner = Writer::begin(member.key(kind));
    string(inner.key("name"), name);
    inner.end();
    member.end();
    Ok(())
}
