//! The same calls with the archive as audit sink, and the cost of one event that nothing waits for.

use std::sync::Arc;
use std::time::Duration;

use haft::audit::archive::Archive;
use haft::audit::redact::Redactor;
use haft::audit::{AuditEvent, AuditSink, CallRecord, EventKind};
use haft::budget::EffectCounts;
use haft::{CallId, Executor, Origin, Session, Verdict, clock};
use measure::{Row, Step, case, each};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bench::{Bench, Kind, policy};

/// Number of calls in a burst: done before the archive's writer polls again, so that the writer's work is not measured.
const BURST: usize = 512;
/// How often all names are called for the sustained rate: more than the archive's queue holds.
const SUSTAINED: usize = 16;

/// Benches with recording, next to those without.
pub(crate) struct Recorded<'r> {
    runtime: &'r Runtime,
    archive: Arc<Archive>,
    plain: Vec<(Kind, Bench)>,
    recorded: Vec<(Kind, Bench)>,
    session: Session,
    _home: TempDir,
}

impl<'r> Recorded<'r> {
    pub(crate) fn new(runtime: &'r Runtime) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let no_secrets: [&str; 0] = [];
        let archive = Archive::new(home.path(), Redactor::new(no_secrets)).expect("an archive");
        let archive = Arc::new(archive);
        let executor = Executor::new(policy()).with_audit(Arc::clone(&archive) as _);
        let kinds = [Kind::Value, Kind::Typed];
        let session = crate::bench::session(&Kind::Typed.registry(1));
        executor.open(&session).expect("a run");
        Self {
            runtime,
            plain: kinds.map(|kind| (kind, Bench::new(kind, 1_000))).into(),
            recorded: kinds
                .map(|kind| (kind, Bench::with(kind, 1_000, executor.clone())))
                .into(),
            archive,
            session,
            _home: home,
        }
    }

    pub(crate) fn steps(&self) -> Vec<Step<'_>> {
        let mut steps: Vec<Step<'_>> = Vec::new();
        for (kind, bench) in &self.plain {
            let row = Row::new(format!("haft/{}/1000/beside", kind.name()), "ns");
            let once = move || each(case::DRAWS, || self.runtime.block_on(bench.all()));
            steps.push((row, Box::new(once)));
        }
        for (kind, bench) in &self.recorded {
            let row = Row::new(format!("haft/{}/1000/audit", kind.name()), "ns");
            steps.push((row, Box::new(|| self.bursts(bench))));
            let row = Row::new(format!("haft/{}/1000/audit in a row", kind.name()), "ns");
            steps.push((row, Box::new(|| self.row(bench, 1))));
        }
        if let Some((_, bench)) = self.recorded.first() {
            let row = Row::new("haft/value/1000/audit sustained", "ns");
            steps.push((row, Box::new(|| self.row(bench, SUSTAINED))));
        }
        let row = Row::new("haft/audit line", "ns");
        steps.push((row, Box::new(|| self.lines())));
        steps
    }

    /// Times calls in short bursts; the writer works untimed after each.
    fn bursts(&self, bench: &Bench) -> f64 {
        let mut sum = 0.0;
        for names in bench.names().chunks(BURST) {
            sum += each(1, || self.runtime.block_on(bench.some(names)));
            self.flush();
        }
        sum / case::DRAWS as f64
    }

    /// Times calls in sequence; then the writer finishes untimed.
    fn row(&self, bench: &Bench, times: usize) -> f64 {
        let cost = each(case::DRAWS * times, || {
            for _ in 0..times {
                self.runtime.block_on(bench.all());
            }
        });
        self.flush();
        cost
    }

    /// Times events alone, created and handed over as the executor does.
    fn lines(&self) -> f64 {
        let cost = each(case::DRAWS, || {
            for n in 0..case::DRAWS {
                let record = CallRecord {
                    call: CallId::new(format!("call-{n}")),
                    parent: None,
                    tool: case::name(n),
                    origin: Origin::Model,
                    principal: self.session.principal().clone(),
                    arguments: case::ARGUMENTS.into(),
                    coerced: Vec::new(),
                    verdict: Some(Verdict::Allow),
                    rule: Some("profile workspace".into()),
                    decided_by: None,
                    approval: None,
                    untrusted: Vec::new(),
                    uses: EffectCounts::default(),
                    properties: haft::policy::RunProperties::default(),
                    review: None,
                };
                let event = AuditEvent {
                    run: self.session.run().clone(),
                    at: clock::now(),
                    what: EventKind::CallStarted(Arc::new(record)),
                };
                self.archive.record(event).expect("recorded");
            }
        });
        self.flush();
        cost
    }

    fn flush(&self) {
        self.runtime
            .block_on(self.archive.flush())
            .expect("written");
        // The writer goes back to collecting events.
        std::thread::sleep(Duration::from_millis(6));
    }
}
