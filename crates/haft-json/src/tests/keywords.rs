//! Each keyword: instances that pass and fail in both validators, and how failures are worded.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cache::SchemaCache;
use crate::schema::{MAX_VIOLATIONS, Schema, SchemaError};

#[track_caller]
fn check(schema: &Value, good: &[&str], bad: &[&str]) {
    let compiled = Schema::compile(schema).unwrap();
    assert!(compiled.is_single_pass(), "{schema}");
    for (text, expect) in good
        .iter()
        .map(|t| (t, true))
        .chain(bad.iter().map(|t| (t, false)))
    {
        let (single, slow) = compiled.verdicts(text);
        assert_eq!(slow, expect, "{text} against {schema}");
        assert!(
            single.is_none_or(|single| single == expect),
            "single pass: {text} against {schema}"
        );
        assert_eq!(compiled.check_value(text).is_ok(), expect, "{text}");
    }
}

#[test]
fn types_enums_and_numbers() {
    check(
        &json!({"type": "integer"}),
        &["1", "1.0", "-0", "1e2", "123456789012345678901234567890"],
        &["1.5", "\"1\"", "null", "true"],
    );
    check(
        &json!({"type": "number"}),
        &["1", "1.5", "-0.0"],
        &["\"1\"", "[]"],
    );
    check(
        &json!({"type": ["string", "null"]}),
        &["null", "\"\""],
        &["0", "{}"],
    );
    check(
        &json!({"enum": ["a", 1, null, true]}),
        &["\"a\"", r#""\u0061""#, "1", "1.0", "null", "true"],
        &["\"b\"", "2", "false", "[]", "{}"],
    );
    check(&json!({"const": "x"}), &["\"x\""], &["\"y\"", "1"]);
    check(
        &json!({"minimum": 1, "maximum": 3}),
        &["1", "3", "2.5", "\"9\""],
        &["0", "4", "3.1", "0.99"],
    );
    check(
        &json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}),
        &["2", "1.5"],
        &["1", "3", "1.0"],
    );
    check(
        &json!({"minimum": 0.5}),
        &["1", "0.5"],
        &["0", "0.4", "-9223372036854775808"],
    );
    check(
        &json!({"multipleOf": 3}),
        &["0", "-3", "9", "9.0", "\"x\""],
        &["1", "1.5", "10"],
    );
}

