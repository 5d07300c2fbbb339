//! Declarations of tools, in the Responses format.

use haft_json::escape::string;
use haft_json::members::Writer;

use crate::declared::{Freeform, Function, SearchRunner, ToolDeclaration};
use crate::dialect::Dialect;
use crate::fragment::DialectFragment;
use crate::loose::compact;
use crate::names::ToolNames;
use crate::strict::DeclarationLoss;
use crate::strict::openai::{Parameters, left_out};

/// The declaration of a search that the host runs.
const SEARCH: &str = r#"{"type":"tool_search","execution":"client","description":"Further tools are there that you do not see yet. Where you need one, search here by what it should do; those that fit become available.","parameters":{"type":"object","properties":{"query":{"type":"string","description":"what the tool should do, in a few words"},"limit":{"type":"integer","description":"the most tools to find"}},"required":["query"],"additionalProperties":false}}"#;

/// Returns a tool's declaration in this dialect; what it cannot express is reported as lost.
pub(crate) fn fragment(tool: &ToolDeclaration, names: &ToolNames) -> Option<DialectFragment> {
    let mut json = Vec::new();
    let mut lost = Vec::new();
    match tool {
        ToolDeclaration::Function(one) => {
            let name = names.wire(&one.name)?;
            function(
                &mut json,
                one,
                &FunctionNames {
                    own: &one.name,
                    wire: name,
                },
                &mut lost,
            );
        }
        ToolDeclaration::Freeform(one) => freeform(&mut json, one, names.wire(&one.name)?),
        ToolDeclaration::Namespace {
            name,
            description,
            tools,
        } => {
            let mut member = Writer::begin(&mut json);
            string(member.key("type"), "namespace");
            let wire = ToolNames::new(Dialect::OpenAiResponses, [name.as_str()]);
            string(member.key("name"), wire.wire(name).unwrap_or_default());
            string(member.key("description"), description);
            let list = member.key("tools");
            list.push(b'[');
            for (at, one) in tools.iter().enumerate() {
                if at > 0 {
                    list.push(b',');
                }
                within(list, one, name, names, &mut lost);
            }
            list.push(b']');
            member.end();
        }
        ToolDeclaration::Provider {
            dialect: Dialect::OpenAiResponses,
            spec,
        } => json.extend_from_slice(compact(spec.get()).as_bytes()),
        ToolDeclaration::Provider { dialect, spec } => lost.push(left_out(spec, *dialect)),
        ToolDeclaration::ToolSearch(SearchRunner::Provider) => {
            json.extend_from_slice(br#"{"type":"tool_search"}"#);
        }
        ToolDeclaration::ToolSearch(SearchRunner::Host) => {
            json.extend_from_slice(SEARCH.as_bytes());
        }
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

/// Declares a function in a namespace. Its name there is such that namespace and name identify it: see [`Names::called`].
fn within(
    out: &mut Vec<u8>,
    one: &Function,
    namespace: &str,
    names: &ToolNames,
    lost: &mut Vec<DeclarationLoss>,
) {
    let own = format!("{namespace}.{}", one.name);
    let whole = names.wire(&own).unwrap_or_default();
    let outer = ToolNames::new(Dialect::OpenAiResponses, [namespace]);
    let prefix = format!("{}__", outer.wire(namespace).unwrap_or_default());
    let inner = whole
        .strip_prefix(&prefix)
        .filter(|inner| !inner.is_empty());
    let named = FunctionNames {
        own: &own,
        wire: inner.unwrap_or(whole),
    };
    function(out, one, &named, lost);
}

/// A function's names: as the host knows it, and on the wire.
struct FunctionNames<'n> {
    own: &'n str,
    wire: &'n str,
}

fn function(
    out: &mut Vec<u8>,
    one: &Function,
    named: &FunctionNames<'_>,
    lost: &mut Vec<DeclarationLoss>,
) {
    let parameters = Parameters::of(one, named.own);
    let mut member = Writer::begin(out);
    string(member.key("type"), "function");
    string(member.key("name"), named.wire);
    if !one.description.is_empty() {
        string(member.key("description"), &one.description);
    }
    member
        .key("parameters")
        .extend_from_slice(parameters.json.as_bytes());
    // Without this member, a function counts as strict.
    let strict: &[u8] = if parameters.is_strict {
        b"true"
    } else {
        b"false"
    };
    member.key("strict").extend_from_slice(strict);
    if one.deferred {
        member.key("defer_loading").extend_from_slice(b"true");
    }
    member.end();
    lost.extend(parameters.lost);
}

fn freeform(out: &mut Vec<u8>, one: &Freeform, wire: &str) {
    let mut member = Writer::begin(out);
    string(member.key("type"), "custom");
    string(member.key("name"), wire);
    if !one.description.is_empty() {
        string(member.key("description"), &one.description);
    }
    if let Some(grammar) = &one.grammar {
        let mut format = Writer::begin(member.key("format"));
        string(format.key("type"), "grammar");
        string(format.key("syntax"), &grammar.syntax);
        string(format.key("definition"), &grammar.definition);
        format.end();
    }
    member.end();
}
