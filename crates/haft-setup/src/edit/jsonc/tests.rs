//! Adds members to JSON as users write it, and removes them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::reader::MAX_TOKENS;
use super::{EditError, put, remove};

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
            "{ \"theme\": \"dark\" // mine\n}",
            "{ \"theme\": \"dark\", // mine\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"h\"\n    }\n  }\n}",
        ),
        (
            "{\"mcpServers\": {\"a\": 1 // mine\u{a0}\r\n}}",
            "{\"mcpServers\": {\"a\": 1, // mine\u{a0}\r\n  \"haft\": {\r\n    \"command\": \"h\"\r\n  }\r\n}}",
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
        "{\n  \"mcpServers\": {\n    \"a\": 1,\n    // gone\n    \"b\": 2\n  }\n}\n"
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
            "appears twice",
            19,
        ),
    ];
    for (text, what, at) in rows {
        let EditError {
            what: said,
            at: place,
        } = put(text, "mcpServers", "haft", &json!({})).unwrap_err();
        assert!(said.contains(what), "{text}: {said}");
        assert_eq!(place.unwrap().start, at, "{text}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(
        put(&deep, "m", "h", &json!({}))
            .unwrap_err()
            .what
            .contains("too deep")
    );
}

#[test]
fn a_comment_never_swallows_what_an_edit_leaves() {
    let rows = [
        (
            "{\n \"mcpServers\": {\n  // my servers\n  \"haft\": {\"command\": \"h\"} }\n}\n",
            "{\n \"mcpServers\": {\n  // my servers\n  }\n}\n",
        ),
        (
            "{\"mcpServers\": { // my servers\n  \"haft\": {}, \"docs\": {}\n }}",
            "{\"mcpServers\": { // my servers\n  \"docs\": {}\n }}",
        ),
        (
            "{\"mcpServers\": {\n \"docs\": {}, // the docs\n \"haft\": {} }, \"x\": 1}",
            "{\"mcpServers\": {\n \"docs\": {} // the docs\n }, \"x\": 1}",
        ),
        (
            "{\"mcpServers\": {\"haft\": {} // mine\n , \"b\": 2}}",
            "{\"mcpServers\": {// mine\n  \"b\": 2}}",
        ),
        (
            "{\"mcpServers\": {\"a\": 1, \"haft\": {} /*/ c */ }}",
            "{\"mcpServers\": {\"a\": 1 /*/ c */ }}",
        ),
    ];
    for (text, expect) in rows {
        assert_eq!(without(text), expect, "{text:?}");
    }
}

/// Numbers that look random and are the same in every test run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    fn trivia(&mut self) -> &'static str {
        self.pick(&[
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\t",
            "\r\n",
            "\r\n\t",
            "/* c */",
            "/*}*/ ",
            "/*/ \n*/",
            " // x\n",
            " // \u{a0}\r\n",
            "\n// \"haft\": {\n",
        ])
    }

    fn value(&mut self, depth: usize) -> String {
        let leaf = depth > 2 || self.roll(3) == 0;
        if leaf {
            let leaves = [
                "1",
                "true",
                "null",
                r#""a""#,
                r#""\"}//""#,
                "-1.5e3",
                r#""\ud800é""#,
                r#""/*""#,
            ];
            return self.pick(&leaves).to_owned();
        }
        if self.roll(2) == 0 {
            return self.object(depth + 1, None);
        }
        let mut out = format!("[{}", self.trivia());
        for _ in 0..self.roll(3) {
            write!(
                out,
                "{}{},{}",
                self.value(depth + 1),
                self.trivia(),
                self.trivia()
            )
            .unwrap();
        }
        out + "]"
    }

    fn object(&mut self, depth: usize, extra: Option<(&str, String)>) -> String {
        let mut members = Vec::new();
        for nth in 0..self.roll(4) {
            members.push((format!("k{nth}"), self.value(depth)));
        }
        if let Some((key, value)) = extra {
            let at = self.roll(members.len() + 1);
            members.insert(at, (key.to_owned(), value));
        }
        let mut out = format!("{{{}", self.trivia());
        let count = members.len();
        for (nth, (key, value)) in members.into_iter().enumerate() {
            write!(
                out,
                "\"{key}\"{}:{}{value}{}",
                self.trivia(),
                self.trivia(),
                self.trivia()
            )
            .unwrap();
            if nth + 1 < count || self.roll(3) == 0 {
                write!(out, ",{}", self.trivia()).unwrap();
            }
        }
        out + "}"
    }

    fn document(&mut self) -> String {
        let servers = match self.roll(4) {
            0 => None,
            1 => {
                let own = self.value(2);
                Some(self.object(1, Some(("haft", own))))
            }
            _ => Some(self.object(1, None)),
        };
        let root = self.object(0, servers.map(|servers| ("mcpServers", servers)));
        format!(
            "{}{}{root}{}",
            self.pick(&["", "\u{feff}"]),
            self.trivia(),
            self.trivia()
        )
    }
}

