//! Declarations in the Chat and Responses formats.

use std::sync::Arc;

use haft_wire::declared::{Freeform, Function, Grammar, SearchRunner};
use haft_wire::declarer::VersionedTool;
use haft_wire::{Declarations, Declarer, Dialect, ToolDeclaration};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

pub(crate) fn function(name: &str, strict: bool) -> Function {
    Function {
        name: name.to_owned(),
        description: "does it".to_owned(),
        parameters: Arc::from(raw(
            &json!({"type": "object", "properties": {"p": {"type": "string"}}}),
        )),
        strict,
        deferred: false,
    }
}

/// Declares these tools.
pub(crate) fn declare(dialect: Dialect, tools: &[ToolDeclaration]) -> Arc<Declarations> {
    let versions: Vec<String> = (0..tools.len()).map(|at| at.to_string()).collect();
    let entries: Vec<VersionedTool<'_>> = tools
        .iter()
        .zip(&versions)
        .map(|(tool, version)| VersionedTool { version, tool })
        .collect();
    Declarer::new(dialect).declare(&entries)
}

fn json_of(declarations: &Declarations) -> Value {
    serde_json::from_slice(declarations.json()).unwrap()
}

fn tools() -> Vec<ToolDeclaration> {
    let grammar = Grammar {
        syntax: "lark".to_owned(),
        definition: "start: \"a\"".to_owned(),
    };
    let freeform = |name: &str, grammar| {
        ToolDeclaration::Freeform(Freeform {
            name: name.to_owned(),
            description: String::new(),
            grammar,
        })
    };
    vec![
        ToolDeclaration::Function(function("docs.read", true)),
        ToolDeclaration::Function(Function {
            deferred: true,
            ..function("write", false)
        }),
        freeform("sql", Some(grammar)),
        freeform("note", None),
        ToolDeclaration::Namespace {
            name: "crm".to_owned(),
            description: "customers".to_owned(),
            tools: vec![function("find", false), function("add", false)],
        },
        ToolDeclaration::Provider {
            dialect: Dialect::OpenAiResponses,
            spec: raw(&json!({"type": "apply_patch"})),
        },
        ToolDeclaration::Provider {
            dialect: Dialect::OpenAiChat,
            spec: raw(&json!({"type": "openrouter:web_search"})),
        },
        ToolDeclaration::Provider {
            dialect: Dialect::Anthropic,
            spec: raw(&json!({"type": "bash_20250124", "name": "bash"})),
        },
        ToolDeclaration::ToolSearch(SearchRunner::Provider),
    ]
}

const PARAMETERS: &str = r#"{"type": "object", "properties": {"p": {"type": "string"}}}"#;

fn parameters() -> Value {
    serde_json::from_str(PARAMETERS).unwrap()
}

fn strict() -> Value {
    json!({"type": "object", "properties": {"p": {"type": ["string", "null"]}}, "required": ["p"], "additionalProperties": false})
}

#[test]
fn each_sort_of_tool_is_declared_in_the_words_of_chat() {
    let declared = declare(Dialect::OpenAiChat, &tools());
    let function = |name: &str| json!({"type": "function", "function": {"name": name, "description": "does it", "parameters": parameters()}});
    let expect = json!([
        {"type": "function", "function": {"name": "docs__read", "description": "does it", "parameters": strict(), "strict": true}},
        function("write"),
        {"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: \"a\""}}}},
        {"type": "custom", "custom": {"name": "note"}},
        function("crm__find"),
        function("crm__add"),
        {"type": "openrouter:web_search"},
    ]);
    assert_eq!(json_of(&declared), expect);
    let lost: Vec<_> = declared
        .lost
        .iter()
        .map(|lost| (lost.tool.as_str(), lost.what.as_str()))
        .collect();
    let expect = [
        (
            "apply_patch",
            "left out: it is a declaration of openai-responses",
        ),
        ("bash", "left out: it is a declaration of anthropic"),
        (
            "tool_search",
            "the dialect has no search; deferred tools are declared like the others",
        ),
    ];
    assert_eq!(lost, expect);
    assert!(
        !declared.json().contains(&b'\n') && !declared.json().windows(2).any(|two| two == b", ")
    );
}

