//! What the strict scan refuses, and the position it reports.

use proptest::prelude::*;
use serde_json::Value;

use crate::scan::{Fault, scan, scan_object};

#[track_caller]
fn check(text: &str, expect: Result<(), (Fault, usize, &str)>) {
    let got = scan(text).map_err(|e| (e.fault, e.offset, e.path));
    assert_eq!(
        got,
        expect.map_err(|(f, at, p)| (f, at, p.to_owned())),
        "{text}"
    );
}

fn nested(open: &str, close: &str, levels: usize) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn sound_texts_pass() {
    for text in [
        "{}",
        "[]",
        " \t\r\n{ } ",
        "0",
        "-0",
        "-0.0",
        "1e5",
        "1E-400",
        "0e999999",
        "1.5e+3",
        "\"\"",
        r#""\u0061\ud83d\ude00\n\/""#,
        "true",
        "null",
        r#"{"a":{"a":[{"a":1},{"a":2}]}}"#,
        r#"{"":1," ":2}"#,
        "\"\u{7f}é😀\u{2028}\"",
        "123456789012345678901234567890",
        "[1,2,[3,[]],{}]",
        r#"{"a":"\"","\"":1}"#,
    ] {
        check(text, Ok(()));
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
}

/// A text, the fault, its byte position, and the path of the value.
const BAD: &[(&str, Fault, usize, &str)] = &[
    ("", Fault::Truncated, 0, ""),
    ("\u{feff}{}", Fault::Expected("a value"), 0, ""),
    ("NaN", Fault::Expected("a value"), 0, ""),
    ("-Infinity", Fault::Number, 0, ""),
    ("nul", Fault::Expected("true, false or null"), 0, ""),
    ("01", Fault::Number, 0, ""),
    ("[-01]", Fault::Number, 1, "/0"),
    ("+1", Fault::Expected("a value"), 0, ""),
    ("1.", Fault::Number, 2, ""),
    (".5", Fault::Expected("a value"), 0, ""),
    ("1e", Fault::Number, 2, ""),
    ("[1e400]", Fault::NumberRange, 1, "/0"),
    (r#"{"a":[1,{"b":1e999}]}"#, Fault::NumberRange, 13, "/a/1/b"),
    (r#"{"a":1,"a":2}"#, Fault::DuplicateKey, 7, "/a"),
    (r#"{"a":1,"\u0061":2}"#, Fault::DuplicateKey, 7, "/a"),
    (r#"{"\u0061":1,"b":0,"a":2}"#, Fault::DuplicateKey, 18, "/a"),
    (
        r#"{"x":[{"k":1},{"k":1,"k":2}]}"#,
        Fault::DuplicateKey,
        21,
        "/x/1/k",
    ),
    (
        r#"{"a/b":{"~":1,"~":2}}"#,
        Fault::DuplicateKey,
        14,
        "/a~1b/~0",
    ),
    (r#""\ud800""#, Fault::LoneSurrogate, 1, ""),
    (r#""\udc00""#, Fault::LoneSurrogate, 1, ""),
    (r#""\ud800\ud800""#, Fault::LoneSurrogate, 1, ""),
    (r#"{"\ud800x":1}"#, Fault::LoneSurrogate, 2, ""),
    (r#""\ud800\n""#, Fault::LoneSurrogate, 1, ""),
    (r#""\x41""#, Fault::Escape, 1, ""),
    (r#""\u12g4""#, Fault::Escape, 1, ""),
    (r#""\u+123""#, Fault::Escape, 1, ""),
    ("\"a\nb\"", Fault::Control, 2, ""),
    ("\"12345678\u{0}\"", Fault::Control, 9, ""),
    ("{} x", Fault::Trailing, 3, ""),
    ("{}{}", Fault::Trailing, 2, ""),
    ("[1,]", Fault::Expected("a value"), 3, "/1"),
    (r#"{"a":1,}"#, Fault::Expected("a key in quotes"), 7, "/a"),
    (
        r#"{"a" 1}"#,
        Fault::Expected("a colon after the key"),
        5,
        "/a",
    ),
    ("[1 2]", Fault::Expected("a comma or ]"), 3, "/0"),
    (r#"{"a":1]"#, Fault::Expected("a comma or }"), 6, "/a"),
    (r#"{"a":"#, Fault::Truncated, 5, "/a"),
    ("\"abc", Fault::Truncated, 4, ""),
    ("\"abc\\", Fault::Truncated, 4, ""),
    ("{'a':1}", Fault::Expected("a key in quotes"), 1, ""),
    ("[1,/*c*/2]", Fault::Expected("a value"), 3, "/1"),
];

#[test]
fn bad_texts_are_refused_with_the_place() {
    for &(text, fault, at, path) in BAD {
        if fault == Fault::Truncated {
            assert_eq!(
                scan(text).map_err(|e| e.fault),
                Err(Fault::Truncated),
                "{text}"
            );
        } else {
            check(text, Err((fault, at, path)));
        }
    }
    check(&nested("[", "]", 64), Ok(()));
    let deep = scan(&nested("[", "]", 65)).unwrap_err();
    assert_eq!((deep.fault, deep.offset), (Fault::TooDeep, 64));
    check(&nested("{\"a\":", "}", 64), Ok(()));
    assert_eq!(
        scan(&nested("{\"a\":", "}", 65)).unwrap_err().fault,
        Fault::TooDeep
    );
    assert_eq!(
        scan(&"[".repeat(1_000_000)).unwrap_err().fault,
        Fault::TooDeep
    );
}

#[test]
fn arguments_must_be_an_object() {
    for text in ["[]", "1", "\"{}\"", "null"] {
        assert_eq!(scan_object(text).unwrap_err().fault, Fault::NotAnObject);
    }
    assert!(scan_object(" {}").is_ok());
    assert_eq!(scan_object("[1").unwrap_err().fault, Fault::Truncated);
    assert_eq!(scan_object("").unwrap_err().fault, Fault::Truncated);
    let error = scan_object(r#"{"a":{"b":1,"b":2}}"#).unwrap_err();
    assert_eq!(error.to_string(), "duplicate key at byte 12 (/a/b)");
}

#[test]
fn many_and_long_keys_are_told_apart() {
    let mut keys: Vec<String> = (0..5_000).map(|n| format!("\"k{n}\":{n}")).collect();
    assert!(scan(&format!("{{{}}}", keys.join(","))).is_ok());
    keys.push("\"k7\":0".into());
    let text = format!("{{{}}}", keys.join(","));
    let error = scan(&text).unwrap_err();
    assert_eq!(
        (error.fault, error.offset),
        (Fault::DuplicateKey, text.len() - 7)
    );
    keys.pop();
    keys.push(r#""\u006b7":0"#.into());
    assert_eq!(
        scan(&format!("{{{}}}", keys.join(","))).unwrap_err().fault,
        Fault::DuplicateKey
    );
    let long = "k".repeat(1 << 20);
    assert!(scan(&format!(r#"{{"{long}":1,"{long}k":2}}"#)).is_ok());
    let error = scan(&format!(r#"{{"{long}":1,"{long}":2}}"#)).unwrap_err();
    assert_eq!(error.fault, Fault::DuplicateKey);
    assert!(error.path.len() < 300);
}

/// Generates texts from pieces that break parsers.
fn shards() -> impl Strategy<Value = String> {
    let shard = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\u0061\"",
        "\"b\"",
        "1",
        "-",
        "0",
        ".5",
        "e9",
        "e999",
        "true",
        "null",
        "nul",
        " ",
        "\\",
        "\"",
        "\\ud800",
        "\\udc00",
        "\n",
        "é",
    ]);
    prop::collection::vec(shard, 0..24).prop_map(|shards| shards.concat())
}

proptest! {
    #[test]
    fn what_the_scan_passes_serde_reads(text in shards()) {
        if scan(&text).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }

    #[test]
    fn what_serde_reads_the_scan_passes_unless_it_is_stricter(text in shards()) {
        if serde_json::from_str::<Value>(&text).is_ok()
            && let Err(error) = scan(&text)
        {
            prop_assert_eq!(error.fault, Fault::DuplicateKey);
        }
    }

    #[test]
    fn every_prefix_ends_in_an_error_or_is_whole(text in shards(), cut in 0_usize..40) {
        let cut = text.floor_char_boundary(cut);
        if let Err(error) = scan(&text[..cut]) {
            prop_assert!(error.offset <= cut);
        }
    }
}
