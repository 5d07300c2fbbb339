//! Tests of verifying: each way to tamper with an archive is a row, and no valid state is reported.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::audit::archive::Archive;
use crate::audit::redact::Redactor;
use crate::audit::runs::run_dir;
use crate::audit::{AuditEvent, AuditSink as _, CallEnd, CallRecord, EventKind, RunStart};
use crate::call::{CallId, Origin, Principal, RunId};
use crate::error::ErrorKind;
use crate::result::Status;

/// Lines: 1 is the start, 2-13 are six calls (the third, line 7, fails), 14 is the closing one.
async fn archive(home: &Path, close: bool) -> (PathBuf, Option<ClosedEvent>) {
    let archive = Archive::new(home, Redactor::default()).unwrap();
    let run = RunId::new("r");
    let record = |what| {
        archive
            .record(AuditEvent {
                run: run.clone(),
                at: 0,
                what,
            })
            .unwrap();
    };
    let principal = Principal::local("ada");
    record(EventKind::RunStarted(Arc::new(RunStart {
        principal: principal.clone(),
        entry_point: "call".into(),
        workspace: None,
        profile: "workspace".into(),
    })));
    for n in 0..6 {
        let call = Arc::new(CallRecord {
            call: CallId::new(format!("c{n}")),
            parent: None,
            tool: "read_file".into(),
            origin: Origin::Host,
            principal: principal.clone(),
            arguments: format!("{{\"n\":{n}}}").into(),
            coerced: vec![],
            verdict: None,
            rule: None,
            decided_by: None,
            review: None,
            approval: None,
            untrusted: Vec::new(),
            uses: crate::budget::EffectCounts::NONE,
            properties: crate::policy::RunProperties::NONE,
        });
        record(EventKind::CallStarted(Arc::clone(&call)));
        let failed = n == 2;
        let end = CallEnd {
            status: if failed { Status::Error } else { Status::Ok },
            error: failed.then(|| (ErrorKind::Failed, "it broke".into())),
            duration: Duration::from_millis(1),
            artifacts: vec![],
            summary: "read".into(),
            result: None,
            strength: None,
            untrusted: Vec::new(),
        };
        record(EventKind::CallEnded(call, end));
    }
    let closed = if close {
        Some(archive.close(&run).await.unwrap())
    } else {
        None
    };
    drop(archive);
    (run_dir(home, "r").unwrap(), closed)
}

/// Edits the lines of a file.
fn edit(dir: &Path, file: &str, change: impl FnOnce(&mut Vec<String>)) {
    let path = dir.join(file);
    let mut lines: Vec<_> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    change(&mut lines);
    fs::write(
        path,
        lines.join(
            "
",
        ) + if lines.is_empty() {
            ""
        } else {
            "
"
        },
    )
    .unwrap();
}

/// Replaces a text in the line with this index.
fn replace(dir: &Path, file: &str, line: usize, from: &str, to: &str) {
    edit(dir, file, |lines| {
        let edited = lines[line].replacen(from, to, 1);
        assert_ne!(edited, lines[line], "the row changes nothing");
        lines[line] = edited;
    });
}

/// Cuts bytes off the end of a file.
fn cut(dir: &Path, file: &str, bytes: usize) {
    let text = fs::read_to_string(dir.join(file)).unwrap();
    fs::write(dir.join(file), &text[..text.len() - bytes]).unwrap();
}

/// Adds text to a file.
fn append(dir: &Path, file: &str, more: &str) {
    let text = fs::read_to_string(dir.join(file)).unwrap();
    fs::write(dir.join(file), text + more).unwrap();
}

/// Chains the lines anew, as an attacker who knows the format would.
fn rechain(lines: &mut [String]) {
    let mut prev = GENESIS.to_owned();
    for (line, seq) in lines.iter_mut().zip(1_u64..) {
        let mut value: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).unwrap();
        value.insert("seq".into(), seq.into());
        value.insert("prev".into(), prev.clone().into());
        if value["type"] == "closed" {
            value.insert("head".into(), prev.into());
            value.insert("count".into(), (seq - 1).into());
        }
        *line = serde_json::to_string(&value).unwrap();
        prev = line::hash(line.as_bytes());
    }
}

/// Rewrites record and views consistently.
fn rewrite(dir: &Path) {
    edit(dir, RECORD, |lines| {
        for line in lines.iter_mut() {
            *line = line.replace("it broke", "it was fine");
        }
        rechain(lines);
    });
    mirror(dir);
}

