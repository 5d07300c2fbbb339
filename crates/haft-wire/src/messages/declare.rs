//! Declarations of tools.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::declared::{Freeform, Function, SearchRunner, ToolDeclaration};
use crate::dialect::Dialect;
use crate::foreign::{input, lost, named};
use crate::fragment::DialectFragment;
use crate::names::ToolNames;
use crate::strict::anthropic::compile;
use crate::strict::budget::StrictCost;

/// The name of a host's search if it declares no tool with this name itself.
const SEARCH: &str = "tool_search";

/// Returns a tool's declaration in this dialect. A tool of another dialect has none: it is not written, and reported as lost.
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
            dialect: Dialect::Anthropic,
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
        ToolDeclaration::ToolSearch(SearchRunner::Provider) => DialectFragment {
            json: br#"{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#
                .to_vec(),
            ..DialectFragment::default()
        },
        ToolDeclaration::ToolSearch(SearchRunner::Host) => search(names),
    })
}

/// Declares functions, separated by commas. They are all strict, or none is.
fn functions(tools: &[(String, &Function)], names: &ToolNames) -> DialectFragment {
    let mut fragment = DialectFragment {
        is_function: true,
        ..DialectFragment::default()
    };
    let mut strict = StrictCost::default();
    for (name, tool) in tools {
        // Every declared tool has a name on the wire.
        let Some(wire) = names.wire(name) else {
            continue;
        };
        let compiled = tool.strict.then(|| compile(&tool.parameters));
        let plain = tool.parameters.get().as_bytes();
        separate(&mut strict.plain);
        one(&mut strict.plain, wire, tool, plain, false);
        separate(&mut fragment.json);
        match compiled {
            Some(Ok(compiled)) => {
                strict.tools += 1;
                strict.optional += compiled.optional;
                strict.unions += compiled.unions;
                let moved = compiled.moved.iter();
                fragment.lost.extend(
                    moved.map(|at| lost(name, at, "not enforced: only the description has it")),
                );
                one(&mut fragment.json, wire, tool, &compiled.json, true);
            }
            Some(Err(refusal)) => {
                let what = format!("`strict`: the schema {}", refusal.why);
                fragment.lost.push(lost(name, &refusal.at, &what));
                one(&mut fragment.json, wire, tool, plain, false);
            }
            None => one(&mut fragment.json, wire, tool, plain, false),
        }
    }
    fragment.strict = (strict.tools > 0).then_some(strict);
    fragment
}

fn separate(json: &mut Vec<u8>) {
    if !json.is_empty() {
        json.push(b',');
    }
}

fn one(out: &mut Vec<u8>, wire: &str, tool: &Function, schema: &[u8], strict: bool) {
    let mut object = Writer::begin(out);
    string(object.key("name"), wire);
    if !tool.description.is_empty() {
        string(object.key("description"), &tool.description);
    }
    object.key("input_schema").extend_from_slice(schema);
    if strict {
        object.key("strict").extend_from_slice(b"true");
    }
    if tool.deferred {
        object.key("defer_loading").extend_from_slice(b"true");
    }
    object.end();
}

/// Declares a function with the single argument `input`.
fn freeform(tool: &Freeform, names: &ToolNames) -> Option<DialectFragment> {
    let mut fragment = DialectFragment {
        is_function: true,
        ..DialectFragment::default()
    };
    let mut object = Writer::begin(&mut fragment.json);
    string(object.key("name"), names.wire(&tool.name)?);
    if !tool.description.is_empty() {
        string(object.key("description"), &tool.description);
    }
    input(tool.grammar.as_ref(), object.key("input_schema"));
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

/// Declares the host's search; it is a tool of its own, which is not declared twice.
fn search(names: &ToolNames) -> DialectFragment {
    if names.canonical(SEARCH).is_some() {
        return DialectFragment::default();
    }
    let json = br#"{"name":"tool_search","description":"Find further tools by what they do. Its result makes the tools that it found callable.","input_schema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool shall do, in a few words."}},"required":["query"]}}"#;
    DialectFragment {
        json: json.to_vec(),
        is_function: true,
        ..DialectFragment::default()
    }
}
