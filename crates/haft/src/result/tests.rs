//! What a model reads: never an empty text, whatever the status.

use serde_json::value::RawValue;

use crate::call::{CallId, RunId};
use crate::error::ErrorKind;
use crate::result::{Artifact, Content, Failure, Outcome, Status};

const STATUSES: [Status; 6] = [
    Status::Ok,
    Status::Error,
    Status::Denied,
    Status::Suspended,
    Status::Timeout,
    Status::Cancelled,
];

fn outcome(status: Status) -> Outcome {
    let mut outcome = Outcome::new(RunId::new("r"), CallId::new("c"), "t", status);
    outcome.operator = Some("haft approvals approve ap-1".into());
    outcome
}

fn failure(kind: ErrorKind, advice: Option<&str>) -> Failure {
    Failure {
        kind,
        message: "no such file".into(),
        advice: advice.map(str::to_owned),
    }
}

fn artifact() -> Artifact {
    Artifact {
        reference: "sha256-ab".into(),
        media_type: "text/plain".into(),
        bytes: 9000,
        preview: "line 1".into(),
    }
}

#[test]
fn every_status_says_something_and_nothing_for_the_operator() {
    for status in STATUSES {
        let bare = outcome(status).to_model();
        assert!(!bare.is_empty(), "{status:?}");
        let failed = Outcome {
            error: Some(failure(ErrorKind::Failed, Some("list them"))),
            ..outcome(status)
        };
        assert_eq!(failed.to_model(), "failed: no such file\nlist them");
        assert!(!bare.contains("approve"), "{status:?}: {bare}");
    }
    assert_eq!(outcome(Status::Ok).to_model(), "done");
    let suspended = Outcome {
        summary: "waits for an approval".into(),
        ..outcome(Status::Suspended)
    };
    assert_eq!(suspended.to_model(), "suspended: waits for an approval");
}

#[test]
fn what_there_is_is_said_once() {
    let data = || RawValue::from_string(r#"{"n":1}"#.into()).ok();
    let ok = |content: Vec<Content>, data, artifacts| Outcome {
        content,
        data,
        artifacts,
        ..outcome(Status::Ok)
    };
    let check = |outcome: Outcome, expect: &str| assert_eq!(outcome.to_model(), expect);
    check(ok(vec![], data(), vec![]), r#"{"n":1}"#);
    let said = |text: &str| ok(vec![Content::text(text)], data(), vec![]);
    check(said("n is 1"), "n is 1\n--- data ---\n{\"n\":1}");
    // A text that is the data says it.
    check(said("{ \"n\": 1 }"), "{ \"n\": 1 }");
    let for_programs = Outcome {
        data_is_for_programs: true,
        ..said("n is 1")
    };
    check(for_programs, "n is 1");
    check(
        ok(vec![Content::text("a")], None, vec![artifact()]),
        "a\n--- artifact ---\n[artifact sha256-ab: text/plain, 9000 bytes]\nline 1",
    );
    check(
        ok(
            vec![Content::text("cut, see sha256-ab")],
            None,
            vec![artifact()],
        ),
        "cut, see sha256-ab",
    );
    let picture = Content::Image {
        data: "aaaa".into(),
        mime_type: "image/png".into(),
    };
    check(ok(vec![picture], None, vec![]), "[picture, image/png]");
    let output = Outcome {
        content: vec![Content::text("no such file"), Content::text("$ cat x")],
        error: Some(failure(ErrorKind::Failed, None)),
        ..outcome(Status::Error)
    };
    check(output, "failed: no such file\n--- text ---\n$ cat x");
}
