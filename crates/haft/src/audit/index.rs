//! `RunIndex`: which runs there are and how each ended, kept apart from the archives so that neither can be rewritten alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audit::RunStart;
use crate::call::{Principal, RunId};
use crate::error::Failure;
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;
use crate::result::Status;

/// How an archive was closed: what its `closed` event holds, and the hash of that event itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Lines before the `closed` event.
    pub count: u64,
    /// Hash of the last line before it.
    pub head: String,
    /// Calls that ended in the run.
    pub calls: u64,
    /// Hash of the `closed` event's own line; the index alone has it.
    pub seal: String,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It works, or its process died.
    Open,
    /// It waits for an approval.
    Suspended,
    /// It ended, and its archive is sealed.
    Closed,
}

impl RunState {
    /// The word in the index and in `--json`.
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
    /// For whom, by which entry point, where, under which profile.
    pub start: RunStart,
    /// Where it stands.
    pub state: RunState,
    /// When it began, RFC 3339 UTC.
    pub started: String,
    /// When it ended, RFC 3339 UTC.
    pub ended: Option<String>,
    /// Calls so far.
    pub calls: u64,
    /// How its archive was closed.
    pub closed: Option<Closed>,
    /// What its row says of its calls; none where no process noted any.
    pub notes: Option<RunNotes>,
}

/// What a list says of a run besides its beginning and end. It is for people: nothing is verified by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunNotes {
    /// The client's own name, where it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The first call that no other call made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstCall>,
    /// How the last call that no other call made ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Status>,
    /// How many calls ended with each status; nested calls count, too.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// What the run changed in the workspace; none where it changed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
}

impl RunNotes {
    /// Counts calls that failed, timed out or were denied.
    pub fn failed(&self) -> u64 {
        FAILED
            .iter()
            .filter_map(|status| self.statuses.get(status.as_str()))
            .sum()
    }
}

/// The statuses of calls that did not do what was asked for, though no one cancelled them.
pub const FAILED: [Status; 3] = [Status::Error, Status::Denied, Status::Timeout];

/// A run's first call, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstCall {
    /// The tool.
    pub tool: String,
    /// The argument that says most, redacted and on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// The size of what a run changed: files, and lines of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCount {
    /// Files, links and folders.
    pub files: u64,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// How many calls of one tool ended with one status in one hour of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTally {
    /// Tells apart the processes that worked on the run: when each began, in nanoseconds since 1970.
    pub part: i128,
    /// Whole hours since 1970, UTC.
    pub hour: i64,
    /// The tool.
    pub tool: String,
    /// How they ended.
    pub status: Status,
    /// The counts.
    pub count: CallCount,
}

/// Counts of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallCount {
    /// Calls.
    pub calls: u64,
    /// Milliseconds that they took together, waits for approvals included.
    pub total_ms: u64,
    /// Calls about which a user decided.
    pub decided: u64,
    /// Milliseconds that these waited for the decision.
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

/// What is noted of a run at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteEntry {
    /// When it is noted, in nanoseconds since 1970.
    pub at: i128,
    /// When the run began, in nanoseconds since 1970.
    pub started: i128,
    /// What its row says.
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
    /// How they ended.
    pub status: String,
    /// The counts.
    #[serde(flatten)]
    pub count: CallCount,
}

/// Which runs a list holds. Every condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// For whom they were started.
    pub principal: Option<Principal>,
    /// In this state.
    pub state: Option<RunState>,
    /// In this workspace.
    pub workspace: Option<String>,
    /// With a call of this tool.
    pub tool: Option<String>,
    /// With a call that ended like this (of the tool, where one is given).
    pub status: Option<Status>,
    /// With a call that failed, timed out or was denied.
    pub failed: bool,
    /// Started at this time or later, in nanoseconds since 1970.
    pub since: Option<i128>,
    /// Started before this time, in nanoseconds since 1970.
    pub until: Option<i128>,
    /// Listed after this run: the last of the page before.
    pub after: Option<RunId>,
    /// Noted at this time or later, in nanoseconds since 1970.
    pub noted_since: Option<i128>,
    /// At most so many.
    pub limit: u32,
}

impl RunFilter {
    /// The newest runs, at most `limit`.
    pub fn newest(limit: u32) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// Why the index could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// A run is opened twice.
    #[error("run {0} is in the index already")]
    Exists(RunId),
    /// It knows no such run, or one that is closed and does not change any more.
    #[error("run {0} is not open in the index")]
    NotOpen(RunId),
    /// The store behind it failed.
    #[error("run index: {0}")]
    Store(#[source] Failure),
}

/// Keeps the index of runs. Several processes may use one at a time.
pub trait RunIndex: Send + Sync {
    /// Notes that a run began, at `at` nanoseconds since 1970.
    fn open<'a>(
        &'a self,
        run: &'a RunId,
        start: &'a RunStart,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// Notes how many calls a run has made so far, and whether it waits for an approval.
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
        closed: &'a Closed,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// Notes what a list says of a run, and replaces the counts of its calls for each part, hour, tool and status that is given.
    /// A closed run takes notes, too.
    fn note<'a>(
        &'a self,
        run: &'a RunId,
        notes: &'a NoteEntry,
    ) -> BoxFuture<'a, Result<(), IndexError>>;

    /// The newest runs first, as the filter wants them.
    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>>;

    /// The calls of all runs by hour, tool and status, from this hour (since 1970, UTC) on.
    fn activity(&self, since_hour: i64) -> BoxFuture<'_, Result<Vec<HourCount>, IndexError>>;

    /// One run, if the index knows it.
    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunEntry>, IndexError>>;
}

opaque_debug!(RunIndex);
