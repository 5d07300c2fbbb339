//! Tests of the archive: what the lines contain, how runs fail and end, and that nothing is lost or late.

mod resume;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::audit::runs::{events, list, run_dir};
use crate::audit::verify::verify;
use crate::audit::{CallEnd, CallRecord, EventKind, RunStart};
use crate::call::{CallId, Origin, Principal};
use crate::error::ErrorKind;
use crate::permission::Verdict;
use crate::result::Status;

/// An archive in its own folder, with one run started.
struct Scene {
    home: tempfile::TempDir,
    archive: Archive,
    run: RunId,
}

impl Scene {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive::new(home.path(), Redactor::new(["open-sesame"])).unwrap();
        let scene = Self {
            home,
            archive,
            run: RunId::new("run-1"),
        };
        scene.archive.record(Scene::start("run-1")).unwrap();
        scene
    }

    fn start(run: &str) -> AuditEvent {
        let start = RunStart {
            principal: Principal::local("ada"),
            entry_point: "call".into(),
            workspace: Some("/w".into()),
            profile: "workspace".into(),
        };
        event(&RunId::new(run), EventKind::RunStarted(Arc::new(start)))
    }

    fn dir(&self) -> PathBuf {
        run_dir(self.home.path(), self.run.as_str()).unwrap()
    }

    fn lines(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.dir().join(file)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn event(run: &RunId, what: EventKind) -> AuditEvent {
    AuditEvent {
        run: run.clone(),
        at: clock::now(),
        what,
    }
}

fn call(id: &str, arguments: &str) -> Arc<CallRecord> {
    Arc::new(CallRecord {
        call: CallId::new(id),
        parent: None,
        tool: "write_file".into(),
        origin: Origin::Model,
        principal: Principal::local("ada"),
        arguments: arguments.into(),
        coerced: vec!["/max_lines".into()],
        verdict: Some(Verdict::Allow),
        rule: Some("Edit(src/**)".into()),
        decided_by: None,
        review: None,
        approval: None,
        untrusted: Vec::new(),
        uses: crate::budget::EffectCounts::NONE,
        properties: crate::policy::RunProperties::NONE,
    })
}

fn end(status: Status) -> CallEnd {
    CallEnd {
        status,
        error: (status != Status::Ok).then(|| (ErrorKind::Denied, "no: open-sesame".into())),
        duration: Duration::from_micros(1234),
        artifacts: vec![],
        summary: "wrote a.txt".into(),
        result: None,
        strength: None,
        untrusted: Vec::new(),
    }
}

#[tokio::test]
async fn a_run_is_written_as_the_contract_says_and_closed() {
    let scene = Scene::new();
    let (archive, run) = (&scene.archive, &scene.run);
    let ran = call("c1", r#"{"path":"a.txt","key":"open-sesame"}"#);
    archive
        .record(event(run, EventKind::CallStarted(Arc::clone(&ran))))
        .unwrap();
    archive
        .record(event(run, EventKind::CallEnded(ran, end(Status::Ok))))
        .unwrap();
    archive
        .record(event(
            run,
            EventKind::CallEnded(call("c2", ""), end(Status::Denied)),
        ))
        .unwrap();
    let closed = archive.close(run).await.unwrap();

    let lines = scene.lines("events.jsonl");
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "run_started",
            "call_started",
            "call_ended",
            "call_ended",
            "closed"
        ]
    );
    for (line, seq) in lines.iter().zip(1..) {
        assert_eq!(
            (&line["v"], &line["seq"], &line["run"]),
            (&1.into(), &seq.into(), &"run-1".into())
        );
        assert!(line["ts"].as_str().unwrap().ends_with('Z'));
    }
    let ended = &lines[2];
    assert_eq!(ended["arguments"], r#"{"path":"a.txt","key":"[redacted]"}"#);
    assert_eq!(
        ended["args_digest"],
        crate::json::canonical::args_digest(r#"{"key":"open-sesame","path":"a.txt"}"#)
    );
    assert_eq!(
        (&ended["status"], &ended["duration_ms"]),
        (&"ok".into(), &1.234.into())
    );
    assert_eq!(
        (&ended["verdict"], &ended["rule"]),
        (&"allow".into(), &"Edit(src/**)".into())
    );
    assert_eq!(
        (&ended["origin"], &ended["principal"]),
        (&"model".into(), &"local/ada".into())
    );
    assert_eq!(ended["coerced"][0], "/max_lines");
    assert!(ended.get("decided_by").is_none() && ended.get("error").is_none());
    assert_eq!(lines[3]["error"]["message"], "no: [redacted]");

    assert_eq!(scene.lines("logs/tools.jsonl"), lines[2..4]);
    assert_eq!(scene.lines("logs/errors.jsonl"), lines[3..4]);
    assert_eq!((closed.count, closed.calls), (4, 2));
    assert_eq!(
        (&lines[4]["count"], &lines[4]["head"]),
        (&4.into(), &closed.head.as_str().into())
    );

    let report = verify(&scene.dir(), Some(&closed)).unwrap();
    assert!(
        report.ok && report.lines == 5 && report.in_doubt.is_empty(),
        "{report:?}"
    );
    assert_eq!(
        archive.close(run).await.unwrap(),
        closed,
        "closed a second time"
    );
}

#[tokio::test]
async fn folders_are_private() {
    let scene = Scene::new();
    scene.archive.flush().await.unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = scene.dir();
    for folder in ["", "logs", "workspace", "deliverables", "archive"] {
        assert_eq!(mode(dir.join(folder)), 0o700, "{folder}");
    }
    for file in ["events.jsonl", "logs/tools.jsonl", "logs/errors.jsonl"] {
        assert_eq!(mode(dir.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn events_of_a_run_that_is_not_open_are_refused() {
    let scene = Scene::new();
    let (archive, run) = (&scene.archive, &scene.run);
    let started = |run: &RunId| event(run, EventKind::CallStarted(call("c", "{}")));
    assert!(archive.record(started(&RunId::new("other"))).is_err());
    assert!(
        archive.record(Scene::start("run-1")).is_err(),
        "begun twice"
    );
    archive.close(run).await.unwrap();
    assert!(archive.record(started(run)).is_err(), "after its end");
    assert!(archive.close(&RunId::new("other")).await.is_err());
    // The folder exists: another run of this name must not write to it.
    assert!(archive.record_durably(Scene::start("run-1")).await.is_err());
    for id in ["../up", "", ".hidden", "a/b", "-x", &"x".repeat(200)] {
        assert!(
            archive.record_durably(Scene::start(id)).await.is_err(),
            "{id}"
        );
    }
    archive.shut_down();
    assert!(archive.record(Scene::start("late")).is_err());
    assert!(archive.record_durably(Scene::start("late")).await.is_err());
}

#[tokio::test]
async fn when_a_line_cannot_be_written_the_run_takes_no_more() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 3] = [
        ("removed", |dir| fs::remove_dir_all(dir).unwrap()),
        ("a view removed", |dir| {
            fs::remove_file(dir.join("logs/tools.jsonl")).unwrap();
        }),
        ("cut", |dir| {
            fs::write(dir.join("events.jsonl"), "").unwrap();
        }),
    ];
    for (name, harm) in harms {
        let scene = Scene::new();
        let (archive, run) = (&scene.archive, &scene.run);
        let ended = || event(run, EventKind::CallEnded(call("c", "{}"), end(Status::Ok)));
        archive.record_durably(ended()).await.unwrap();
        archive.record(Scene::start("run-2")).unwrap();
        harm(&scene.dir());
        assert!(
            archive.record_durably(ended()).await.is_err(),
            "{name}: that line"
        );
        assert!(archive.record(ended()).is_err(), "{name}: a later one");
        assert!(archive.close(run).await.is_err(), "{name}: its end");
        archive.close(&RunId::new("run-2")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_are_all_recorded_in_one_sound_chain() {
    let scene = Scene::new();
    let archive = Arc::new(Archive::new(scene.home.path(), Redactor::default()).unwrap());
    let run = RunId::new("busy");
    archive.record(Scene::start("busy")).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let (archive, run) = (Arc::clone(&archive), run.clone());
            tokio::spawn(async move {
                for n in 0..500 {
                    let record = call(&format!("{task}-{n}"), "{}");
                    let started = event(&run, EventKind::CallStarted(Arc::clone(&record)));
                    if n % 50 == 0 {
                        archive.record_durably(started).await.unwrap();
                    } else {
                        archive.record(started).unwrap();
                    }
                    archive
                        .record(event(&run, EventKind::CallEnded(record, end(Status::Ok))))
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let closed = archive.close(&run).await.unwrap();
    assert_eq!((closed.calls, closed.count), (4000, 8001));
    let report = verify(&run_dir(scene.home.path(), "busy").unwrap(), Some(&closed)).unwrap();
    assert!(report.ok && report.in_doubt.is_empty(), "{report:?}");
}

#[tokio::test]
async fn more_runs_than_files_may_be_open_are_all_written() {
    let scene = Scene::new();
    let ids: Vec<_> = (0..150).map(|n| RunId::new(format!("many-{n}"))).collect();
    for round in 0..3 {
        for id in &ids {
            if round == 0 {
                scene.archive.record(Scene::start(id.as_str())).unwrap();
            }
            let ended = event(id, EventKind::CallEnded(call("c", "{}"), end(Status::Ok)));
            scene.archive.record(ended).unwrap();
        }
        scene.archive.flush().await.unwrap();
    }
    for id in &ids {
        let closed = scene.archive.close(id).await.unwrap();
        let report = verify(
            &run_dir(scene.home.path(), id.as_str()).unwrap(),
            Some(&closed),
        )
        .unwrap();
        assert!(report.ok && report.lines == 5, "{report:?}");
    }
}

#[tokio::test]
async fn what_waits_is_written_when_the_archive_is_dropped() {
    let scene = Scene::new();
    for n in 0..100 {
        let started = EventKind::CallStarted(call(&format!("c{n}"), "{}"));
        scene.archive.record(event(&scene.run, started)).unwrap();
    }
    let Scene { home, archive, run } = scene;
    drop(archive);
    let report = verify(&run_dir(home.path(), run.as_str()).unwrap(), None).unwrap();
    assert!(
        report.ok && report.lines == 101 && report.in_doubt.len() == 100,
        "{report:?}"
    );
}

#[tokio::test]
async fn a_long_call_leaves_a_bounded_line() {
    let scene = Scene::new();
    let long = "\u{1}".repeat(1 << 20);
    let record = Arc::new(CallRecord {
        tool: long.clone(),
        call: CallId::new(long.clone()),
        coerced: vec![long.clone(); 500],
        rule: Some(long.clone()),
        ..CallRecord::clone(&call("c", &long))
    });
    let ending = CallEnd {
        summary: long.clone(),
        result: None,
        artifacts: vec![long.clone(); 500],
        ..end(Status::Error)
    };
    scene
        .archive
        .record(event(&scene.run, EventKind::CallEnded(record, ending)))
        .unwrap();
    let closed = scene.archive.close(&scene.run).await.unwrap();
    let report = verify(&scene.dir(), Some(&closed)).unwrap();
    assert!(report.ok && report.lines == 3, "{report:?}");
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_shown() {
    let scene = Scene::new();
    for (n, id) in ["b", "a", "c"].into_iter().enumerate() {
        let mut start = Scene::start(id);
        start.at += 1_000_000_000 * (n as i128 + 1);
        scene.archive.record(start).unwrap();
        let ended = event(
            &RunId::new(id),
            EventKind::CallEnded(call("c", "{}"), end(Status::Ok)),
        );
        scene.archive.record(ended).unwrap();
    }
    scene.archive.close(&RunId::new("a")).await.unwrap();
    scene.archive.flush().await.unwrap();
    let runs = list(scene.home.path(), 3).unwrap();
    let seen: Vec<_> = runs
        .iter()
        .map(|r| (r.run.as_str(), r.state.as_str(), r.calls))
        .collect();
    assert_eq!(
        seen,
        [("c", "open", 1), ("a", "closed", 1), ("b", "open", 1)]
    );
    assert_eq!(runs[0].start.principal, Principal::local("ada"));
    let shown: Vec<_> = events(scene.home.path(), "a")
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(shown.len(), 3);
    assert!(
        events(scene.home.path(), "nobody").is_err() && events(scene.home.path(), "../x").is_err()
    );
    assert!(list(&scene.home.path().join("none"), 9).unwrap().is_empty());
}
