//! Fuzz targets for the JSON reader: each runs for a few seconds over its corpus, and longer with `make fuzz`.

use std::path::{Path, PathBuf};

use haft_fuzz::fuzz;
use haft_json::bind::Binding;
use haft_json::canonical::canonical;
use haft_json::de::from_scanned;
use haft_json::depth::exceeds;
use haft_json::lexer::Lexer;
use haft_json::scan::{MAX_DEPTH, scan, scan_object};
use haft_json::schema::Schema;
use haft_json::value::value;
use haft_json::view::View;
use serde_json::{Value, json};

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "null",
    "true",
    "-0",
    "1e400",
    "\"a\":",
    "\u{feff}",
    "9223372036854775808",
    "0.1",
    "\\\"",
    "$artifact",
    "Bearer ",
    "sk-ant-api03-",
];

/// JSON white space.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name)
}

#[test]
fn fuzz_what_the_strict_scan_passes_every_parser_reads_alike() {
    fuzz(&corpus("json"), WORDS, |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        assert_eq!(canonical(text).err(), scan(text).err(), "{text}");
        // Not a validation, but it must never panic, whatever the text.
        let (typed, viewed) = (from_scanned::<Value>(text), View::of(text).value());
        if scan(text).is_ok() {
            let parsed: Value = serde_json::from_str(text).unwrap();
            assert_eq!((&typed.unwrap(), &viewed), (&parsed, &parsed));
            assert_eq!(scan_object(text).is_ok(), parsed.is_object());
            assert_eq!(value(text), parsed);
            assert_eq!(
                Lexer::new(text).skip().unwrap().end,
                text.trim_end_matches(SPACE).len()
            );
            let once = canonical(text).unwrap();
            assert_eq!(canonical(&once).unwrap(), once);
        }
        let deep = exceeds(input, MAX_DEPTH);
        assert!(!deep || scan(text).is_err(), "{text}");
    });
}

#[test]
fn fuzz_what_a_schema_admits_is_valid_and_admitted_again_unchanged() {
    let properties = json!({"n": {"type": "integer", "minimum": 0}, "b": {"type": "boolean"}, "list": {"type": "array"},
        "t": {"type": "string", "maxLength": 8}, "a": {"enum": [1, "x", null]}, "where": {"type": "object"}});
    let source = json!({"type": "object", "properties": properties, "required": ["n"]});
    let schema = Schema::compile(&source).unwrap();
    let judge = jsonschema::validator_for(&source).unwrap();
    let bound = json!({"t": "bound"}).as_object().unwrap().clone();
    let binding = Binding::new(&source, bound).unwrap();
    fuzz(&corpus("json"), WORDS, |input| {
        let Ok(text) = std::str::from_utf8(input) else {
            return;
        };
        if let Ok(admitted) = schema.admit(text, true) {
            let value: Value = serde_json::from_str(&admitted.text).unwrap();
            assert!(judge.is_valid(&value), "{value}");
            let again = schema.admit(&admitted.text, true).unwrap();
            assert!(again.coerced.is_empty());
            if let Ok(filled) = binding.fill(text) {
                assert!(scan_object(&filled).is_ok(), "{filled}");
            }
        }
    });
}
