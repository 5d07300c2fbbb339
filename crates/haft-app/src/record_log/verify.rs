//! Verifying the log without asking anyone: its tree, its signatures, older checkpoints, and the record of every run in it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use haft::audit::index::{ClosedEvent, RunFilter, RunState};
use haft::call::RunId;
use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::problem::Problem;
use crate::record_log::VerifierKey;

mod heads;
mod leaves;

use heads::SignedHeads;
use leaves::LeafChecks;

/// Number of runs that are read from the index at a time.
const PAGE: u32 = 10_000;
/// Maximum number of findings that a report lists.
const MOST_FINDINGS: usize = 1_000;

/// What to verify the log against besides what this machine has.
#[derive(Debug, Clone, Default)]
pub struct LogChecks {
    /// Files with checkpoints that were kept elsewhere.
    pub checkpoints: Vec<PathBuf>,
    /// The key that must have signed; by default that of this machine.
    pub key: Option<VerifierKey>,
    /// Records of runs that ended before this day or time (RFC 3339) may have been deleted.
    pub kept_since: Option<String>,
}

/// What was found (contract §9).
#[derive(Debug, Clone, Default, Serialize)]
pub struct LogReport {
    /// Whether nothing was found that does not fit.
    pub ok: bool,
    /// The log's name; `None` if there is no log.
    pub origin: Option<String>,
    /// The key that the signatures were verified with.
    pub key: Option<String>,
    /// Number of leaves that the log's checkpoint has signed.
    pub size: u64,
    /// The root of the tree of these leaves, in base64.
    pub root: Option<String>,
    /// Number of runs whose records are those that the log holds.
    pub runs: u64,
    /// Number of runs whose records may have been deleted, as was said, and are gone.
    pub retired: u64,
    /// Finished runs that are not in the log yet.
    pub pending: Vec<String>,
    /// The checkpoints that the log was compared with.
    pub checkpoints: Vec<CheckpointResult>,
    /// What does not fit.
    pub faults: Vec<LogFinding>,
    /// Number of further findings that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_faults: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A checkpoint that the log was compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointResult {
    /// The file that it is from.
    pub source: String,
    /// The number of leaves that it signs.
    pub size: u64,
    /// Whether it is signed by the key and the log begins with these leaves.
    pub ok: bool,
}

/// The kinds of what does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A run's record is not the one that the log holds.
    Changed,
    /// A run's record is gone.
    Removed,
    /// A finished run is not in the log.
    Missing,
    /// Leaves are not those that were signed.
    Rewritten,
    /// Leaves that were signed are gone.
    Truncated,
    /// A checkpoint is not signed by the key, or cannot be read.
    Signature,
}

impl FindingKind {
    /// Returns the word used in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Missing => "missing",
            Self::Rewritten => "rewritten",
            Self::Truncated => "truncated",
            Self::Signature => "signature",
        }
    }
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogFinding {
    /// What kind it is of.
    pub kind: FindingKind,
    /// The run that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of its leaf, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<u64>,
    /// What does not fit.
    pub problem: String,
}

impl LogReport {
    fn find(&mut self, finding: LogFinding) {
        if self.faults.len() < MOST_FINDINGS {
            self.faults.push(finding);
        } else {
            self.more_faults += 1;
        }
    }

    /// Adds a finding about the log as a whole.
    fn fault(&mut self, kind: FindingKind, problem: impl Into<String>) {
        self.find(LogFinding {
            kind,
            run: None,
            leaf: None,
            problem: problem.into(),
        });
    }
}

/// Verifies the log of the application's state folder, and the record of each run in it.
///
/// # Errors
/// The log, the index or a folder cannot be read. What does not fit is in the report.
pub async fn verify_log(app: &App, checks: LogChecks) -> Result<LogReport, Problem> {
    let kept_since = checks.kept_since.as_deref().map(time).transpose()?;
    app.flush().await?;
    // Runs that finish from here on do not count as missing.
    let log = app.record_log()?.clone();
    let closed = if log.settings().is_index_shared {
        HashMap::new()
    } else {
        closed_runs(app).await?
    };
    let verified = tokio::task::spawn_blocking(move || {
        let settings = log.settings();
        let mut report = LogReport::default();
        let runs = LeafChecks::new(&settings.place, closed, kept_since)?;
        report.pending = settings.place.pending().list()?;
        let pending: HashSet<String> = report.pending.iter().cloned().collect();
        let heads = SignedHeads::collect(settings, &checks, &mut report)?;
        let missing = runs.check(heads, &mut report)?;
        for run in missing.into_iter().filter(|run| !pending.contains(run)) {
            report.find(LogFinding {
                kind: FindingKind::Missing,
                problem: "it is finished, and not in the log".to_owned(),
                run: Some(run),
                leaf: None,
            });
        }
        report.ok = report.faults.is_empty();
        Ok::<_, std::io::Error>(report)
    });
    let unread = |why: String| Problem::failed(format!("cannot verify the record's log: {why}"));
    let verified = verified.await.map_err(|e| unread(e.to_string()))?;
    verified.map_err(|e| unread(e.to_string()))
}

/// Reads a day or a time.
fn time(text: &str) -> Result<Timestamp, Problem> {
    let day = format!("{text}T00:00:00Z");
    let read = text.parse().or_else(|_| day.parse::<Timestamp>());
    read.map_err(|_| {
        Problem::usage(format!("invalid --kept-since `{text}`"))
            .advise("write a day or a time, for example 2026-11-01 or 2026-11-01T08:00:00Z")
    })
}

/// Returns how the index says that runs were closed.
async fn closed_runs(app: &App) -> Result<HashMap<String, ClosedEvent>, Problem> {
    let mut all = HashMap::new();
    let mut after: Option<RunId> = None;
    loop {
        let filter = RunFilter {
            state: Some(RunState::Closed),
            after: after.clone(),
            ..RunFilter::newest(PAGE)
        };
        let page = app.index().list(&filter).await;
        let page = page.map_err(|e| Problem::failed(format!("cannot list the runs: {e}")))?;
        let Some(last) = page.last().map(|entry| entry.run.clone()) else {
            return Ok(all);
        };
        after = Some(last);
        let entries = page.into_iter();
        all.extend(entries.filter_map(|entry| Some((entry.run.to_string(), entry.closed?))));
    }
}

/// Returns the key by which the log of the application's state folder is verified, and makes the log if there is none.
///
/// # Errors
/// There is no key, or the log cannot be written.
pub async fn log_key(app: &App) -> Result<VerifierKey, Problem> {
    let log = app.record_log()?.clone();
    let read = tokio::task::spawn_blocking(move || log.verifier()).await;
    read.map_err(|e| Problem::failed(format!("cannot read the key of the record's log: {e}")))?
}
