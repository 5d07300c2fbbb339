//! Which tools may be called, in the Responses format.

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
    match choice {
        ToolChoice::Auto => {}
        ToolChoice::None if tools.json().is_empty() => {}
        ToolChoice::None => string(body.key("tool_choice"), "none"),
        ToolChoice::Required => string(body.key("tool_choice"), "required"),
        ToolChoice::Tool(name) => one(body.key("tool_choice"), name, tools)?,
        ToolChoice::Allowed { names, required } => {
            let mut member = Writer::begin(body.key("tool_choice"));
            string(member.key("type"), "allowed_tools");
            string(
                member.key("mode"),
                if *required { "required" } else { "auto" },
            );
            let list = member.key("tools");
            list.push(b'[');
            for (at, name) in names.iter().enumerate() {
                if at > 0 {
                    list.push(b',');
                }
                one(list, name, tools)?;
            }
            list.push(b']');
            member.end();
        }
    }
    Ok(())
}

/// Writes one tool as a choice refers to it.
fn one(out: &mut Vec<u8>, name: &str, tools: &Declarations) -> Result<(), WireError> {
    let fail = |what: String| inexpressible(Dialect::OpenAiResponses, what);
    let sort = tools.of(name).map(|one| &one.sort);
    let mut member = Writer::begin(out);
    match sort {
        Some(DeclarationKind::Function) => string(member.key("type"), "function"),
        Some(DeclarationKind::Freeform) => string(member.key("type"), "custom"),
        Some(DeclarationKind::Provider(words)) => {
            let kind = words.first().map_or(name, String::as_str);
            string(member.key("type"), kind);
            if let ("mcp", Some(label)) = (kind, words.get(1)) {
                string(member.key("server_label"), label);
            }
            member.end();
            return Ok(());
        }
        Some(DeclarationKind::Namespace) => {
            return Err(fail(format!(
                "a choice of {name:?}, which is in a namespace"
            )));
        }
        None => return Err(fail(format!("a choice of {name:?}, which is not declared"))),
    }
    string(member.key("name"), name);
    member.end();
    Ok(())
}
