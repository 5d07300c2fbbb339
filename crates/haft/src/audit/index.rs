//! `RunIndex`: the runs and how each ended, stored apart from the archives so that neither can be rewritten alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audit::RunStart;
use crate::call::{Principal, RunId};
use crate::error::HostFailure;
use crate::future::BoxFuture;
use crate::result::Status;
use haft_types::opaque_debug;

/// How an archive was closed: the content of its `closed` event, and the hash of that event itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEvent {
    /// Number of lines before the `closed` event.
    pub count: u64,
    /// Hash of the last line before it.
    pub head: String,
    /// Number of calls that ended in the run.
    pub calls: u64,
    /// Hash of the `closed` event's own line; only the index has it.
    pub seal: String,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is running, or its process died.
    Open,
    /// It waits for an approval.
    Suspended,
    /// It ended, and its archive is sealed.
    Closed,
}

impl RunState {
    /// Returns the word used in the index and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Suspended => "suspended",
            Self::Closed => "closed",
        }
    }
}

/// One run in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    /// The run.
    pub run: RunId,
    /// Its principal, entry point, workspace and profile.
    pub start: RunStart,
    /// Its state.
    pub state: RunState,
    /// Start time, RFC 3339 UTC.
    pub started: String,
    /// End time, RFC 3339 UTC.
    pub ended: Option<String>,
    /// Number of calls so far.
    pub calls: u64,
    /// How its archive was closed.
    pub closed: Option<ClosedEvent>,
    /// Notes on its calls; `None` if no process wrote any.
    pub notes: Option<RunNotes>,
}

/// What a list shows of a run besides its start and end. It is for display: nothing is verified by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunNotes {
    /// The client's own name, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The first call that is not nested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstCall>,
    /// Status of the last call that is not nested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Status>,
    /// The exit code of the last call that is not nested, if its program ended by itself with another one than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Number of calls per status, including nested calls.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// How many of the calls with the status `error` are programs that ended by themselves with an exit code other than 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub exits: u64,
    /// What the run changed in the workspace; `None` if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
}

impl RunNotes {
    /// Returns the number of calls that failed, timed out or were denied.
    pub fn failed(&self) -> u64 {
        FAILED
            .iter()
            .filter_map(|status| self.statuses.get(status.as_str()))
            .sum()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The word for calls whose program ended by itself with an exit code other than 0, where counts are by status. Their status is
/// `error`, but nothing is wrong with haft or with the call: the program says so, as failing tests do.
pub const EXIT: &str = "exit";

/// The statuses of calls that did not do what was requested, although they were not cancelled.
pub const FAILED: [Status; 3] = [Status::Error, Status::Denied, Status::Timeout];

/// A run's first call, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstCall {
    /// The tool.
    pub tool: String,
    /// The most informative argument, redacted and on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// The size of a run's changes: files, and lines of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCount {
    /// Number of files, links and folders.
    pub files: u64,
    /// Number of lines added.
    pub added: u64,
    /// Number of lines removed.
    pub removed: u64,
}

/// Number of calls of one tool that ended with one status in one hour of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTally {
    /// Distinguishes the processes that worked on the run: the start time of each, in nanoseconds since 1970.
    pub part: i128,
    /// Whole hours since 1970, UTC.
    pub hour: i64,
    /// The tool.
    pub tool: String,
    /// Their status.
    pub status: Status,
    /// Whether their programs ended by themselves with an exit code other than 0.
    pub exit: bool,
    /// The counts.
    pub count: CallCount,
}

impl CallTally {
    /// Returns the word under which they are counted: their status, or [`EXIT`].
    pub fn word(&self) -> &'static str {
        if self.exit {
            EXIT
        } else {
            self.status.as_str()
        }
    }
}

/// Counts of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCount {
    /// Number of calls.
    pub calls: u64,
    /// Their total duration in milliseconds, including waits for approvals.
    pub total_ms: u64,
    /// Number of calls that a user decided.
    pub decided: u64,
    /// Milliseconds that these calls waited for the decision.
    pub waited_ms: u64,
}

impl CallCount {
    /// Adds other counts.
    pub fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_ms = self.total_ms.saturating_add(other.total_ms);
        self.decided = self.decided.saturating_add(other.decided);
        self.waited_ms = self.waited_ms.saturating_add(other.waited_ms);
    }
}

/// What is noted about a run at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteEntry {
    /// Time of the note, in nanoseconds since 1970.
    pub at: i128,
    /// Start time of the run, in nanoseconds since 1970.
    pub started: i128,
    /// The notes for its row.
    pub notes: RunNotes,
    /// The counts that changed.
    pub tallies: Vec<CallTally>,
}

/// The calls of all runs in one hour, by tool and status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HourCount {
    /// Whole hours since 1970, UTC.
    pub hour: i64,
    /// The tool.
    pub tool: String,
    /// Their status, or [`EXIT`].
    pub status: String,
    /// The counts.
    #[serde(flatten)]
    pub count: CallCount,
}

/// Selects runs for a list. All given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this principal.
    pub principal: Option<Principal>,
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Only runs in this workspace.
    pub workspace: Option<String>,
    /// Only runs with a call of this tool.
    pub tool: Option<String>,
    /// Only runs with a call that has this status (of the given tool, if any).
    pub status: Option<Status>,
    /// Only runs with a call that failed, timed out or was denied.
    pub failed: bool,
    /// Only runs started at this time or later, in nanoseconds since 1970.
    pub since: Option<i128>,
    /// Only runs started before this time, in nanoseconds since 1970.
    pub until: Option<i128>,
    /// Only runs listed after this one: the last of the previous page.
    pub after: Option<RunId>,
    /// Only runs noted at this time or later, in nanoseconds since 1970.
    pub noted_since: Option<i128>,
    /// Maximum number of runs.
    pub limit: u32,
}

impl RunFilter {
    /// Selects the newest runs, at most `limit`.
    pub fn newest(limit: u32) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// Why an operation on the index failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// A run is opened twice.
    #[error("run {0} is already in the index")]
    Exists(RunId),
    /// The run is unknown, or closed and therefore final.
    #[error("run {0} is not open in the index")]
    NotOpen(RunId),
    /// The underlying store failed.
    #[error("run index: {0}")]
    Store(#[source] HostFailure),
}

/// Stores the index of runs. Several processes may use it at the same time.
pub trait RunIndex: Send + Sync {
    /// Notes that a run started, at `at` nanoseconds since 1970.
    fn open<'a>(
        &'a self,
        run: &'a RunId,
        start: &'a RunStart,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// Notes the number of calls of a run so far, and whether it waits for an approval.
    fn progress<'a>(
        &'a self,
        run: &'a RunId,
        calls: u64,
        suspended: bool,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// Notes how a run's archive was closed; once, and final.
    fn close<'a>(
        &'a self,
        run: &'a RunId,
        closed: &'a ClosedEvent,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// Replaces the notes of a run, and the counts of its calls for each given part, hour, tool and status. Closed runs accept notes,
    /// too.
    fn note<'a>(
        &'a self,
        run: &'a RunId,
        notes: &'a NoteEntry,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// Returns the runs that match the filter, newest first.
    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>>;

    /// Returns the calls of all runs by hour, tool and status, starting at this hour (since 1970, UTC).
    fn activity(&self, since_hour: i64) -> BoxFuture<'_, Result<Vec<HourCount>, IndexError>>;

    /// Returns a run, if the index knows it.
    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunEntry>, IndexError>>;
}

opaque_debug!(RunIndex);
