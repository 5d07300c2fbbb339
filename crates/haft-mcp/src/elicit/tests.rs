//! What clients are given to ask, and what their replies say.

use serde_json::value::to_raw_value;

use super::*;

const NOW: Era = Era::Legacy(Revision::V2025_11_25);
const FORMS: Era = Era::Legacy(Revision::V2025_06_18);
const OLD: Era = Era::Legacy(Revision::V2025_03_26);

#[test]
fn a_client_can_what_it_says_and_its_protocol_has() {
    let can = |form, url| Elicitation { form, url };
    for (capabilities, era, expect) in [
        (r#"{"elicitation":{}}"#, NOW, can(true, false)),
        (r#"{"elicitation":{"form":{}}}"#, NOW, can(true, false)),
        (r#"{"elicitation":{"url":{}}}"#, NOW, can(false, true)),
        (
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            Era::Modern,
            can(true, true),
        ),
        (
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            FORMS,
            can(true, false),
        ),
        (r#"{"elicitation":{"url":{}}}"#, FORMS, can(true, false)),
        (r#"{"elicitation":{}}"#, OLD, can(false, false)),
        (r#"{"elicitation":null}"#, NOW, can(false, false)),
        (r#"{"elicitation":{"url":null}}"#, NOW, can(true, false)),
        (r#"{"elicitation":"yes"}"#, NOW, can(false, false)),
        (r#"{"roots":{}}"#, NOW, can(false, false)),
        ("{}", NOW, can(false, false)),
        ("[1]", NOW, can(false, false)),
    ] {
        let raw = RawValue::from_string(capabilities.into()).unwrap();
        assert_eq!(
            Elicitation::of(Some(&raw), era),
            expect,
            "{capabilities} {era:?}"
        );
    }
    assert!(!Elicitation::of(None, NOW).any());
}

#[test]
fn a_line_stays_one_line_and_short() {
    for (text, expect) in [
        ("plain ü", "plain ü"),
        ("a\nb\tc\u{1b}[31m", "a b c [31m"),
        ("x\u{202e}gnp.exe\u{2066}", "x gnp.exe "),
        ("a\u{200b}b\u{feff}", "a b "),
    ] {
        assert_eq!(one_line(text), expect);
    }
    let long = one_line(&"é".repeat(MAX_LINE));
    assert!(long.ends_with("é…") && long.len() <= MAX_LINE + '…'.len_utf8());
}

fn question(value: Value) -> Question {
    serde_json::from_value(value).unwrap()
}

/// Rows: question, its field now, and its field before 2025-11-25.
#[test]
fn a_question_becomes_a_field_that_its_protocol_knows() {
    for (asked, now, before) in [
        (
            json!({"id": "a", "type": "single", "text": "T", "options": ["x", "y"], "default": "x"}),
            Some(json!({"type": "string", "enum": ["x", "y"], "title": "T", "default": "x"})),
            Some(json!({"type": "string", "enum": ["x", "y"], "title": "T"})),
        ),
        (
            json!({"id": "a", "type": "single", "text": "T", "options": ["x"], "allow_other": true}),
            Some(
                json!({"type": "string", "description": "One of: x; or other words", "title": "T"}),
            ),
            Some(
                json!({"type": "string", "description": "One of: x; or other words", "title": "T"}),
            ),
        ),
        (
            json!({"id": "a", "type": "multiple", "text": "T", "options": ["x"]}),
            Some(
                json!({"type": "array", "items": {"type": "string", "enum": ["x"]}, "title": "T"}),
            ),
            None,
        ),
        (
            json!({"id": "a", "type": "text", "text": "T\n2"}),
            Some(json!({"type": "string", "title": "T 2"})),
            Some(json!({"type": "string", "title": "T 2"})),
        ),
        (
            json!({"id": "a", "type": "confirm", "text": "T"}),
            Some(json!({"type": "boolean", "title": "T"})),
            Some(json!({"type": "boolean", "title": "T"})),
        ),
        (
            json!({"id": "a", "type": "number", "text": "T"}),
            Some(json!({"type": "number", "title": "T"})),
            Some(json!({"type": "number", "title": "T"})),
        ),
    ] {
        let asked = question(asked);
        assert_eq!(field(&asked, NOW), now, "{asked:?}");
        assert_eq!(field(&asked, FORMS), before, "{asked:?}");
    }
}

#[test]
fn what_a_person_did_is_read_or_was_nothing() {
    for (result, expect) in [
        (
            json!({"action": "accept", "content": {"a": 1}}),
            ElicitReply::Accept(Map::from_iter([("a".into(), json!(1))])),
        ),
        (json!({"action": "accept"}), ElicitReply::Accept(Map::new())),
        (json!({"action": "decline"}), ElicitReply::Decline),
        (json!({"action": "cancel"}), ElicitReply::Nothing),
        (json!({"action": "ACCEPT"}), ElicitReply::Nothing),
        (
            json!({"action": "accept", "content": [1]}),
            ElicitReply::Nothing,
        ),
        (json!([]), ElicitReply::Nothing),
    ] {
        let raw = to_raw_value(&result).unwrap();
        assert_eq!(ElicitReply::of(Some(&raw)), expect, "{result}");
    }
    assert_eq!(ElicitReply::of(None), ElicitReply::Nothing);
}