/// Parses a text in another way than the editor: cuts comments and trailing commas, and parses the rest as plain JSON.
fn plain(text: &str) -> Value {
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut out = String::new();
    while let Some(c) = rest.chars().next() {
        let cut = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inside) = rest.strip_prefix("/*") {
            inside.find("*/").unwrap() + 4
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.unwrap() + 2;
            // `serde_json` does not support half characters.
            out += &rest[..end].replace("\\ud800", "half");
            end
        } else {
            if matches!(c, '}' | ']') && out.ends_with(',') {
                out.pop();
            }
            if !matches!(c, ' ' | '\t' | '\r' | '\n') {
                out.push(c);
            }
            c.len_utf8()
        };
        rest = &rest[cut..];
    }
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {text:?}"))
}

#[test]
fn an_edit_of_any_document_changes_haft_s_own_entry_and_nothing_else() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let entry = json!({"command": "h", "args": ["a", {"b": 1}]});
    for _ in 0..5_000 {
        let text = dice.document();
        let before = plain(&text);
        let after = put(&text, "mcpServers", "haft", &entry)
            .unwrap_or_else(|wrong| panic!("{wrong:?}: {text:?}"));
        let mut expected = before.clone();
        expected["mcpServers"]["haft"] = entry.clone();
        assert_eq!(plain(&after), expected, "{text:?} => {after:?}");
        let gone = without(&after);
        expected["mcpServers"]
            .as_object_mut()
            .unwrap()
            .remove("haft");
        assert_eq!(plain(&gone), expected, "{after:?} => {gone:?}");
        let tidy = super::remove_empty(&gone, "mcpServers").unwrap();
        let kept = plain(&tidy);
        expected.as_object_mut().unwrap().remove("mcpServers");
        if kept.get("mcpServers").is_none() {
            assert_eq!(kept, expected, "{gone:?} => {tidy:?}");
        }
    }
}

#[test]
fn what_clients_read_differently_is_refused() {
    for text in ["// a\r{\"x\": 1}\n{}", "{} // a\u{2028}b"] {
        let refused = put(text, "mcpServers", "haft", &json!({})).unwrap_err();
        assert!(refused.what.contains("half a line break"), "{refused:?}");
    }
}

#[test]
fn an_edit_keeps_every_other_byte_of_odd_files() {
    for text in [
        // Half a character, as JavaScript writes it where it cut a text; a pair of halves; an escaped backslash before the letter.
        r#"{"mcpServers": {"x": "\ud83d", "y": "\ud83d\ude00", "z": "\\ud83d"}}"#,
        // The same key twice, where haft edits nothing.
        r#"{"a": 1, "a": 2, "mcpServers": {"x": 1, "x": 2}}"#,
        // Numbers keep their form.
        r#"{"mcpServers": {"x": [1.0, 1e3, -0, 12345678901234567890123, 1e999]}}"#,
        // A comment after the last member, and after its comma.
        "{\n  \"mcpServers\": {\n    \"x\": 1 /* c */ // d\n  } // e\n}",
        "{\n  \"mcpServers\": {\n    \"x\": 1, // d\n    /* c */\n  }, // e\n}\n// f",
        // A raw tab in a string.
        "{\"mcpServers\": {\"x\": \"a\tb\"}}",
    ] {
        assert_eq!(without(&with(text)), text);
    }
}

#[test]
fn a_text_with_too_many_parts_is_refused() {
    let many = format!("{{\"a\": [{}]}}", "1,".repeat(MAX_TOKENS / 2));
    let refused = put(&many, "m", "h", &json!({})).unwrap_err();
    assert!(refused.what.contains("parts"), "{refused}");
}

#[test]
fn a_text_that_no_client_reads_is_refused_with_its_place() {
    for (text, at) in [
        ("[{}]", 0),
        ("\u{feff}[]", 3),
        (r#"{"a": "\x"}"#, 7),
        ("{\"a\":\u{a0}1}", 5),
        ("{\"a\": 'x'}", 6),
        ("{a: 1}", 1),
        ("{\"a\": 01}", 7),
        ("{\"a\": NaN}", 6),
        ("{\"a\": 1\n// c\n\"b\": 2}", 13),
        ("{\"a\": \"b\nc\"}", 6),
    ] {
        let refused = put(text, "m", "h", &json!({})).unwrap_err();
        assert_eq!(refused.at.clone().unwrap().start, at, "{text:?}: {refused}");
    }
}
