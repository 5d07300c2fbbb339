//! Bound arguments: hidden, refused from callers, filled in.

use serde_json::{Value, json};

use crate::bind::Binding;

fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}, "root": {"type": "string"}, "n": {}}, "required": ["path", "root"]})
}

fn binding(values: Value) -> Binding {
    let Value::Object(values) = values else {
        panic!()
    };
    Binding::new(&schema(), values).unwrap()
}

#[test]
fn bound_properties_are_not_shown() {
    let shown = binding(json!({"root": "/srv"})).caller_schema(&schema());
    assert_eq!(
        shown,
        json!({"type": "object", "properties": {"path": {"type": "string"}, "n": {}}, "required": ["path"]})
    );
}

#[test]
fn bound_values_are_filled_in() {
    let bound = binding(json!({"root": "/s\"rv", "n": {"a": [1]}}));
    for (text, expect) in [
        (
            r#"{"path":"x"}"#,
            r#"{"path":"x","n":{"a":[1]},"root":"/s\"rv"}"#,
        ),
        (" { } ", r#" { "n":{"a":[1]},"root":"/s\"rv"} "#),
        (
            r#"{"path":{"root":1}}"#,
            r#"{"path":{"root":1},"n":{"a":[1]},"root":"/s\"rv"}"#,
        ),
    ] {
        assert_eq!(bound.fill(text).unwrap(), expect);
        assert!(serde_json::from_str::<Value>(expect).is_ok());
    }
    assert_eq!(binding(json!({})).fill("{}").unwrap(), "{}");
}

#[test]
fn a_caller_may_not_send_a_bound_argument() {
    let bound = binding(json!({"root": "/srv", "n": 1}));
    for text in [r#"{"root":"/"}"#, r#"{"\u0072oot":null,"path":"x"}"#] {
        let violations = bound.fill(text).unwrap_err();
        assert_eq!(
            violations[0].to_string(),
            "/root: \"root\" is bound by the host"
        );
    }
    assert_eq!(bound.fill(r#"{"n":1,"root":1}"#).unwrap_err().len(), 2);
    assert_eq!(
        bound.fill("[]").unwrap_err()[0].message,
        "malformed JSON: expected an object at the top level at byte 0"
    );
    assert!(bound.fill(r#"{"a":1,"a":2}"#).is_err());
}

#[test]
fn only_properties_of_the_schema_can_be_bound() {
    let Value::Object(values) = json!({"rot": 1}) else {
        panic!()
    };
    assert_eq!(
        Binding::new(&schema(), values).unwrap_err().to_string(),
        "the schema has no property \"rot\" to bind"
    );
}
