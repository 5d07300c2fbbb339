//! Declarations, their strict schemas, and the limits of a request.

use serde_json::value::RawValue;

use crate::declarations::Declarations;
use crate::declared::{Freeform, Function, Grammar, SearchRunner, ToolDeclaration};
use crate::declarer::{Declarer, VersionedTool};
use crate::dialect::Dialect;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn function(name: &str, schema: &str, strict: bool) -> Function {
    Function {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: raw(schema).into(),
        strict,
        deferred: false,
    }
}

fn declared(tools: &[ToolDeclaration]) -> std::sync::Arc<Declarations> {
    let versions: Vec<String> = (0..tools.len()).map(|at| at.to_string()).collect();
    let all = versions.iter().zip(tools);
    let entries: Vec<_> = all
        .map(|(version, tool)| VersionedTool { version, tool })
        .collect();
    Declarer::new(Dialect::Anthropic).declare(&entries)
}

fn json(tools: &[ToolDeclaration]) -> String {
    String::from_utf8(declared(tools).json().to_vec()).unwrap()
}

const ANY: &str = r#"{"type":"object"}"#;

#[test]
fn tools_of_every_kind_are_declared() {
    let grammar = Some(Grammar {
        syntax: "lark".to_owned(),
        definition: "start: \"a\"".to_owned(),
    });
    let patch = |grammar| {
        ToolDeclaration::Freeform(Freeform {
            name: "patch".to_owned(),
            description: "Patches.".to_owned(),
            grammar,
        })
    };
    let deferred = Function {
        deferred: true,
        ..function("late", ANY, false)
    };
    let bash = r#"{"type":"bash_20250124","name":"bash"}"#;
    let rows = [
        (
            ToolDeclaration::Function(function("crm.find", ANY, false)),
            r#"[{"name":"crm__find","description":"Does crm.find.","input_schema":{"type":"object"}}]"#,
        ),
        (
            ToolDeclaration::Function(deferred),
            r#"[{"name":"late","description":"Does late.","input_schema":{"type":"object"},"defer_loading":true}]"#,
        ),
        (
            patch(None),
            r#"[{"name":"patch","description":"Patches.","input_schema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}]"#,
        ),
        (
            patch(grammar),
            r#"[{"name":"patch","description":"Patches.","input_schema":{"type":"object","properties":{"input":{"type":"string","description":"A text of this lark grammar:\nstart: \"a\""}},"required":["input"],"additionalProperties":false}}]"#,
        ),
        (
            ToolDeclaration::Namespace {
                name: "crm".to_owned(),
                description: String::new(),
                tools: vec![function("a", ANY, false), function("b", ANY, false)],
            },
            r#"[{"name":"crm__a","description":"Does a.","input_schema":{"type":"object"}},{"name":"crm__b","description":"Does b.","input_schema":{"type":"object"}}]"#,
        ),
        (
            ToolDeclaration::Provider {
                dialect: Dialect::Anthropic,
                spec: raw(bash),
            },
            r#"[{"type":"bash_20250124","name":"bash"}]"#,
        ),
        (
            ToolDeclaration::ToolSearch(SearchRunner::Provider),
            r#"[{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}]"#,
        ),
    ];
    for (tool, expect) in rows {
        assert_eq!(json(&[tool]), expect);
    }
}

