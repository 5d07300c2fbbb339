//! Declarations of tools, in the Chat format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::declared::{Freeform, Function, ToolDeclaration};
use crate::dialect::Dialect;
use crate::fragment::DialectFragment;
use crate::loose::compact;
use crate::names::ToolNames;
use crate::strict::openai::{Parameters, left_out};

/// Returns a tool's declaration in this dialect. A namespace is declared as its tools, each with both names; what the dialect cannot
/// express is reported as lost.
pub(crate) fn fragment(tool: &ToolDeclaration, names: &ToolNames) -> Option<DialectFragment> {
    let mut json = Vec::new();
    let mut lost = Vec::new();
    match tool {
        ToolDeclaration::Function(one) => function(&mut json, one, &one.name, names, &mut lost),
        ToolDeclaration::Freeform(one) => freeform(&mut json, one, names.wire(&one.name)?),
        ToolDeclaration::Namespace { name, tools, .. } => {
            for one in tools {
                if !json.is_empty() {
                    json.push(b',');
                }
                let whole = format!("{name}.{}", one.name);
                function(&mut json, one, &whole, names, &mut lost);
            }
        }
        ToolDeclaration::Provider {
            dialect: Dialect::OpenAiChat,
            spec,
        } => json.extend_from_slice(compact(spec.get()).as_bytes()),
        ToolDeclaration::Provider { dialect, spec } => lost.push(left_out(spec, *dialect)),
        ToolDeclaration::ToolSearch(_) => lost.push(crate::strict::DeclarationLoss {
            tool: "tool_search".to_owned(),
            at: String::new(),
            what: "the dialect has no search; deferred tools are declared like the others"
                .to_owned(),
        }),
    }
    let is_function = matches!(
        tool,
        ToolDeclaration::Function(_) | ToolDeclaration::Namespace { .. }
    );
    Some(DialectFragment {
        json,
        is_function,
        lost,
        ..DialectFragment::default()
    })
}

fn function(
    out: &mut Vec<u8>,
    one: &Function,
    name: &str,
    names: &ToolNames,
    lost: &mut Vec<crate::strict::DeclarationLoss>,
) {
    let parameters = Parameters::of(one, name);
    let mut tool = Writer::begin(out);
    tool.key("type").extend_from_slice(b"\"function\"");
    let mut member = Writer::begin(tool.key("function"));
    string(member.key("name"), names.wire(name).unwrap_or_default());
    if !one.description.is_empty() {
        string(member.key("description"), &one.description);
    }
    member
        .key("parameters")
        .extend_from_slice(parameters.json.as_bytes());
    if parameters.is_strict {
        member.key("strict").extend_from_slice(b"true");
    }
    member.end();
    tool.end();
    lost.extend(parameters.lost);
}

fn freeform(out: &mut Vec<u8>, one: &Freeform, wire: &str) {
    let mut tool = Writer::begin(out);
    tool.key("type").extend_from_slice(b"\"custom\"");
    let mut member = Writer::begin(tool.key("custom"));
    string(member.key("name"), wire);
    if !one.description.is_empty() {
        string(member.key("description"), &one.description);
    }
    if let Some(grammar) = &one.grammar {
        let mut format = Writer::begin(member.key("format"));
        format.key("type").extend_from_slice(b"\"grammar\"");
        let mut inner = Writer::begin(format.key("grammar"));
        string(inner.key("syntax"), &grammar.syntax);
        string(inner.key("definition"), &grammar.definition);
        inner.end();
        format.end();
    }
    member.end();
    tool.end();
}
