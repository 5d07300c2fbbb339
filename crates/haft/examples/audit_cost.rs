//! Measures what recording costs a call: the time to hand one event to the archive, in bursts and without a pause.

#![expect(clippy::print_stdout, reason = "a measurement is for the screen")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::audit::archive::Archive;
use haft::audit::redact::Redactor;
use haft::audit::{AuditEvent, AuditSink as _, CallEnd, CallRecord, EventKind, RunStart};
use haft::call::{CallId, Origin, Principal, RunId};
use haft::clock;
use haft::permission::Verdict;
use haft::result::Status;

/// Number of calls per burst, with two events each.
const BURST: u32 = 5_000;
/// Number of bursts. The writer catches up in the pauses between them.
const BURSTS: usize = 40;
/// Number of calls without a pause: more than the queue holds.
const STREAM: u32 = 400_000;

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::temp_dir().join(format!("haft-audit-cost-{}", std::process::id()));
    let archive = Archive::new(&home, Redactor::default())?;
    let run = RunId::new("cost");
    let start = RunStart {
        principal: Principal::local("ada"),
        entry_point: "example".into(),
        workspace: None,
        profile: "workspace".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let started = event(&run, EventKind::RunStarted(Arc::new(start)));
    runtime.block_on(archive.record_durably(started))?;

    let mut each = Vec::new();
    for _ in 0..BURSTS {
        each.push(burst(&archive, &run, BURST)? / (2 * BURST));
        runtime.block_on(archive.flush())?;
        std::thread::sleep(Duration::from_millis(5));
    }
    each.sort_unstable();
    println!(
        "in bursts: {:?} a line (median of {BURSTS}; least {:?}, most {:?})",
        each[BURSTS / 2],
        each[0],
        each[BURSTS - 1]
    );

    let before = Instant::now();
    let stream = burst(&archive, &run, STREAM)? / (2 * STREAM);
    runtime.block_on(archive.flush())?;
    let writer = before.elapsed() / (2 * STREAM);
    println!("without a pause: {stream:?} a line, which is the writer's pace: {writer:?} a line");

    let before = Instant::now();
    for n in 0..200 {
        let started = event(&run, EventKind::CallStarted(call(n)));
        runtime.block_on(archive.record_durably(started))?;
    }
    println!(
        "durable, one at a time: {:?} a line",
        before.elapsed() / 200
    );
    let closed = runtime.block_on(archive.close(&run))?;
    println!("{} lines", closed.count + 1);
    drop(archive);
    std::fs::remove_dir_all(home)?;
    Ok(())
}

/// Returns the time that `calls` calls take to hand over their two events, without the time to build the events.
fn burst(archive: &Archive, run: &RunId, calls: u32) -> Result<Duration, Box<dyn Error>> {
    let events: Vec<_> = (0..calls)
        .flat_map(|n| {
            let call = call(n);
            let end = CallEnd {
                status: Status::Ok,
                error: None,
                duration: Duration::from_micros(120),
                artifacts: vec![],
                summary: "read src/main.rs, 120 lines".into(),
                result: None,
                strength: None,
                untrusted: Vec::new(),
            };
            let started = event(run, EventKind::CallStarted(Arc::clone(&call)));
            [started, event(run, EventKind::CallEnded(call, end))]
        })
        .collect();
    let before = Instant::now();
    for event in events {
        archive.record(event)?;
    }
    Ok(before.elapsed())
}

fn event(run: &RunId, what: EventKind) -> AuditEvent {
    AuditEvent {
        run: run.clone(),
        at: clock::now(),
        what,
    }
}

fn call(n: u32) -> Arc<CallRecord> {
    Arc::new(CallRecord {
        call: CallId::new(format!("call-{n}")),
        parent: None,
        tool: "read_file".into(),
        origin: Origin::Model,
        principal: Principal::local("ada"),
        arguments: format!("{{\"path\":\"src/main.rs\",\"start_line\":{n}}}").into(),
        coerced: vec![],
        verdict: Some(Verdict::Allow),
        rule: Some("workspace".into()),
        decided_by: None,
        review: None,
        approval: None,
        untrusted: Vec::new(),
        uses: haft::budget::EffectCounts::NONE,
        properties: haft::policy::RunProperties::NONE,
    })
}