/// Makes the views match the record.
fn mirror(dir: &Path) {
    let record = fs::read_to_string(dir.join(RECORD)).unwrap();
    let ended: Vec<_> = record
        .lines()
        .filter(|l| l.contains("call_ended"))
        .map(str::to_owned)
        .collect();
    edit(dir, ERRORS, |lines| {
        *lines = ended
            .iter()
            .filter(|l| l.contains("\"error\":"))
            .cloned()
            .collect();
    });
    edit(dir, TOOLS, |lines| *lines = ended);
}

type Tamper = fn(&Path);

/// Name, change to a closed run, and first bad line.
const CLOSED: &[(&str, Tamper, u64)] = &[
    (
        "a start edited",
        |d| replace(d, RECORD, 3, "read_file", "list_file"),
        4,
    ),
    (
        "an end edited",
        |d| replace(d, RECORD, 4, "\"ok\"", "\"no\""),
        5,
    ),
    (
        "a byte of space added",
        |d| edit(d, RECORD, |l| l[3].push(' ')),
        4,
    ),
    (
        "the first line edited",
        |d| replace(d, RECORD, 0, "ada", "bob"),
        1,
    ),
    (
        "the last line before the closing edited",
        |d| replace(d, RECORD, 12, "c5", "c9"),
        13,
    ),
    (
        "a hash edited",
        |d| replace(d, RECORD, 3, "prev\":\"", "prev\":\"0"),
        4,
    ),
    (
        "the closing line's time edited",
        |d| replace(d, RECORD, 13, "\"ts\":\"2", "\"ts\":\"3"),
        14,
    ),
    (
        "the closing line's count edited",
        |d| replace(d, RECORD, 13, "\"count\":13", "\"count\":12"),
        14,
    ),
    (
        "a line removed",
        |d| edit(d, RECORD, |l| drop(l.remove(5))),
        6,
    ),
    (
        "the first line removed",
        |d| edit(d, RECORD, |l| drop(l.remove(0))),
        1,
    ),
    (
        "a line twice",
        |d| edit(d, RECORD, |l| l.insert(5, l[5].clone())),
        7,
    ),
    (
        "two lines swapped",
        |d| edit(d, RECORD, |l| l.swap(5, 7)),
        6,
    ),
    ("the end cut", |d| edit(d, RECORD, |l| l.truncate(9)), 10),
    (
        "the closing line cut",
        |d| edit(d, RECORD, |l| l.truncate(13)),
        14,
    ),
    ("cut within a line", |d| cut(d, RECORD, 40), 14),
    ("emptied", |d| fs::write(d.join(RECORD), "").unwrap(), 1),
    ("removed", |d| fs::remove_file(d.join(RECORD)).unwrap(), 1),
    (
        "a line after the closing one",
        |d| edit(d, RECORD, |l| l.push(l[12].clone())),
        15,
    ),
    (
        "half a line after the closing one",
        |d| append(d, RECORD, "{\"v\":1"),
        15,
    ),
    ("rewritten whole, with sound hashes", rewrite, 14),
    (
        "cut and closed anew",
        |d| {
            edit(d, RECORD, |l| {
                l.drain(11..13);
                rechain(l);
            });
            replace(d, RECORD, 11, "\"calls\":6", "\"calls\":5");
            mirror(d);
        },
        12,
    ),
    ("no JSON", |d| edit(d, RECORD, |l| l[6] = "x".into()), 7),
    (
        "no UTF-8",
        |d| {
            let mut bytes = fs::read(d.join(RECORD)).unwrap();
            bytes[10] = 0xff;
            fs::write(d.join(RECORD), bytes).unwrap();
        },
        1,
    ),
    (
        "a line without end",
        |d| fs::write(d.join(RECORD), "x".repeat(1 << 20)).unwrap(),
        1,
    ),
    (
        "another run's record",
        |d| {
            edit(d, RECORD, |l| {
                for x in l.iter_mut() {
                    *x = x.replace("\"r\"", "\"s\"");
                }
                rechain(l);
            });
        },
        1,
    ),
    (
        "the view of calls edited",
        |d| replace(d, TOOLS, 1, "c1", "c7"),
        5,
    ),
    (
        "the view of calls cut",
        |d| edit(d, TOOLS, |l| l.truncate(4)),
        11,
    ),
    (
        "the view of calls removed",
        |d| fs::remove_file(d.join(TOOLS)).unwrap(),
        3,
    ),
    (
        "the view of calls longer",
        |d| edit(d, TOOLS, |l| l.push(l[0].clone())),
        15,
    ),
    (
        "the view of calls reordered",
        |d| edit(d, TOOLS, |l| l.swap(0, 1)),
        3,
    ),
    (
        "the view of errors edited",
        |d| replace(d, ERRORS, 0, "broke", "bent"),
        7,
    ),
    (
        "the view of errors emptied",
        |d| edit(d, ERRORS, Vec::clear),
        7,
    ),
    (
        "the view of errors longer",
        |d| edit(d, ERRORS, |l| l.push("{}".into())),
        15,
    ),
];

