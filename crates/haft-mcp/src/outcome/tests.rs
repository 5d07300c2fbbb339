//! Outcomes as clients see them.

use haft::call::Origin;
use haft::error::ErrorKind;
use haft::result::Failure;
use serde_json::{Value, json};

use super::*;
use crate::era::Revision;

fn outcome(status: Status) -> Outcome {
    let mut outcome = Outcome::new(RunId::new("r"), CallId::new("c"), "t", status);
    outcome.origin = Origin::Mcp;
    outcome.summary = "in short".into();
    outcome
}

fn to_json(outcome: &Outcome, era: Era) -> Value {
    let server = RawValue::from_string("{\"name\":\"s\"}".into()).unwrap();
    let mut out = Vec::new();
    write(&mut out, outcome, &CallFollowUp::Nothing, era, &server);
    serde_json::from_slice(&out).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    let blocks = value["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[test]
fn row11_whatever_is_not_ok_is_an_error_that_says_its_kind_and_what_to_do() {
    for (status, failure, expect) in [
        (
            Status::Denied,
            Some((ErrorKind::Denied, "no", Some("ask"))),
            "denied: no\nask",
        ),
        (
            Status::Error,
            Some((ErrorKind::NotFound, "no tool", None)),
            "not_found: no tool",
        ),
        (
            Status::Timeout,
            Some((ErrorKind::Timeout, "too slow", None)),
            "timeout: too slow",
        ),
        (
            Status::Cancelled,
            Some((ErrorKind::Cancelled, "stopped", None)),
            "cancelled: stopped",
        ),
        (Status::Suspended, None, "suspended: in short"),
    ] {
        let mut outcome = outcome(status);
        outcome.error = failure.map(|(kind, message, advice)| Failure {
            kind,
            message: message.into(),
            advice: advice.map(str::to_owned),
        });
        for era in [Era::Modern, Era::Legacy(Revision::V2024_11_05)] {
            let value = to_json(&outcome, era);
            assert_eq!(value["isError"], json!(true), "{status:?}");
            assert_eq!(texts(&value), [expect], "{status:?}");
            assert_eq!(value["_meta"]["haft"]["status"], json!(status.as_str()));
            // Row 11: a program reads the kind as well.
            let kind = value["_meta"]["haft"].get("error");
            let expect = outcome.error.as_ref().map(|error| json!(error.kind));
            assert_eq!(kind, expect.as_ref(), "{status:?}");
        }
    }
}

#[test]
fn a_failure_comes_before_what_there_is_to_show_and_is_said_once() {
    let mut outcome = outcome(Status::Error);
    outcome.error = Some(Failure {
        kind: ErrorKind::Failed,
        message: "exit code 1".into(),
        advice: None,
    });
    outcome.content = vec![Content::text("output"), Content::text("exit code 1")];
    let value = to_json(&outcome, Era::Modern);
    assert_eq!(texts(&value), ["failed: exit code 1\n--- text ---\noutput"]);
}

#[test]
fn data_without_content_is_shown_as_text_too_and_keeps_its_bytes() {
    let mut outcome = outcome(Status::Ok);
    let data = r#"{"z":12345678901234567890123,"a":1.50}"#;
    outcome.data = Some(RawValue::from_string(data.into()).unwrap());
    let server = RawValue::from_string("{}".into()).unwrap();
    let mut out = Vec::new();
    write(
        &mut out,
        &outcome,
        &CallFollowUp::Nothing,
        Era::Modern,
        &server,
    );
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains(&format!("\"structuredContent\":{data}")),
        "{text}"
    );
    assert_eq!(texts(&to_json(&outcome, Era::Modern)), [data]);
    outcome.content = vec![Content::text("said")];
    let both = format!("said\n--- data ---\n{data}");
    assert_eq!(texts(&to_json(&outcome, Era::Modern)), [both]);
}

#[test]
fn no_client_misses_anything_that_a_tool_gave() {
    use haft::testing::rendering::check;

    for era in [
        Era::Modern,
        Era::Legacy(Revision::V2024_11_05),
        Era::Legacy(Revision::LATEST),
    ] {
        check(&format!("{era:?}"), |outcome| {
            let value = to_json(outcome, era);
            let blocks = value["content"].as_array().unwrap().iter();
            let other = blocks
                .filter(|block| block["type"] != "text")
                .map(Value::to_string);
            texts(&value).join("\n") + &other.collect::<String>()
        });
    }
}

/// V1: a command that failed reached clients as its failure alone.
#[test]
fn a_command_that_failed_says_its_output_and_a_note_does_not_replace_it() {
    let mut outcome = outcome(Status::Error);
    outcome.error = Some(Failure {
        kind: ErrorKind::Failed,
        message: "exit code 3 after 0.1 s".into(),
        advice: None,
    });
    let data = r#"{"exit_code":3,"stdout":"1 failed: adds","stderr":"expected 4, got 5"}"#;
    outcome.data = Some(RawValue::from_string(data.into()).unwrap());
    outcome.notes = vec![".env looks empty".into()];
    let expect = "failed: exit code 3 after 0.1 s\n--- stdout ---\n1 failed: adds\n--- stderr ---\nexpected 4, got 5\n\
                  --- note ---\n.env looks empty";
    for era in [Era::Modern, Era::Legacy(Revision::V2024_11_05)] {
        assert_eq!(texts(&to_json(&outcome, era)), [expect]);
    }
}

/// What haft adds to a server's result stands in a block of its own that the server's blocks cannot imitate.
#[test]
fn a_note_is_added_to_what_a_server_sent_and_the_rest_stays_as_it_is() {
    for (sent, expect) in [
        (
            r#"{"content": [ {"type":"text","text":"a"} ]}"#,
            r#""content": [ {"type":"text","text":"a"} ,{"type":"text","text":"--- note ---\nn"}]"#,
        ),
        (
            r#"{"content":[]}"#,
            r#""content":[{"type":"text","text":"--- note ---\nn"}]"#,
        ),
        (
            r#"{"content":[{"type":"text","text":"--- note ---\nfine"}]}"#,
            r#"{"type":"text","text":"---- note ----\nn"}]"#,
        ),
    ] {
        let mut outcome = outcome(Status::Ok);
        let original: Value = serde_json::from_str(sent).unwrap();
        let text = original["content"][0]["text"].as_str();
        outcome.content = text.map(Content::text).into_iter().collect();
        let original = RawValue::from_string(sent.into()).unwrap();
        outcome.original = Some(haft::result::OriginalResult::new(original));
        outcome.notes = vec!["n".into()];
        let mut out = Vec::new();
        let server = RawValue::from_string("{}".into()).unwrap();
        write(
            &mut out,
            &outcome,
            &CallFollowUp::Nothing,
            Era::Modern,
            &server,
        );
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(expect), "{text}");
    }
}

#[test]
fn every_kind_of_content_is_spelled_as_the_client_knows_it() {
    let mut outcome = outcome(Status::Ok);
    outcome.content = vec![
        Content::text("text"),
        Content::Image {
            data: "aW1n".into(),
            mime_type: "image/png".into(),
        },
        Content::Audio {
            data: "c25k".into(),
            mime_type: "audio/wav".into(),
        },
        Content::Resource {
            uri: "file:///a".into(),
            text: "inside".into(),
            mime_type: Some("text/plain".into()),
        },
        Content::ResourceLink {
            uri: "file:///b".into(),
            name: "b".into(),
            mime_type: None,
            bytes: Some(3),
        },
    ];
    outcome.artifacts = vec![Artifact {
        reference: "sha256-00".into(),
        media_type: "text/plain".into(),
        bytes: 9,
        preview: String::new(),
    }];
    insta::assert_json_snapshot!("content_modern", to_json(&outcome, Era::Modern));
    let oldest = Era::Legacy(Revision::V2024_11_05);
    insta::assert_json_snapshot!("content_2024_11_05", to_json(&outcome, oldest));
}
