//! `Tally`: figures about runs for lists and charts, gathered from events and written to the index shortly after; no call waits for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::Inbox;
use haft::audit::index::{CallCount, CallTally, EXIT, FirstCall, NoteEntry, RunIndex, RunNotes};
use haft::audit::redact::Redactor;
use haft::audit::{AuditError, AuditEvent, AuditSink, CallEnd, CallRecord, EventKind};
use haft::call::RunId;
use haft::change::ChangeLog;
use haft::clock;
use haft::error::ErrorKind;
use haft::result::Status;
use haft::workspace::Workspace;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::argument;
use crate::metrics::Metrics;
use crate::run::change_count as count;

/// How long events are gathered before they are written.
const GATHER_TIME: Duration = Duration::from_millis(250);
/// Nanoseconds per hour.
const NANOS_PER_HOUR: i128 = 3_600_000_000_000;
/// Maximum number of tools of one run that are counted by name.
const MAX_TOOLS: usize = 64;
/// Maximum number of characters of a tool's name.
const MAX_NAME: usize = 200;
/// Maximum number of decisions of one run that are looked up at a time.
const MAX_DECISIONS: usize = 1_000;

/// The name under which calls of further tools are counted.
const OTHER: &str = "(other)";
/// The name under which calls of unknown tools are counted.
const UNKNOWN: &str = "(unknown)";

/// The dependencies of the tally.
pub(crate) struct TallyParts {
    pub(crate) index: Arc<dyn RunIndex>,
    pub(crate) redactor: Redactor,
    pub(crate) log: Arc<ChangeLog>,
    pub(crate) workspace: Workspace,
}

/// Gathers figures about the runs of this process.
pub(crate) struct Tally {
    parts: TallyParts,
    metrics: Metrics,
    /// The inbox in which decisions are looked up to see how long they took.
    inbox: OnceLock<Arc<dyn Inbox>>,
    runs: Mutex<HashMap<RunId, RunTally>>,
    changed: Arc<Notify>,
}

impl std::fmt::Debug for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tally").finish_non_exhaustive()
    }
}

