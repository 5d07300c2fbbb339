//! `Journal`: what a chain did, call by call, so that an interrupted one can be resumed and nothing runs twice.
//!
//! A chain's script runs again from its start and gets the same input as the first time: the seed, the time and the replies to
//! its calls, as long as it makes the same calls in the same order. So a journal holds the inputs of a script, and nothing of
//! the script's own state.

use std::io;

use crate::call::{CallId, RunId};
use crate::future::BoxFuture;
use crate::json::canonical;
use crate::result::Status;
use haft_types::opaque_debug;

pub mod dir;
pub mod line;

/// The future of a journal operation.
pub type JournalFuture<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// Records chains. When an operation completes, its entry survives this process: it is written, but not necessarily on disk
/// (the run's record is, before an effect of risk high or more, and a resumed chain is checked against it).
///
/// Callers await operations on threads that run other tasks, too: a journal must never block there for longer than an append to a
/// file takes. Entries are written in the order in which these functions are called, whether and in whatever order their futures
/// are awaited: the work starts with the call, not with the first poll.
///
/// A caller may be dropped while it waits, because its client disconnected; a dropped chain closes its journal and cannot wait for
/// that. So the journal completes what was started. A journal on a network hands it to a task of its own:
///
/// ```
/// use haft::call::{CallId, RunId};
/// use haft::journal::{JournalFuture, JournalError};
/// use haft::result::Status;
/// use tokio::sync::{mpsc, oneshot};
///
/// struct Close(RunId, CallId, Status, oneshot::Sender<Result<(), JournalError>>);
///
/// /// One task takes entries in their order, and answers each.
/// fn close<'a>(entries: &mpsc::UnboundedSender<Close>, run: &RunId, chain: &CallId, status: Status) -> JournalFuture<'a, ()> {
///     let (run, chain) = (run.clone(), chain.clone());
///     let (answer, answered) = oneshot::channel();
///     let _ = entries.send(Close(run.clone(), chain, status, answer));
///     Box::pin(async move {
///         let ended = |e| JournalError::Io { run, source: std::io::Error::other(e) };
///         answered.await.map_err(ended)?
///     })
/// }
/// ```
pub trait Journal: Send + Sync {
    /// Records the start of a chain, before its script starts.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the entry cannot be written, [`JournalError::Busy`] if another process is working on the run: the
    /// script must not start.
    fn begin<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        start: &'a ChainStart,
    ) -> JournalFuture<'a, ()>;

    /// Records a call that is about to be dispatched.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the entry cannot be written, [`JournalError::Busy`] if another process took over the run: the call must
    /// not run.
    fn call<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        call: &'a JournalCall,
    ) -> JournalFuture<'a, ()>;

    /// Records the end of a call; `reply` is what the script is about to receive.
    ///
    /// # Errors
    /// As for [`call`](Self::call): the script must not receive the reply.
    fn end<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        seq: u64,
        reply: &'a str,
    ) -> JournalFuture<'a, ()>;

    /// Records the end of the chain, whatever its status. Also called for a dropped chain, where nothing awaits the future: the journal
    /// completes it, and logs a failure.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    fn close<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        status: Status,
    ) -> JournalFuture<'a, ()>;

    /// Releases a suspended chain from this process; its entries stay, so that it can be resumed. The journal completes this like
    /// [`close`](Self::close).
    ///
    /// # Errors
    /// [`JournalError::Io`] if the run cannot be released.
    fn suspend<'a>(&'a self, run: &'a RunId, chain: &'a CallId) -> JournalFuture<'a, ()>;

    /// Returns the chains of a run that are not closed and that no process is working on, in the order in which they started.
    ///
    /// # Errors
    /// [`JournalError::Busy`] if another process is working on the run, [`JournalError::Damaged`] names a line that cannot be parsed,
    /// [`JournalError::Io`] tells why a journal cannot be opened.
    fn abandoned<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<RecordedChain>>;

    /// Returns a chain of a run that is not closed and that no other process is working on: the given one, or else the last.
    ///
    /// # Errors
    /// As for [`abandoned`](Self::abandoned).
    fn interrupted<'a>(
        &'a self,
        run: &'a RunId,
        chain: Option<&'a CallId>,
    ) -> JournalFuture<'a, Option<RecordedChain>>;
}

opaque_debug!(Journal);

/// The inputs of a script before its first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainStart {
    /// The script.
    pub code: String,
    /// The chain's arguments as they came in: JSON, including the script.
    pub arguments: String,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Its time when it started, in nanoseconds since 1970.
    pub started_ns: i128,
}

/// A call that a script makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCall {
    /// Its number within the chain, from 1.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// The [`digest`] of its arguments, as the script passed them.
    pub args_digest: String,
    /// Input that differs each time (times, random bytes) and that the script read since the previous call: JSON.
    pub noise: String,
}

/// A recorded chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChain {
    /// The call that started it.
    pub chain: CallId,
    /// Its inputs.
    pub start: ChainStart,
    /// Its calls, in order.
    pub calls: Vec<RecordedCall>,
    /// The numbers of the calls that ended, in the order in which they did.
    pub ends: Vec<u64>,
}

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// The call.
    pub call: JournalCall,
    /// The reply that the script received; `None` for a call that was dispatched but did not end.
    pub reply: Option<String>,
    /// Whether it started according to the run's record, or this is unknown. A call of risk high or more without a record of its start
    /// has not run: that line is on disk before the call runs.
    pub started: bool,
}

/// Why a journal could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process is working on this run.
    #[error("run {0} is still active in another process")]
    Busy(RunId),
    /// The file's content is not what was written.
    #[error("journal of run {run}, line {line}: {problem}")]
    Damaged {
        /// The run.
        run: RunId,
        /// The line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// The journal could not be written or read.
    #[error("journal of run {run}: {source}")]
    Io {
        /// The run.
        run: RunId,
        /// The system's error.
        source: io::Error,
    },
}

/// Returns the digest that identifies a recorded call: SHA-256 of the canonical arguments (RFC 8785).
pub fn digest(arguments: &str) -> String {
    canonical::args_digest(arguments)
}
