//! Kill -9 at random points: the record that remains is open and sound, and says which calls may have run.
//!
//! The test starts its own binary as the process that it kills.

#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haft::audit::archive::Archive;
use haft::audit::index::RunState;
use haft::audit::redact::Redactor;
use haft::audit::runs::{events, run_dir};
use haft::audit::verify::verify;
use haft::audit::{AuditEvent, AuditSink as _, CallEnd, CallRecord, EventKind, RunStart};
use haft::call::{CallId, Origin, Principal, RunId};
use haft::clock;
use haft::result::Status;

/// Makes the test's own binary the victim, and names the folder to write to.
const VICTIM: &str = "HAFT_TEST_VICTIM_HOME";
/// Number of calls of a victim that is not killed: enough that every kill interrupts it.
const CALLS: u32 = 100_000;
const KILLS: u64 = 25;

/// Records calls until it is killed, and prints which starts are durable.
#[test]
fn victim() {
    let Ok(home) = std::env::var(VICTIM) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let archive = Archive::new(home, Redactor::default()).unwrap();
    let durably = |what| {
        let recorded = archive.record_durably(event(what));
        runtime.block_on(recorded).unwrap();
    };
    let start = RunStart {
        principal: Principal::local("ada"),
        entry_point: "test".into(),
        workspace: None,
        profile: "workspace".into(),
    };
    durably(EventKind::RunStarted(Arc::new(start)));
    println!("durable started");
    for n in 0..CALLS {
        let call = call(n);
        let started = EventKind::CallStarted(Arc::clone(&call));
        if n % 7 == 0 {
            durably(started);
            println!("durable c{n}");
        } else {
            archive.record(event(started)).unwrap();
        }
        // Every eleventh call has no end.
        if n % 11 != 10 {
            archive
                .record(event(EventKind::CallEnded(call, end(n))))
                .unwrap();
        }
    }
}

fn event(what: EventKind) -> AuditEvent {
    AuditEvent {
        run: RunId::new("victim"),
        at: clock::now(),
        what,
    }
}

fn call(n: u32) -> Arc<CallRecord> {
    Arc::new(CallRecord {
        call: CallId::new(format!("c{n}")),
        parent: None,
        tool: "write_file".into(),
        origin: Origin::Host,
        principal: Principal::local("ada"),
        arguments: format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(300)).into(),
        coerced: vec![],
        verdict: None,
        rule: None,
        decided_by: None,
        review: None,
        approval: None,
        untrusted: Vec::new(),
        uses: haft::budget::EffectCounts::NONE,
        properties: haft::policy::RunProperties::NONE,
    })
}

fn end(n: u32) -> CallEnd {
    CallEnd {
        status: if n.is_multiple_of(5) {
            Status::Error
        } else {
            Status::Ok
        },
        error: None,
        duration: Duration::ZERO,
        artifacts: vec![],
        summary: "done".into(),
        result: None,
        strength: None,
        untrusted: Vec::new(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only a process of its own can be killed"
)]
fn start(home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["victim", "--exact", "--nocapture"])
        .env(VICTIM, home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_run_is_open_and_sound_and_its_unended_calls_are_in_doubt() {
    // Seeded by the time, so the points differ from run to run; a failure prints them.
    let mut random = u64::try_from(clock::now() & i128::from(u32::MAX)).unwrap() | 1;
    let mut ended_between = 0;
    for _ in 0..KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let moment = Duration::from_micros((random >> 33) % 60_000);
        let home = tempfile::tempdir().unwrap();
        let mut child = start(home.path());
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = said
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.ends_with("durable started"));
        assert!(begun, "the victim ended by itself");
        // slow on purpose: the kill can come at any moment.
        thread::sleep(moment);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(
            status.code().is_none(),
            "the victim ended by itself: {status}"
        );
        let durable: Vec<_> = said
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("durable ").map(str::to_owned))
            .collect();
        ended_between += u64::from(check(home.path(), &durable, moment));
    }
    assert!(
        ended_between > KILLS / 2,
        "most kills must find calls: {ended_between}"
    );
}

/// Checks that the record has everything that was reported durable; returns whether a call started before the kill.
fn check(home: &Path, durable: &[String], moment: Duration) -> bool {
    let dir = run_dir(home, "victim").unwrap();
    let report = verify(&dir, None).unwrap();
    assert!(report.ok, "killed after {moment:?}: {report:?}");
    assert_eq!(report.state, RunState::Open);

    let mut started = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for event in events(home, "victim").unwrap() {
        let event: serde_json::Value = serde_json::from_str(&event.unwrap()).unwrap();
        let call = event["call"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "call_started" => {
                seen.insert(call.clone());
                started.insert(call);
            }
            "call_ended" => drop(started.remove(&call)),
            _ => {}
        }
    }
    let doubted: BTreeSet<_> = report
        .in_doubt
        .iter()
        .map(|doubt| doubt.call.clone())
        .collect();
    assert_eq!(doubted, started, "killed after {moment:?}");
    assert!(
        report
            .in_doubt
            .iter()
            .all(|doubt| doubt.note == "may have run")
    );
    for call in durable {
        assert!(
            seen.contains(call),
            "{call} was durable, and is gone; killed after {moment:?}"
        );
    }
    assert!(fs::read(dir.join("events.jsonl")).unwrap().len() > 100);
    !seen.is_empty()
}