#[test]
fn a_tool_of_another_dialect_is_left_out_and_reported() {
    let shell = ToolDeclaration::Provider {
        dialect: Dialect::OpenAiResponses,
        spec: raw(r#"{"type":"shell"}"#),
    };
    let tools = declared(&[shell]);
    assert_eq!(tools.json(), b"");
    assert_eq!(tools.lost[0].tool, "shell");
}

#[test]
fn the_hosts_search_is_declared_once() {
    let search = ToolDeclaration::ToolSearch(SearchRunner::Host);
    assert!(json(std::slice::from_ref(&search)).starts_with(r#"[{"name":"tool_search","#));
    let own = ToolDeclaration::Function(function("tool_search", ANY, false));
    let both = json(&[own, search]);
    assert_eq!(both.matches("tool_search\"").count(), 1, "{both}");
}

#[test]
fn strict_schemas_are_brought_into_the_subset() {
    let rows = [
        (
            ANY,
            r#"{"type":"object","properties":{},"additionalProperties":false}"#,
            &[][..],
        ),
        (
            r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1,"description":"A number."}},"required":["n"]}"#,
            r#"{"type":"object","properties":{"n":{"type":"integer","description":"A number.\n\n{minimum: 1}"}},"required":["n"],"additionalProperties":false}"#,
            &["/properties/n/minimum"],
        ),
        (
            r#"{"type":"object","properties":{"a":{"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"odd"}]}},"additionalProperties":true}"#,
            r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"string","format":"date"},{"type":"string","description":"{format: \"odd\"}"}]}},"additionalProperties":false}"#,
            &["/properties/a/oneOf/1/format"],
        ),
        (
            r##"{"type":"object","properties":{"a":{"$ref":"#/definitions/P","title":"T"}},"definitions":{"P":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}}}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"array","items":{"type":"string"},"minItems":1,"description":"{maxItems: 3}"}},"additionalProperties":false}"##,
            &["/properties/a/title", "/definitions/P/maxItems"],
        ),
        (
            r#"{"type":"object","properties":{"p":{"type":"string","pattern":"^\\d+$"},"q":{"type":"string","pattern":"\\bx"}}}"#,
            r#"{"type":"object","properties":{"p":{"type":"string","pattern":"^\\d+$"},"q":{"type":"string","description":"{pattern: \"\\\\bx\"}"}},"additionalProperties":false}"#,
            &["/properties/q/pattern"],
        ),
    ];
    for (schema, expect, moved) in rows {
        let tools = declared(&[ToolDeclaration::Function(function("t", schema, true))]);
        let json = String::from_utf8(tools.json().to_vec()).unwrap();
        assert_eq!(
            json,
            format!(
                r#"[{{"name":"t","description":"Does t.","input_schema":{expect},"strict":true}}]"#
            )
        );
        let lost: Vec<&str> = tools.lost.iter().map(|lost| lost.at.as_str()).collect();
        assert_eq!(lost, moved, "{schema}");
    }
}

#[test]
fn a_schema_outside_of_the_subset_is_declared_without_strict_and_the_reason_is_reported() {
    let deep = format!(
        "{}{}{}",
        r#"{"type":"array","items":"#.repeat(40),
        r#"{"type":"string"}"#,
        "}".repeat(40)
    );
    let deep = format!(r#"{{"type":"object","properties":{{"a":{deep}}}}}"#);
    let rows = [
        (
            r#"{"type":"object","properties":{"m":{"type":"object"}}}"#,
            "/properties/m",
            "names are free",
        ),
        (
            r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}"#,
            "/properties/m",
            "names are free",
        ),
        (
            r#"{"type":"object","properties":{"m":true}}"#,
            "/properties/m",
            "not an object",
        ),
        (
            r#"{"type":"object","properties":{"m":{}}}"#,
            "/properties/m",
            "no `type`",
        ),
        (
            r##"{"type":"object","properties":{"m":{"$ref":"#/properties/m"}}}"##,
            "/properties/m/$ref",
            "only `#/$defs/NAME`",
        ),
        (
            r##"{"type":"object","properties":{"m":{"$ref":"#/$defs/A"}},"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/B"}]},"B":{"type":"array","items":{"$ref":"#/$defs/A"}}}}"##,
            "/$defs/A",
            "itself",
        ),
        (deep.as_str(), "", "nests deeper"),
    ];
    for (schema, at, why) in rows {
        let tools = declared(&[ToolDeclaration::Function(function("t", schema, true))]);
        let json = String::from_utf8(tools.json().to_vec()).unwrap();
        assert_eq!(
            json,
            format!(r#"[{{"name":"t","description":"Does t.","input_schema":{schema}}}]"#)
        );
        let lost = &tools.lost[0];
        assert!(
            lost.at.starts_with(at) && lost.what.contains(why),
            "{lost:?}"
        );
    }
}

#[test]
fn tools_over_a_limit_of_the_request_are_declared_without_strict() {
    let optional =
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}"#;
    let union =
        r#"{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}"#;
    for (schema, most, limit) in [
        (ANY, 20, "20 strict tools"),
        (optional, 12, "24 optional"),
        (union, 16, "16 arguments"),
    ] {
        let tools: Vec<_> = (0..25)
            .map(|at| ToolDeclaration::Function(function(&format!("t{at}"), schema, true)))
            .collect();
        let tools = declared(&tools);
        let json = String::from_utf8(tools.json().to_vec()).unwrap();
        assert_eq!(json.matches(r#""strict":true"#).count(), most, "{schema}");
        assert_eq!(json.matches(r#""name":"t"#).count(), 25);
        assert_eq!(tools.lost.len(), 25 - most);
        assert!(
            tools.lost.iter().all(|lost| lost.what.contains(limit)),
            "{:?}",
            tools.lost
        );
        assert_eq!(tools.lost[0].tool, format!("t{most}"));
    }
}
