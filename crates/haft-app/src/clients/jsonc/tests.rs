//! Members put into and taken out of JSON as people write it.

use serde_json::json;

use super::{Wrong, put, remove};

fn with(text: &str) -> String {
    put(text, "mcpServers", "haft", &json!({"command": "h"})).unwrap()
}

fn without(text: &str) -> String {
    remove(text, "mcpServers", "haft").unwrap().unwrap()
}

#[test]
fn a_member_is_put_where_its_file_would_have_it() {
    let rows = [
        (
            "",
            "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"h\"\n    }\n  }\n}\n",
        ),
        (
            "{}",
            "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"h\"\n    }\n  }\n}",
        ),
        (
            "{\"a\":1}",
            "{\"a\":1, \"mcpServers\": {\"haft\":{\"command\":\"h\"}}}",
        ),
        (
            "{\n\t\"a\": 1 // why\n}\n",
            "{\n\t\"a\": 1, // why\n\t\"mcpServers\": {\n\t\t\"haft\": {\n\t\t\t\"command\": \"h\"\n\t\t}\n\t}\n}\n",
        ),
        (
            "{\r\n  \"mcpServers\": {\r\n    \"x\": {},\r\n  },\r\n}\r\n",
            "{\r\n  \"mcpServers\": {\r\n    \"x\": {},\r\n    \"haft\": {\r\n      \"command\": \"h\"\r\n    },\r\n  },\r\n}\r\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"haft\": {\"command\": \"old\", \"args\": []} // mine\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"h\"\n    } // mine\n  }\n}\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    // none yet\n    \"haft\": {\n      \"command\": \"h\"\n    }\n  }\n}\n",
        ),
        (
            "// only this\n",
            "// only this\n{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"h\"\n    }\n  }\n}\n",
        ),
    ];
    for (text, expect) in rows {
        assert_eq!(with(text), expect, "{text:?}");
    }
}

#[test]
fn what_is_put_in_is_taken_out_to_the_byte() {
    for text in [
        "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"a\"}\n  }\n}\n",
        "{\n  \"mcpServers\": {\n    \"x\": {}, // c\n    /* d */ \"y\": {} /* e */\n  },\n}\n",
        "{\"mcpServers\":{\"x\":{}}}",
        "{\"mcpServers\": {}, \"z\": [1, 2,]}",
        "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {},\r\n\t},\r\n}",
        "{\n  \"mcpServers\": {}\n}\n",
        "{\n    \"mcpServers\": {\n        \"x\": \"}\\\"{ // no comment\"\n    }\n}",
    ] {
        assert_eq!(without(&with(text)), text);
    }
}

#[test]
fn a_member_between_others_goes_alone() {
    let text =
        "{\n  \"mcpServers\": {\n    \"a\": 1,\n    \"haft\": {}, // gone\n    \"b\": 2\n  }\n}\n";
    assert_eq!(
        without(text),
        "{\n  \"mcpServers\": {\n    \"a\": 1, // gone\n    \"b\": 2\n  }\n}\n"
    );
    assert_eq!(
        without("{\"mcpServers\": {\"haft\": {}, \"b\": 2}}"),
        "{\"mcpServers\": {\"b\": 2}}"
    );
    assert_eq!(
        remove("{\"mcpServers\": {}}", "mcpServers", "haft").unwrap(),
        None
    );
    assert_eq!(remove("", "mcpServers", "haft").unwrap(), None);
}

#[test]
fn what_is_not_understood_is_refused_with_its_place() {
    let rows = [
        ("[]", "does not hold a JSON object", 0),
        ("{\"mcpServers\": []}", "`mcpServers` is not an object", 15),
        ("{\"a\": }", "expected a JSON value", 6),
        ("{\"a\" 1}", "expected `:`", 5),
        ("{\"a\": 1 \"b\": 2}", "expected a key, a comma", 8),
        ("{\"a\": 1,,}", "expected a key, a comma", 8),
        ("{\"a\": [1 2]}", "expected a comma or `]`", 9),
        ("{\"a\": \"x}", "a string does not end", 6),
        ("{ /* x }", "a comment does not end", 2),
        ("{\"a\": {}", "an object does not end", 0),
        ("{} {}", "something after", 3),
        (
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "is there twice",
            19,
        ),
    ];
    for (text, what, at) in rows {
        let Wrong {
            what: said,
            at: place,
        } = put(text, "mcpServers", "haft", &json!({})).unwrap_err();
        assert!(said.contains(what), "{text}: {said}");
        assert_eq!(place.start, at, "{text}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(
        put(&deep, "m", "h", &json!({}))
            .unwrap_err()
            .what
            .contains("too deep")
    );
}
