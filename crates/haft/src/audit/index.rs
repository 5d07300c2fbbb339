//! `RunIndex`: which runs there are and how each ended, kept apart from the archives so that neither can be rewritten alone.

use serde::Serialize;

use crate::audit::RunStart;
use crate::call::{Principal, RunId};
use crate::error::Failure;
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;

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

    /// The newest runs first, at most `limit`; of one principal where given.
    fn list<'a>(
        &'a self,
        principal: Option<&'a Principal>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>>;

    /// One run, if the index knows it.
    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunEntry>, IndexError>>;
}

opaque_debug!(RunIndex);
