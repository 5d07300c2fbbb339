//! What is coerced, to what, and what is never coerced.

use serde_json::{Value, json};

use crate::schema::Schema;

/// Checks the text of property `v` after coercion, with this schema and `value`; `None` if it fails.
#[track_caller]
fn check(schema: &Value, value: &str, expect: Option<&str>) {
    let schema =
        json!({"type": "object", "properties": {"v": schema}, "$defs": {"n": {"type": "integer"}}});
    let compiled = Schema::compile(&schema).unwrap();
    let text = format!("{{ \"v\" : {value} , \"w\":\"5\"}}");
    let got = compiled.admit(&text, true);
    let expect = expect.map(|value| format!("{{ \"v\" : {value} , \"w\":\"5\"}}"));
    assert_eq!(
        got.as_ref().ok().map(|a| a.text.clone().into_owned()),
        expect,
        "{text} as {schema}"
    );
    if let Ok(admitted) = got {
        let changed = admitted.text != text;
        assert_eq!(admitted.coerced, if changed { vec!["/v"] } else { vec![] });
    }
}

#[test]
fn obvious_scalars_are_coerced_and_nothing_else() {
    let integer = json!({"type": "integer"});
    check(&integer, "\"5\"", Some("5"));
    check(&integer, "\"-12\"", Some("-12"));
    check(&integer, r#""\u0035""#, Some("5"));
    check(&integer, "5", Some("5"));
    for no in [
        "\"05\"",
        "\"5.5\"",
        "\" 5\"",
        "\"\"",
        "\"five\"",
        "\"1e3\"",
        "\"-0\"",
        "\"NaN\"",
        "\"99999999999999999999\"",
        "true",
        "\"null\"",
        "null",
    ] {
        check(&integer, no, None);
    }
    let number = json!({"type": "number"});
    check(&number, "\"1.5\"", Some("1.5"));
    check(&number, "\"7\"", Some("7"));
    check(&number, "\"1e400\"", None);
    check(&number, "\"0.12345678901234567890\"", None);
    let boolean = json!({"type": "boolean"});
    check(&boolean, "\"true\"", Some("true"));
    check(&boolean, "\"false\"", Some("false"));
    for no in ["\"True\"", "\"yes\"", "1", "\"1\""] {
        check(&boolean, no, None);
    }
    let string = json!({"type": "string"});
    check(&string, "5", Some("\"5\""));
    check(&string, "1.50", Some("\"1.50\""));
    check(&string, "true", Some("\"true\""));
    check(&string, "1e5", None);
    check(&string, "null", None);
    check(&string, "{}", None);
    check(
        &json!({"type": ["integer", "string"]}),
        "\"5\"",
        Some("\"5\""),
    );
    check(&json!({}), "\"5\"", Some("\"5\""));
    check(
        &json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        "\"5\"",
        Some("5"),
    );
    check(
        &json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        "\"null\"",
        None,
    );
    check(&json!({"$ref": "#/$defs/n"}), "\"5\"", Some("5"));
    check(&json!({"enum": [1, 2]}), "\"2\"", Some("2"));
    check(&json!({"enum": [1, 2]}), "\"3\"", None);
}

#[test]
fn json_in_a_string_is_taken_only_where_exactly_that_is_wanted() {
    let array = json!({"type": "array", "items": {"type": "integer"}});
    check(&array, r#""[1,2]""#, Some("[1,2]"));
    check(&array, r#""{}""#, None);
    check(&array, r#""[1,1""#, None);
    check(
        &json!({"type": "object"}),
        r#""{\"a\":\"b\"}""#,
        Some(r#"{"a":"b"}"#),
    );
    check(&json!({"type": "object"}), r#""{\"a\":1,\"a\":2}""#, None);
    check(&json!({"type": ["array", "object"]}), r#""[]""#, None);
}

#[test]
fn nested_places_are_coerced_with_their_paths() {
    let schema = json!({"type": "object", "properties": {"list": {"type": "array", "items": {"type": "object",
        "properties": {"a/b": {"type": "integer"}}}}, "map": {"type": "object", "additionalProperties": {"type": "boolean"}}}});
    let compiled = Schema::compile(&schema).unwrap();
    let text = r#"{"list":[{"a/b":1},{"a/b":"2"}],"map":{"x":"true","y":false}}"#;
    let admitted = compiled.admit(text, true).unwrap();
    assert_eq!(
        admitted.text,
        r#"{"list":[{"a/b":1},{"a/b":2}],"map":{"x":true,"y":false}}"#
    );
    assert_eq!(admitted.coerced, ["/list/1/a~1b", "/map/x"]);
    assert!(compiled.admit(text, false).is_err(), "only when asked to");
}

#[test]
fn what_the_schema_takes_as_it_is_stays_though_a_branch_of_it_would_have_another_type() {
    let branches = |first: Value, second: Value| {
        let of = |schema: Value| json!({"properties": {"v": schema}, "required": ["v"]});
        json!({"type": "object", "anyOf": [of(first), of(second)]})
    };
    for (schema, text) in [
        (
            branches(json!({"type": "string"}), json!({"type": "integer"})),
            r#"{ "v": 5 }"#,
        ),
        (
            branches(json!({"type": "integer"}), json!({"type": "string"})),
            r#"{ "v": "5" }"#,
        ),
        (
            branches(json!({"const": "true"}), json!({"type": "boolean"})),
            r#"{"v":true}"#,
        ),
    ] {
        let compiled = Schema::compile(&schema).unwrap();
        let admitted = compiled.admit(text, true).unwrap();
        assert_eq!(admitted.text, text, "{schema}");
        assert!(admitted.coerced.is_empty(), "{schema}");
    }
}