#[test]
fn each_sort_of_tool_is_declared_in_the_words_of_responses() {
    let declared = declare(Dialect::OpenAiResponses, &tools());
    let function = |name: &str| json!({"type": "function", "name": name, "description": "does it", "parameters": parameters(), "strict": false});
    let mut deferred = function("write");
    deferred["defer_loading"] = json!(true);
    let expect = json!([
        {"type": "function", "name": "docs__read", "description": "does it", "parameters": strict(), "strict": true},
        deferred,
        {"type": "custom", "name": "sql", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}},
        {"type": "custom", "name": "note"},
        {"type": "namespace", "name": "crm", "description": "customers", "tools": [function("find"), function("add")]},
        {"type": "apply_patch"},
        {"type": "tool_search"},
    ]);
    assert_eq!(json_of(&declared), expect);
    let lost: Vec<&str> = declared
        .lost
        .iter()
        .map(|lost| lost.tool.as_str())
        .collect();
    assert_eq!(lost, ["openrouter:web_search", "bash"]);
    let host = declare(
        Dialect::OpenAiResponses,
        &[ToolDeclaration::ToolSearch(SearchRunner::Host)],
    );
    let host = &json_of(&host)[0];
    assert_eq!(
        (
            &host["type"],
            &host["execution"],
            &host["parameters"]["type"]
        ),
        (&json!("tool_search"), &json!("client"), &json!("object"))
    );
}

#[test]
fn a_namespaced_call_finds_its_tool_even_where_names_are_cut() {
    let long = "x".repeat(70);
    let tools = [
        ToolDeclaration::Function(function("crm__find", false)),
        ToolDeclaration::Namespace {
            name: "crm".to_owned(),
            description: String::new(),
            tools: vec![function("find", false), function(&long, false)],
        },
    ];
    let declared = declare(Dialect::OpenAiResponses, &tools);
    let json = json_of(&declared);
    for (at, own) in [(0, "crm.find".to_owned()), (1, format!("crm.{long}"))] {
        let name = json[1]["tools"][at]["name"].as_str().unwrap();
        assert!(name.len() <= 64, "{name}");
        assert_eq!(declared.names.called(Some("crm"), name), Some(own.as_str()));
    }
    assert_eq!(declared.names.called(None, "crm__find"), Some("crm__find"));
}

#[test]
fn one_tool_that_changes_is_written_anew_and_the_same_tools_are_the_same_bytes() {
    let tools: Vec<ToolDeclaration> = (0..20)
        .map(|at| ToolDeclaration::Function(function(&format!("t{at}"), true)))
        .collect();
    let changed = ToolDeclaration::Function(function("t7", false));
    let versions: Vec<String> = (0..20).map(|at| format!("v{at}")).collect();
    let mut entries: Vec<VersionedTool<'_>> = tools
        .iter()
        .zip(&versions)
        .map(|(tool, version)| VersionedTool { version, tool })
        .collect();
    for dialect in [Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        let mut declarer = Declarer::new(dialect);
        let first = declarer.declare(&entries);
        assert!(
            Arc::ptr_eq(&first, &declarer.declare(&entries))
                && Arc::ptr_eq(&first, &declarer.last())
        );
        let kept = entries[7];
        entries[7] = VersionedTool {
            version: "other",
            tool: &changed,
        };
        let second = declarer.declare(&entries);
        assert!(Arc::ptr_eq(&first.names, &second.names));
        assert_eq!(
            second.json(),
            Declarer::new(dialect).declare(&entries).json()
        );
        assert_ne!(first.json(), second.json());
        entries[7] = kept;
        // One is removed, the others move up: the result is what a new declarer writes.
        let fewer: Vec<VersionedTool<'_>> = entries
            .iter()
            .copied()
            .filter(|entry| entry.version != "v3")
            .collect();
        assert_eq!(
            declarer.declare(&fewer).json(),
            Declarer::new(dialect).declare(&fewer).json()
        );
        assert_eq!(declarer.declare(&entries).json(), first.json());
    }
    assert!(
        Declarer::new(Dialect::OpenAiChat)
            .declare(&[])
            .json()
            .is_empty()
    );
}
