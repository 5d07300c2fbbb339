//! A table of schemas converted to OpenAI's subset, and the way back.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn parameters(schema: &str) -> Parameters {
    let function = Function {
        name: "t".to_owned(),
        description: String::new(),
        parameters: Arc::from(raw(schema)),
        strict: true,
        deferred: false,
    };
    Parameters::of(&function, "t")
}

/// Returns the schema of an object with one required property.
fn of(property: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"p":{property}}},"required":["p"]}}"#)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn properties_of_a_table_are_brought_into_the_subset() {
    let closed = |inner: &str| {
        format!(
            r#"{{"type":"object","properties":{{"p":{inner}}},"required":["p"],"additionalProperties":false}}"#
        )
    };
    let rows: [(&str, &str, &[&str]); 12] = [
        (
            r#"{"type":"string","pattern":"^a"}"#,
            r#"{"type":"string","pattern":"^a"}"#,
            &[],
        ),
        (
            r#"{"type":"string","minLength":2,"description":"d"}"#,
            r#"{"type":"string","description":"d (minLength: 2)"}"#,
            &["/properties/p/minLength"],
        ),
        (
            r#"{"type":"string","format":"uri","default":"x"}"#,
            r#"{"type":"string","description":"(format: \"uri\", default: \"x\")"}"#,
            &["/properties/p/format", "/properties/p/default"],
        ),
        (
            r#"{"type":"string","format":"uuid","default":null}"#,
            r#"{"type":"string","format":"uuid"}"#,
            &[],
        ),
        (
            r#"{"enum":["a","b"]}"#,
            r#"{"type":"string","enum":["a","b"]}"#,
            &[],
        ),
        (
            r#"{"enum":["a",1]}"#,
            r#"{"type":["integer","string"],"enum":["a",1]}"#,
            &[],
        ),
        (r#"{"const":1.5}"#, r#"{"type":"number","const":1.5}"#, &[]),
        (
            r#"{"oneOf":[{"type":"string"},{"type":"integer","minimum":12345678901234567890123}]}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"integer","minimum":12345678901234567890123}]}"#,
            &["/properties/p/oneOf"],
        ),
        (
            r#"{"allOf":[{"type":"string"}],"title":"T"}"#,
            r#"{"type":"string","title":"T"}"#,
            &[],
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]}"#,
            r#"{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}"#,
            &[],
        ),
        (
            r#"{"type":"array","items":{"type":"string","x-hint":1},"maxItems":3,"uniqueItems":true}"#,
            r#"{"type":"array","items":{"type":"string"},"maxItems":3,"description":"(uniqueItems: true)"}"#,
            &["/properties/p/uniqueItems"],
        ),
        (
            r#"{"type":["string","null"]}"#,
            r#"{"type":["string","null"]}"#,
            &[],
        ),
    ];
    for (property, expect, lost) in rows {
        let parameters = parameters(&of(property));
        assert!(parameters.is_strict, "{property}: {:?}", parameters.lost);
        assert_eq!(parameters.json, closed(expect), "{property}");
        let at: Vec<&str> = parameters
            .lost
            .iter()
            .map(|lost| lost.at.as_str())
            .collect();
        assert_eq!(at, lost, "{property}");
    }
}