/// A key of the counts: hour, tool, status.
type TallyKey = (i64, String, &'static str);

/// What is gathered about one run.
#[derive(Debug, Default)]
struct RunTally {
    started: i128,
    /// When this process started or resumed it.
    part: i128,
    notes: RunNotes,
    counts: BTreeMap<TallyKey, TallyEntry>,
    /// The tools that are counted by name.
    tools: BTreeSet<String>,
    /// Calls that a user decided about, whose waits are not looked up yet.
    decided: Vec<(TallyKey, ApprovalId)>,
    /// Whether anything is not written yet.
    dirty: bool,
    /// Whether calls ended since the changes were last counted.
    may_have_changed: bool,
}

#[derive(Debug)]
struct TallyEntry {
    status: Status,
    exit: bool,
    count: CallCount,
    dirty: bool,
}

impl Tally {
    /// Returns a tally that writes what it gathers from now on, if there is a runtime.
    pub(crate) fn new(parts: TallyParts) -> Arc<Self> {
        let tally = Arc::new(Self {
            parts,
            metrics: Metrics::default(),
            inbox: OnceLock::new(),
            runs: Mutex::default(),
            changed: Arc::default(),
        });
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let changed = Arc::clone(&tally.changed);
            runtime.spawn(note_changes(Arc::downgrade(&tally), changed));
        }
        tally
    }

    /// Returns the counts of this process.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Looks up decisions in this inbox from now on.
    pub(crate) fn look_up_in(&self, inbox: Arc<dyn Inbox>) {
        // Set once, when the application is assembled.
        let _ = self.inbox.set(inbox);
    }

    /// Gathers what a run does in this process. The run was started at `started`; `notes` are the figures so far.
    pub(crate) fn begin(&self, run: &RunId, started: i128, notes: RunNotes) {
        let tally = RunTally {
            started,
            part: clock::now(),
            notes,
            dirty: true,
            ..RunTally::default()
        };
        self.runs.lock().insert(run.clone(), tally);
        self.changed.notify_one();
    }

    /// Writes what was gathered about a run that leaves this process.
    pub(crate) async fn end(&self, run: &RunId) {
        if let Some(tally) = self.runs.lock().get_mut(run) {
            tally.dirty = true;
        }
        self.note(run).await;
        self.runs.lock().remove(run);
    }

    /// Writes everything that was gathered.
    pub(crate) async fn flush(&self) {
        let is_dirty = |(run, tally): (&RunId, &RunTally)| tally.dirty.then(|| run.clone());
        let dirty: Vec<RunId> = self.runs.lock().iter().filter_map(is_dirty).collect();
        for run in dirty {
            self.note(&run).await;
        }
    }

    async fn note(&self, run: &RunId) {
        self.count_changes(run).await;
        self.add_waits(run).await;
        let entry = {
            let mut runs = self.runs.lock();
            let Some(tally) = runs.get_mut(run) else {
                return;
            };
            tally.entry()
        };
        // The archive has it all: an incomplete list is no failure of the run.
        if let Err(error) = self.parts.index.note(run, &entry).await {
            tracing::warn!(%run, %error, "note what a run does");
        }
    }

    /// Adds how long users took to decide.
    async fn add_waits(&self, run: &RunId) {
        let Some(inbox) = self.inbox.get() else {
            return;
        };
        let decided = {
            let mut runs = self.runs.lock();
            let tally = runs.get_mut(run);
            tally.map_or_else(Vec::new, |tally| std::mem::take(&mut tally.decided))
        };
        for (cell, approval) in decided {
            let Ok(Some(entry)) = inbox.get(&approval).await else {
                continue;
            };
            let Some(decision) = &entry.decision else {
                continue;
            };
            let waited = (decision.at - entry.request.created) / 1_000_000;
            let waited = u64::try_from(waited).unwrap_or(0);
            self.metrics.count_wait(Duration::from_millis(waited));
            let mut runs = self.runs.lock();
            let tally = runs.get_mut(run);
            if let Some(counted) = tally.and_then(|tally| tally.counts.get_mut(&cell)) {
                counted.count.decided += 1;
                counted.count.waited_ms += waited;
                counted.dirty = true;
            }
        }
    }

    /// Counts what the run changed, if calls of it ended since the last count.
    async fn count_changes(&self, run: &RunId) {
        let may_have_changed = {
            let mut runs = self.runs.lock();
            let tally = runs.get_mut(run);
            tally.is_some_and(|tally| std::mem::take(&mut tally.may_have_changed))
        };
        if !may_have_changed {
            return;
        }
        let (log, workspace) = (Arc::clone(&self.parts.log), self.parts.workspace.clone());
        let of = run.clone();
        let counted = tokio::task::spawn_blocking(move || count::changes(&workspace, &log, &of));
        if let Ok(changes) = counted.await
            && let Some(tally) = self.runs.lock().get_mut(run)
        {
            tally.notes.changes = changes;
        }
    }
}

