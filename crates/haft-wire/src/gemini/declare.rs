//! Declarations of tools.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::declared::{Freeform, Function, ToolDeclaration};
use crate::dialect::Dialect;
use crate::foreign::{input, lost, named};
use crate::fragment::DialectFragment;
use crate::names::ToolNames;
use crate::strict::budget::StrictCost;

/// Returns a tool's declaration in this dialect. What it cannot express is not written, and reported as lost.
///
/// `strict` applies to the whole request here: the provider enforces all schemas or none (`VALIDATED`).
pub(crate) fn fragment(tool: &ToolDeclaration, names: &ToolNames) -> Option<DialectFragment> {
    Some(match tool {
        ToolDeclaration::Function(tool) => functions(&[(tool.name.clone(), tool)], names),
        ToolDeclaration::Namespace {
            name,
            tools,
            description,
        } => {
            let all: Vec<_> = tools
                .iter()
                .map(|tool| (format!("{name}.{}", tool.name), tool))
                .collect();
            let mut fragment = functions(&all, names);
            if !description.is_empty() {
                fragment.lost.push(lost(
                    name,
                    "",
                    "the namespace's description: this dialect has no namespaces",
                ));
            }
            fragment
        }
        ToolDeclaration::Freeform(tool) => freeform(tool, names)?,
        ToolDeclaration::Provider {
            dialect: Dialect::Gemini,
            spec,
        } => DialectFragment {
            json: spec.get().as_bytes().to_vec(),
            ..DialectFragment::default()
        },
        ToolDeclaration::Provider { dialect, spec } => DialectFragment {
            lost: vec![lost(
                &named(spec),
                "",
                &format!("left out: it is a declaration of {dialect}"),
            )],
            ..DialectFragment::default()
        },
        ToolDeclaration::ToolSearch(_) => DialectFragment {
            lost: vec![lost(
                "tool_search",
                "",
                "left out: this dialect has no search, all tools are declared at once",
            )],
            ..DialectFragment::default()
        },
    })
}

fn functions(tools: &[(String, &Function)], names: &ToolNames) -> DialectFragment {
    let mut fragment = DialectFragment {
        is_function: true,
        ..DialectFragment::default()
    };
    for (name, tool) in tools {
        // Every declared tool has a name on the wire.
        let Some(wire) = names.wire(name) else {
            continue;
        };
        if !fragment.json.is_empty() {
            fragment.json.push(b',');
        }
        let mut object = Writer::begin(&mut fragment.json);
        string(object.key("name"), wire);
        string(object.key("description"), &tool.description);
        object
            .key("parametersJsonSchema")
            .extend_from_slice(tool.parameters.get().as_bytes());
        object.end();
        if tool.strict {
            fragment
                .strict
                .get_or_insert_with(StrictCost::default)
                .tools += 1;
        }
    }
    fragment
}

/// Declares a function with the single argument `input`.
fn freeform(tool: &Freeform, names: &ToolNames) -> Option<DialectFragment> {
    let mut fragment = DialectFragment {
        is_function: true,
        ..DialectFragment::default()
    };
    let mut object = Writer::begin(&mut fragment.json);
    string(object.key("name"), names.wire(&tool.name)?);
    string(object.key("description"), &tool.description);
    input(tool.grammar.as_ref(), object.key("parametersJsonSchema"));
    object.end();
    if tool.grammar.is_some() {
        fragment.lost.push(lost(
            &tool.name,
            "",
            "the grammar: only the description of `input` has it",
        ));
    }
    Some(fragment)
}
