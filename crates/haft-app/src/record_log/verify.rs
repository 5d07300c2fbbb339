//! Verifying the log without asking anyone: its tree, its signatures, older checkpoints, and the record of every run in it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use haft::audit::index::ClosedEvent;
use jiff::Timestamp;
use serde::Serialize;

use crate::record_log::{RecordLog, VerifierKey};

mod heads;
mod leaves;

use heads::SignedHeads;
use leaves::LeafChecks;

/// Maximum number of findings that a report lists.
const MOST_FINDINGS: usize = 1_000;

/// What to verify the log against besides what this machine has.
#[derive(Debug, Clone, Default)]
pub struct LogChecks {
    /// Files with checkpoints that were kept elsewhere.
    pub checkpoints: Vec<PathBuf>,
    /// The key that must have signed; by default that of this machine.
    pub key: Option<VerifierKey>,
    /// Records of runs that ended before this time may have been deleted.
    pub kept_since: Option<Timestamp>,
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

/// Verifies the log, and the record of each run in it. `closed` is how the index says that runs were closed; no run that finishes after it was
/// read counts as missing.
pub(crate) fn verify(
    log: &RecordLog,
    closed: HashMap<String, ClosedEvent>,
    checks: &LogChecks,
) -> io::Result<LogReport> {
    let settings = log.settings();
    let mut report = LogReport::default();
    let runs = LeafChecks::new(&settings.place, closed, checks.kept_since)?;
    report.pending = settings.place.pending().list()?;
    let pending: HashSet<String> = report.pending.iter().cloned().collect();
    let heads = SignedHeads::collect(settings, checks, &mut report)?;
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
    Ok(report)
}