/// Writes what was gathered, repeatedly, until the tally is dropped.
async fn note_changes(tally: Weak<Tally>, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        tokio::time::sleep(GATHER_TIME).await;
        let Some(tally) = tally.upgrade() else { return };
        tally.flush().await;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

impl RunTally {
    /// Returns what is to be written now, and marks it as written.
    fn entry(&mut self) -> NoteEntry {
        self.dirty = false;
        let part = self.part;
        let tallies = self.counts.iter_mut().filter(|(_, counted)| counted.dirty);
        let tallies = tallies.map(|((hour, tool, _), counted)| {
            counted.dirty = false;
            CallTally {
                part,
                hour: *hour,
                tool: tool.clone(),
                status: counted.status,
                exit: counted.exit,
                count: counted.count,
            }
        });
        NoteEntry {
            at: clock::now(),
            started: self.started,
            notes: self.notes.clone(),
            tallies: tallies.collect(),
        }
    }

    /// Records a call that starts, or that ends without having started.
    fn begin_call(&mut self, call: &CallRecord, redactor: &Redactor) {
        if self.notes.first.is_some() || call.parent.is_some() {
            return;
        }
        self.dirty = true;
        let tool: String = call.tool.chars().take(MAX_NAME).collect();
        self.notes.first = Some(FirstCall {
            tool: redactor.redact(&tool).into_owned(),
            argument: argument::of_text(&call.arguments, redactor),
        });
    }

    /// Records a call that ended.
    fn end_call(&mut self, at: i128, call: &CallRecord, end: &CallEnd) {
        self.dirty = true;
        self.may_have_changed = true;
        let exit_code = end.exit_code();
        let word = exit_code.map_or(end.status.as_str(), |_| EXIT);
        if call.parent.is_none() {
            self.notes.outcome = Some(end.status);
            self.notes.exit_code = exit_code;
        }
        let status = end.status.as_str().to_owned();
        let count = self.notes.statuses.entry(status).or_default();
        *count = count.saturating_add(1);
        let exits = u64::from(exit_code.is_some());
        self.notes.exits = self.notes.exits.saturating_add(exits);
        let tool = self.counted_name(name_of(call, end));
        let hour = i64::try_from(at.div_euclid(NANOS_PER_HOUR)).unwrap_or(0);
        let cell = (hour, tool, word);
        let waits = end.status == Status::Suspended;
        if let Some(approval) = call.approval.clone().filter(|_| !waits)
            && self.decided.len() < MAX_DECISIONS
        {
            self.decided.push((cell.clone(), approval));
        }
        let counted = self.counts.entry(cell).or_insert_with(|| TallyEntry {
            status: end.status,
            exit: exit_code.is_some(),
            count: CallCount::default(),
            dirty: true,
        });
        counted.dirty = true;
        counted.count.add(CallCount {
            calls: 1,
            total_ms: u64::try_from(end.duration.as_millis()).unwrap_or(u64::MAX),
            ..CallCount::default()
        });
    }

    /// Returns the name under which a tool's calls are counted.
    fn counted_name(&mut self, tool: &str) -> String {
        let name: String = tool.chars().take(MAX_NAME).collect();
        if self.tools.contains(&name) {
            return name;
        }
        if self.tools.len() >= MAX_TOOLS {
            return OTHER.to_owned();
        }
        self.tools.insert(name.clone());
        name
    }
}

/// Returns the name under which a call is counted: callers may name tools that do not exist.
fn name_of<'a>(call: &'a CallRecord, end: &CallEnd) -> &'a str {
    let is_not_found = |(kind, _): &(ErrorKind, String)| *kind == ErrorKind::NotFound;
    if call.verdict.is_none() && end.error.as_ref().is_some_and(is_not_found) {
        UNKNOWN
    } else {
        &call.tool
    }
}

impl AuditSink for Tally {
    fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        if let EventKind::CallEnded(call, end) = &event.what {
            let name = name_of(call, end);
            let name = name
                .get(..name.floor_char_boundary(MAX_NAME))
                .unwrap_or(name);
            self.metrics.count_call(name, end.status, end.duration);
        }
        let mut runs = self.runs.lock();
        let Some(tally) = runs.get_mut(&event.run) else {
            return Ok(());
        };
        match &event.what {
            EventKind::CallStarted(call) => tally.begin_call(call, &self.parts.redactor),
            EventKind::CallEnded(call, end) => {
                tally.begin_call(call, &self.parts.redactor);
                tally.end_call(event.at, call, end);
            }
            EventKind::RunStarted(_) | EventKind::RunResumed(_) | EventKind::RunClosed => {}
        }
        if tally.dirty {
            self.changed.notify_one();
        }
        Ok(())
    }
}