#[test]
fn an_optional_property_of_each_sort_may_be_null() {
    let rows = [
        (r#"{"type":"string"}"#, r#"{"type":["string","null"]}"#),
        (
            r#"{"type":["string","integer"]}"#,
            r#"{"type":["string","integer","null"]}"#,
        ),
        (
            r#"{"type":["string","null"]}"#,
            r#"{"type":["string","null"]}"#,
        ),
        (
            r#"{"enum":["a"]}"#,
            r#"{"type":["string","null"],"enum":["a",null]}"#,
        ),
        (
            r#"{"const":"a"}"#,
            r#"{"anyOf":[{"type":"string","const":"a"},{"type":"null"}]}"#,
        ),
        (
            r##"{"$ref":"#/$defs/d"}"##,
            r##"{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}]}"##,
        ),
        (
            r#"{"anyOf":[{"type":"string"}]}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        ),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}"#,
            r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        ),
    ];
    for (property, expect) in rows {
        let schema = format!(
            r#"{{"type":"object","$defs":{{"d":{{"type":"string"}}}},"properties":{{"p":{property}}}}}"#
        );
        let parameters = parameters(&schema);
        assert!(parameters.is_strict, "{property}: {:?}", parameters.lost);
        let read: Value = serde_json::from_str(&parameters.json).unwrap();
        let expect: Value = serde_json::from_str(expect).unwrap();
        assert_eq!(read["properties"]["p"], expect, "{property}");
        assert_eq!(read["required"], json!(["p"]));
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_cannot_be_said_is_declared_without_strict_and_says_where() {
    let deep = (0..12).fold(r#"{"type":"string"}"#.to_owned(), |inner, _| of(&inner));
    let many: String = (0..1_001).fold(String::new(), |mut all, n| {
        let comma = if n == 0 { "" } else { "," };
        write!(all, "{comma}{n}").unwrap();
        all
    });
    let long = format!("\"{}\"", "x".repeat(60));
    let texts = vec![long; 251].join(",");
    let rows = [
        (r#"{"type":"object"}"#.to_owned(), ""),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"integer"}}}"#
                .to_owned(),
            "",
        ),
        (r#"{"type":"array","items":{}}"#.to_owned(), ""),
        (r#"{"type":"object","anyOf":[]}"#.to_owned(), ""),
        (
            r#"{"type":"object","properties":{},"additionalProperties":true}"#.to_owned(),
            "/additionalProperties",
        ),
        (of("{}"), "/properties/p"),
        (of("true"), "/properties/p"),
        (of(r#"{"type":"array"}"#), "/properties/p"),
        (of(r#"{"type":"object"}"#), "/properties/p"),
        (
            of(r#"{"type":"object","additionalProperties":{"type":"string"}}"#),
            "/properties/p/additionalProperties",
        ),
        (
            of(r#"{"type":"string","not":{"const":"a"}}"#),
            "/properties/p/not",
        ),
        (
            of(r#"{"allOf":[{"type":"string"},{"minLength":1}]}"#),
            "/properties/p/allOf",
        ),
        (
            of(r#"{"type":"object","patternProperties":{}}"#),
            "/properties/p/patternProperties",
        ),
        (of(r#"{"$ref":"https://example.com/s"}"#), "/properties/p"),
        (of(r##"{"$ref":"#/$defs/none"}"##), "/properties/p"),
        (of(&format!(r#"{{"enum":[{many}]}}"#)), ""),
        (
            of(&format!(r#"{{"enum":[{texts}]}}"#)),
            "/properties/p/enum",
        ),
        (
            deep,
            "/properties/p/properties/p/properties/p/properties/p/properties/p/properties/p/properties/p/properties/p/properties/p/properties/p",
        ),
    ];
    for (schema, at) in rows {
        let parameters = parameters(&schema);
        assert!(!parameters.is_strict, "{schema}");
        let [lost] = parameters.lost.as_slice() else {
            panic!("{schema}: {:?}", parameters.lost);
        };
        assert_eq!(
            (lost.at.as_str(), lost.tool.as_str()),
            (at, "t"),
            "{schema}: {lost:?}"
        );
        assert!(
            lost.what.starts_with("declared without strict: "),
            "{lost:?}"
        );
        if schema.contains("properties") || schema.contains("array") {
            assert_eq!(parameters.json, schema);
        }
    }
    let open = parameters(r#"{ "type": "object" }"#);
    assert_eq!(open.json, r#"{"type":"object","properties":{}}"#);
}

#[test]
fn references_stay_or_are_put_in_place_and_circles_end() {
    let tree = r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
        "name":{"type":"string"},
        "next":{"$ref":"#/$defs/node","description":"the next one"},
        "kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name","next","kids"]}}}"##;
    let parameters = parameters(tree);
    assert!(parameters.is_strict, "{:?}", parameters.lost);
    let read: Value = serde_json::from_str(&parameters.json).unwrap();
    assert_eq!(read["type"], "object");
    assert_eq!(
        read["properties"]["kids"]["items"],
        json!({"$ref": "#/$defs/node"})
    );
    assert_eq!(read["properties"]["next"]["description"], "the next one");
    assert_eq!(
        read["properties"]["next"]["properties"]["next"],
        json!({"$ref": "#/$defs/node"})
    );
    assert!(
        parameters
            .lost
            .iter()
            .all(|lost| lost.what.contains("beside a reference to itself"))
    );
}

#[test]
fn a_schema_that_multiplies_is_given_up_and_not_followed_for_ever() {
    let names: Vec<String> = (0..8)
        .map(|n| {
            format!(
                r##""p{n}":{{"$ref":"#/$defs/d{}","description":"x"}}"##,
                n % 4
            )
        })
        .collect();
    let object = format!(
        r#"{{"type":"object","properties":{{{}}}}}"#,
        names.join(",")
    );
    let defs: Vec<String> = (0..4).map(|n| format!(r#""d{n}":{object}"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}},"$defs":{{{}}}}}"#,
        names.join(","),
        defs.join(",")
    );
    let given_up = parameters(&schema);
    assert!(!given_up.is_strict, "{:?}", given_up.lost);
    let both = format!(
        r##"{{"anyOf":[{{"$ref":"#"}},{}]}}"##,
        vec![r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##; 30].join(",")
    );
    let value = format!("{}null{}", r#"{"a":"#.repeat(60), "}".repeat(60));
    assert_eq!(without_nulls(&raw(&both), &value), value);
}

#[test]
fn nulls_that_stand_for_nothing_go_and_all_others_stay() {
    let schema = r##"{"type":"object","required":["need"],"$defs":{"d":{"type":"object","properties":{"x":{"type":"string"}}}},
        "properties":{"need":{"type":"string"},"opt":{"type":"string"},"free":{},"null":{"type":["string","null"]},
        "sub":{"$ref":"#/$defs/d"},"list":{"type":"array","items":{"$ref":"#/$defs/d"}},
        "either":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/d"}]}}}"##;
    let rows = [
        (r#"{"need":null,"opt":null}"#, r#"{"need":null}"#),
        (
            r#"{"opt":"null","free":null,"null":null}"#,
            r#"{"opt":"null","free":null,"null":null}"#,
        ),
        (
            r#"{"sub":{"x":null},"list":[{"x":null},{"x":"y"}]}"#,
            r#"{"sub":{},"list":[{},{"x":"y"}]}"#,
        ),
        (r#"{"either":{"x":null},"sub":null}"#, r#"{"either":{}}"#),
        (
            r#"{"other":null,"opt":null,"n":1.0e+2}"#,
            r#"{"other":null,"n":1.0e+2}"#,
        ),
        (r#"{ "opt" : "null" }"#, r#"{ "opt" : "null" }"#),
        (r#"{"opt":null"#, r#"{"opt":null"#),
        ("null", "null"),
    ];
    for (arguments, expect) in rows {
        assert_eq!(
            without_nulls(&raw(schema), arguments),
            expect,
            "{arguments}"
        );
    }
}