#[test]
fn strings_arrays_and_objects() {
    check(
        &json!({"minLength": 2, "maxLength": 3}),
        &["\"ab\"", "\"éé\"", "\"😀😀😀\"", r#""\ud83d\ude00a""#],
        &["\"a\"", "\"abcd\"", "\"😀\"", r#""\u0061""#],
    );
    check(
        &json!({"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
        &["[1]", "[1,2]", "{}"],
        &["[]", "[1,2,3]", "[\"1\"]"],
    );
    check(
        &json!({"uniqueItems": true}),
        &["[1,2]", "[\"a\",\"b\"]", "[]", "[1,\"1\"]", "[[1],[2]]"],
        &["[1,1]", "[1,1.0]", r#"["a","\u0061"]"#, "[{},{}]"],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "z"], "additionalProperties": {"type": "integer"}}),
        &[r#"{"a":"x","z":1}"#, r#"{"z":1,"a":"x","q":3}"#],
        &[
            r#"{"a":"x"}"#,
            r#"{"a":"x","z":"no"}"#,
            r#"{"a":1,"z":1}"#,
            r#"{"a":"x","z":1,"z":1}"#,
        ],
    );
    check(
        &json!({"properties": {"a": false, "b": true}, "additionalProperties": false}),
        &["{}", r#"{"b":[{}]}"#],
        &[r#"{"a":1}"#, r#"{"c":1}"#],
    );
    check(
        &json!({"minProperties": 1, "maxProperties": 2}),
        &[r#"{"a":1}"#],
        &["{}", r#"{"a":1,"b":1,"c":1}"#],
    );
}

#[test]
fn choices_and_references() {
    check(
        &json!({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]}),
        &["null", "\"a\""],
        &["\"ab\"", "1"],
    );
    check(
        &json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "additionalProperties": false}}}),
        &["{}", r#"{"kids":[{},{"kids":[]}]}"#],
        &[r#"{"kids":[{"kid":1}]}"#, "[]"],
    );
    check(
        &json!({"oneOf": [{"const": "a", "description": "x"}, {"const": "b"}]}),
        &["\"a\"", "\"b\""],
        &["\"c\"", "null"],
    );
}

#[test]
fn what_is_beyond_the_subset_takes_the_slow_road() {
    for (schema, good, bad) in [
        (json!({"pattern": "^a+$"}), "\"aa\"", "\"ab\""),
        (json!({"pattern": "^(?!b)"}), "\"aa\"", "\"ba\""),
        (json!({"not": {"type": "string"}}), "1", "\"\""),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), "2", "3"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            "1",
            "true",
        ),
        (
            json!({"patternProperties": {"^x": {"type": "integer"}}}),
            r#"{"x":1}"#,
            r#"{"x":"1"}"#,
        ),
        (
            json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
            r#"{"b":1}"#,
            r#"{"a":1}"#,
        ),
        (json!({"enum": [[1], {"a": 1}]}), "[1]", "[2]"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}),
            "[null]",
            "[1]",
        ),
    ] {
        let compiled = Schema::compile(&schema).unwrap();
        assert!(!compiled.is_single_pass(), "{schema}");
        assert!(compiled.check_value(good).is_ok(), "{schema}");
        assert!(compiled.check_value(bad).is_err(), "{schema}");
        assert!(
            compiled.check_value(r#"{"a":1,"a":1}"#).is_err(),
            "strict on this road, too"
        );
    }
}

#[test]
fn schemas_that_cannot_be_used_are_refused() {
    let compile = |schema: Value| Schema::compile(&schema).map(|_| ());
    let remote = "https://example.com/s.json";
    assert_eq!(
        compile(json!({"properties": {"a": {"$ref": remote}}})),
        Err(SchemaError::Remote(remote.into()))
    );
    assert!(matches!(
        compile(json!({"type": "strin"})),
        Err(SchemaError::Invalid(_))
    ));
    assert!(matches!(
        compile(json!({"pattern": "("})),
        Err(SchemaError::Invalid(_))
    ));
    assert!(matches!(
        compile(json!({"$ref": "#/$defs/none"})),
        Err(SchemaError::Invalid(_))
    ));
    assert!(matches!(
        compile(json!({"$schema": "https://example.com/own"})),
        Err(SchemaError::Invalid(_))
    ));
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({"items": deep});
    }
    assert_eq!(compile(deep), Err(SchemaError::TooDeep));
    assert!(matches!(
        compile(json!({"title": "x".repeat(1 << 20)})),
        Err(SchemaError::TooLarge(_))
    ));
}

#[test]
fn every_violation_is_named_in_words() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["path", "mode"], "properties": {
        "path": {"type": "string", "minLength": 1}, "depth": {"type": "integer", "maximum": 9},
        "mode": {"enum": ["a", "b"]}, "edits": {"type": "array", "items": {"type": "object", "properties": {"find": {"type": "string"}}}},
    }});
    let compiled = Schema::compile(&schema).unwrap();
    let check = |text: &str, expect: &[&str]| {
        let got = compiled.admit(text, false).unwrap_err();
        let mut got: Vec<String> = got.iter().map(ToString::to_string).collect();
        got.sort();
        assert_eq!(got, expect, "{text}");
    };
    check(
        "{}",
        &[
            "missing required property \"mode\"",
            "missing required property \"path\"",
        ],
    );
    check(
        r#"{"pth":"x","mode":"c","depth":"five","edits":[{"find":"a"},{"find":1}]}"#,
        &[
            "/depth: \"depth\" must be an integer, got \"five\"",
            "/edits/1/find: \"find\" must be a string, got 1",
            "/mode: \"mode\" must be one of \"a\", \"b\", got \"c\"",
            "missing required property \"path\"",
            "unknown property \"pth\", did you mean \"path\"?",
        ],
    );
    check(
        r#"{"path":"","mode":"a","depth":10,"zzz":1}"#,
        &[
            "/depth: \"depth\" must be at most 9, got 10",
            "/path: \"path\" must have at least 1 characters, got \"\"",
            "unknown property \"zzz\"; known are \"depth\", \"edits\", \"mode\", \"path\"",
        ],
    );
    check(
        r#"{"path":"x","mode":"a","mode":"b"}"#,
        &["/mode: malformed JSON: duplicate key at byte 23"],
    );
    check(
        "[]",
        &["malformed JSON: expected an object at the top level at byte 0"],
    );
    let many: Vec<String> = (0..200).map(|n| format!("\"u{n}\":1")).collect();
    let many = format!("{{{}}}", many.join(","));
    assert_eq!(
        compiled.admit(&many, false).unwrap_err().len(),
        MAX_VIOLATIONS
    );
    let long = format!(r#"{{"path":1,"mode":"{}"}}"#, "x".repeat(100_000));
    let long = compiled.admit(&long, false).unwrap_err();
    assert!(long.iter().all(|v| v.message.len() < 400));
}

#[test]
fn equal_schemas_share_one_compiled_form() {
    let cache = SchemaCache::new();
    let schema = |n: usize| Arc::new(json!({"type": "object", "maxProperties": n}));
    let first = cache.get(&schema(1)).unwrap();
    assert!(Arc::ptr_eq(&first, &cache.get(&schema(1)).unwrap()));
    assert!(!Arc::ptr_eq(&first, &cache.get(&schema(2)).unwrap()));
    let weak = Arc::downgrade(&first);
    drop(first);
    assert!(weak.upgrade().is_none(), "the cache keeps no schema alive");
    assert!(cache.get(&Arc::new(json!({"type": 1}))).is_err());
}
