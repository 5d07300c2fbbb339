//! Outcomes of every kind, and what each must show of them: the table that every renderer of outcomes is tested with.

use serde_json::value::RawValue;

use crate::call::{CallId, RunId};
use crate::error::ErrorKind;
use crate::result::{Artifact, Content, Failure, Outcome, Status};

/// How a call ended.
struct EndCase {
    name: &'static str,
    status: Status,
    failure: Option<ErrorKind>,
}

impl EndCase {
    const fn ok(name: &'static str) -> Self {
        Self {
            name,
            status: Status::Ok,
            failure: None,
        }
    }

    const fn failure(name: &'static str, status: Status, kind: ErrorKind) -> Self {
        Self {
            name,
            status,
            failure: Some(kind),
        }
    }
}

/// All ways in which a call ends, but waiting.
const ENDS: [EndCase; 9] = [
    EndCase::ok("ok"),
    EndCase::failure("failed", Status::Error, ErrorKind::Failed),
    EndCase::failure("timeout", Status::Timeout, ErrorKind::Timeout),
    EndCase::failure("cancelled", Status::Cancelled, ErrorKind::Cancelled),
    EndCase::failure("denied late", Status::Denied, ErrorKind::Denied),
    EndCase::failure("conflict", Status::Error, ErrorKind::Conflict),
    EndCase::ok("approved elsewhere"),
    EndCase::ok("background"),
    EndCase::ok("detached"),
];

/// What a tool gave.
const GIVEN: [&str; 6] = [
    "text",
    "data",
    "command",
    "text and data",
    "media",
    "artifact",
];

/// An outcome, and what its reader must find.
#[derive(Debug)]
pub struct RenderingCase {
    /// What it is: how it ended, what the tool gave, whether there are notes.
    pub name: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The texts that must be there, whatever else there is.
    pub must_say: Vec<&'static str>,
    /// The notes that must be there, too.
    pub must_note: Vec<&'static str>,
}

/// Returns an outcome for every way a call ends, everything that a tool can give, and with and without notes.
pub fn rows() -> Vec<RenderingCase> {
    let mut rows = Vec::new();
    for end in ENDS {
        for given in GIVEN {
            for has_notes in [false, true] {
                rows.push(row(&end, given, has_notes));
            }
        }
    }
    rows.push(suspended_row());
    rows
}

/// Checks that a renderer leaves nothing out of any row. `render` returns everything that its reader gets.
///
/// # Panics
/// Something is missing.
pub fn check(renderer: &str, render: impl Fn(&Outcome) -> String) {
    for row in rows() {
        let text = render(&row.outcome);
        for part in row.must_say.iter().chain(&row.must_note) {
            assert!(
                text.contains(part),
                "{renderer}, {}: no {part:?} in:\n{text}",
                row.name
            );
        }
    }
}

fn row(end: &EndCase, given: &str, has_notes: bool) -> RenderingCase {
    let EndCase {
        name: end,
        status,
        failure: kind,
    } = *end;
    let mut outcome = Outcome::new(RunId::new("r-1"), CallId::new("c-1"), "tool", status);
    let mut must_say = Vec::new();
    "the line for people".clone_into(&mut outcome.summary);
    outcome.error = kind.map(|kind| Failure {
        kind,
        message: "exit code 3 after 0.1 s".to_owned(),
        advice: Some("look at the output".to_owned()),
    });
    if kind.is_some() {
        must_say.extend(["exit code 3 after 0.1 s", "look at the output"]);
    }
    must_say.extend(give(&mut outcome, given));
    let goes_on = match end {
        "background" => Some(
            r#"{"stdout":"begun\n","stderr":"","stdout_bytes":6,"truncated":false,"task":"cmd-7"}"#,
        ),
        "detached" => Some(
            r#"{"stdout":"begun\n","stderr":"late\n","stdout_bytes":6,"task":"cmd-7","suggested_timeout_s":30}"#,
        ),
        _ => None,
    };
    if let Some(data) = goes_on.filter(|_| outcome.data.is_none()) {
        outcome.data = RawValue::from_string(data.to_owned()).ok();
        must_say.extend(["begun", "cmd-7"]);
    }
    let mut must_note = Vec::new();
    if end == "approved elsewhere" {
        must_note.push("This is the outcome of turn-1-1.1. Nothing ran now.");
    }
    if has_notes {
        must_note.extend([".env looks empty to commands", "changes are pending"]);
    }
    outcome.notes = must_note.iter().map(|note| (*note).to_owned()).collect();
    RenderingCase {
        name: format!("{end}, {given}, notes: {has_notes}"),
        outcome,
        must_say,
        must_note,
    }
}

/// Adds what the tool gave; returns what must be said of it.
fn give(outcome: &mut Outcome, given: &str) -> Vec<&'static str> {
    let data = |text: &str| RawValue::from_string(text.to_owned()).ok();
    match given {
        "text" => {
            outcome.content = vec![Content::text("first text\n"), Content::text("second text")];
            vec!["first text", "second text"]
        }
        "data" => {
            outcome.data = data(r#"{"members":["alpha","beta"]}"#);
            vec!["members", "alpha", "beta"]
        }
        "command" => {
            outcome.data = data(
                r#"{"exit_code":3,"stdout":"1 failed: adds\n","stderr":"expected 4, got 5\n","stdout_bytes":15,"truncated":false,"changes":[{"path":"made.txt","action":"create"}]}"#,
            );
            vec!["1 failed: adds", "expected 4, got 5", "made.txt"]
        }
        "text and data" => {
            outcome.content = vec![Content::text("only a remark")];
            outcome.data = data(r#"{"members":["gamma"]}"#);
            vec!["only a remark", "gamma"]
        }
        "media" => {
            outcome.content = vec![
                Content::text("a chart"),
                Content::Image {
                    data: "iVBORw0KGgo=".to_owned(),
                    mime_type: "image/png".to_owned(),
                },
            ];
            vec!["a chart", "image/png"]
        }
        _ => {
            outcome.artifacts = vec![Artifact {
                reference: "sha256-00ff".to_owned(),
                media_type: "text/plain".to_owned(),
                bytes: 9_000,
                preview: "it begins so".to_owned(),
            }];
            vec!["sha256-00ff", "it begins so"]
        }
    }
}

fn suspended_row() -> RenderingCase {
    let mut outcome = Outcome::new(
        RunId::new("r-1"),
        CallId::new("c-1"),
        "tool",
        Status::Suspended,
    );
    "pending: approval ap-9".clone_into(&mut outcome.summary);
    outcome.content = vec![Content::text(
        "tool needs approval, and the request is pending.",
    )];
    outcome.approval = Some("ap-9".to_owned());
    RenderingCase {
        name: "suspended".to_owned(),
        outcome,
        must_say: vec!["tool needs approval, and the request is pending.", "ap-9"],
        must_note: Vec::new(),
    }
}
