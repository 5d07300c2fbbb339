//! Refs are found at any position, and nothing else is.

use serde_json::json;

use crate::executor::refs::find::{RefEncoding, accepted_kind, find};

#[test]
fn refs_are_found_at_any_depth_and_only_there() {
    for (text, expect) in [
        ("{}", &[][..]),
        (r#"{"$artifact":"r"}"#, &[]),
        (r#"{"a":"$artifact"}"#, &[]),
        (r#"{"a":{"$artifact":"r"}}"#, &[("/a", Some("r"))]),
        (
            "{\"a\" : { \"\\u0024artifact\" : \"r\" } }",
            &[("/a", Some("r"))],
        ),
        (
            r#"{"a":[1,{"b":{"$artifact":"r"}},{"$artifact":"s"}]}"#,
            &[("/a/1/b", Some("r")), ("/a/2", Some("s"))],
        ),
        (r#"{"a/b~":{"$artifact":"r"}}"#, &[("/a~1b~0", Some("r"))]),
        // An object with other members is not a ref, and its content is not searched.
        (r#"{"a":{"$artifact":"r","x":1}}"#, &[("/a", None)]),
        (r#"{"a":{"$artifact":7}}"#, &[("/a", None)]),
        (r#"{"a":{"$artifact":{"$artifact":"r"}}}"#, &[("/a", None)]),
        // Text that is not strict JSON is refused elsewhere.
        (r#"{"a":{"$artifact":"r"},"a":1}"#, &[]),
        (r#"{"a":{"$artifact":"r"}"#, &[]),
    ] {
        let found = find(text);
        let seen: Vec<_> = found
            .iter()
            .map(|f| (f.pointer(), f.reference.clone()))
            .collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(path, of)| ((*path).to_owned(), of.map(str::to_owned)))
            .collect();
        assert_eq!(seen, expect, "{text}");
        for one in found {
            let span = &text[one.span];
            assert!(span.starts_with('{') && span.ends_with('}'), "{span}");
        }
    }
}

#[test]
fn the_schema_says_what_stands_in_a_refs_place() {
    let schema = json!({
        "properties": {
            "text": {"type": "string"},
            "maybe": {"type": ["string", "null"]},
            "ref": {"type": "string", "format": "artifact"},
            "bytes": {"type": "string", "contentEncoding": "base64"},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
            "either": {"anyOf": [{"type": "object"}, {"type": "string"}]},
            "neither": {"anyOf": [{"type": "object"}, {"type": "array"}]},
            "there": {"$ref": "#/$defs/rows"},
            "open": {}
        },
        "additionalProperties": {"type": "object"},
        "$defs": {"rows": {"type": "array"}}
    });
    for (path, expect) in [
        ("text", RefEncoding::Text),
        ("maybe", RefEncoding::Text),
        ("ref", RefEncoding::Ref),
        ("bytes", RefEncoding::Base64),
        ("rows", RefEncoding::Json),
        ("rows/0", RefEncoding::Json),
        ("rows/0/n", RefEncoding::Text),
        ("either", RefEncoding::Text),
        ("neither", RefEncoding::Json),
        ("there", RefEncoding::Json),
        ("open", RefEncoding::Text),
        ("open/deeper", RefEncoding::Text),
        ("other", RefEncoding::Json),
    ] {
        let steps: Vec<String> = path.split('/').map(str::to_owned).collect();
        assert_eq!(accepted_kind(&schema, &steps), expect, "{path}");
    }
}
