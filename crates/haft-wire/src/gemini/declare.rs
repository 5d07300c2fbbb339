//! Declarations of tools.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::declared::{Declared, Fragment, Freeform, Function};
use crate::dialect::Dialect;
use crate::foreign::{input, lost, named};
use crate::names::Names;
use crate::strict::budget::Strict;

/// Returns a tool's declaration in this dialect. What it cannot express is not written, and reported as lost.
///
/// `strict` applies to the whole request here: the provider enforces all schemas or none (`VALIDATED`).
pub(crate) fn fragment(tool: &Declared, names: &Names) -> Option<Fragment> {
    Some(match tool {
        Declared::Function(tool) => functions(&[(tool.name.clone(), tool)], names),
        Declared::Namespace {
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
        Declared::Freeform(tool) => freeform(tool, names)?,
        Declared::Provider {
            dialect: Dialect::Gemini,
            spec,
        } => Fragment {
            json: spec.get().as_bytes().to_vec(),
            ..Fragment::default()
        },
        Declared::Provider { dialect, spec } => Fragment {
            lost: vec![lost(
                &named(spec),
                "",
                &format!("left out: it is a declaration of {dialect}"),
            )],
            ..Fragment::default()
        },
        Declared::ToolSearch(_) => Fragment {
            lost: vec![lost(
                "tool_search",
                "",
                "left out: this dialect has no search, all tools are declared at once",
            )],
            ..Fragment::default()
        },
    })
}

fn functions(tools: &[(String, &Function)], names: &Names) -> Fragment {
    let mut fragment = Fragment {
        is_function: true,
        ..Fragment::default()
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
            fragment.strict.get_or_insert_with(Strict::default).tools += 1;
        }
    }
    fragment
}

/// Declares a function with the single argument `input`.
fn freeform(tool: &Freeform, names: &Names) -> Option<Fragment> {
    let mut fragment = Fragment {
        is_function: true,
        ..Fragment::default()
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