#[tokio::test]
async fn a_closed_run_that_was_tampered_with_fails() {
    for (name, tamper, first_bad) in CLOSED {
        let home = tempfile::tempdir().unwrap();
        let (dir, closed) = archive(home.path(), true).await;
        let before = verify(&dir, closed.as_ref()).unwrap();
        assert!(before.ok && before.lines == 14, "{name}: {before:?}");
        tamper(&dir);
        let after = verify(&dir, closed.as_ref()).unwrap();
        assert_eq!(
            (after.ok, after.first_bad),
            (false, Some(*first_bad)),
            "{name}: {after:?}"
        );
        assert_eq!(after.state, RunState::Closed, "{name}");
        assert!(after.problem.is_some(), "{name}");
    }
}

/// Name, change to an open run, whether it is valid afterwards, and its number of lines.
const OPEN: &[(&str, Tamper, bool, u64)] = &[
    ("as it is", |_| (), true, 13),
    (
        "killed within a line",
        |d| append(d, RECORD, "{\"v\":1,\"se"),
        true,
        13,
    ),
    (
        "killed before the views were written",
        |d| {
            edit(d, TOOLS, |l| l.truncate(3));
            edit(d, ERRORS, Vec::clear);
        },
        true,
        13,
    ),
    (
        "killed within a view's line",
        |d| cut(d, TOOLS, 9),
        true,
        13,
    ),
    (
        "a line edited",
        |d| replace(d, RECORD, 3, "read", "lead"),
        false,
        13,
    ),
    (
        "the last line edited",
        |d| replace(d, RECORD, 12, "read", "lead"),
        false,
        13,
    ),
    (
        "cut, which the views still know",
        |d| edit(d, RECORD, |l| l.truncate(8)),
        false,
        8,
    ),
    (
        "a view edited",
        |d| replace(d, TOOLS, 0, "read", "lead"),
        false,
        13,
    ),
];

#[tokio::test]
async fn an_open_run_is_sound_as_far_as_it_goes() {
    for (name, change, ok, lines) in OPEN {
        let home = tempfile::tempdir().unwrap();
        let (dir, _) = archive(home.path(), false).await;
        change(&dir);
        let report = verify(&dir, None).unwrap();
        assert_eq!(
            (report.ok, report.lines, report.state),
            (*ok, *lines, RunState::Open),
            "{name}: {report:?}"
        );
        assert_eq!(report.torn, *name == "killed within a line", "{name}");
    }
}

#[tokio::test]
async fn calls_that_started_and_did_not_end_may_have_run() {
    let home = tempfile::tempdir().unwrap();
    let (dir, _) = archive(home.path(), false).await;
    edit(&dir, RECORD, |lines| lines.truncate(12));
    edit(&dir, TOOLS, |lines| lines.truncate(5));
    let report = verify(&dir, None).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    let expect = serde_json::json!({
        "run": "r", "state": "open", "ok": true, "lines": 12, "first_bad": null,
        "in_doubt": [{"call": "c5", "tool": "read_file", "seq": 12, "note": "may have run"}],
    });
    assert_eq!(json, expect);
}

#[tokio::test]
async fn without_the_index_a_closed_record_stands_for_itself() {
    let home = tempfile::tempdir().unwrap();
    let (dir, _) = archive(home.path(), true).await;
    assert!(verify(&dir, None).unwrap().ok);
    replace(&dir, RECORD, 13, "\"calls\":6", "\"calls\":7");
    assert_eq!(verify(&dir, None).unwrap().first_bad, Some(14));
}
