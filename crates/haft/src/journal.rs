//! `Journal`: what a chain did, call by call, so that an interrupted one can be gone on with and nothing runs twice.
//!
//! A chain's script runs again from its start. What it was told the first time it is told again: the seed, the time, the
//! replies to its calls, as long as it asks the same in the same order. So a journal holds what went into a script, and
//! nothing of the script itself.

use std::io;

use crate::call::{CallId, RunId};
use crate::future::BoxFuture;
use crate::json::canonical;
use crate::opaque::opaque_debug;
use crate::result::Status;

pub mod dir;
pub mod line;

/// The future of a journal's answer.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, JournalError>>;

/// Records chains. Every answer means that the entry survives this process: it is written, not necessarily on the disk
/// (before an effect of risk high or more the run's record is, and a chain that is resumed is held against it).
///
/// A caller awaits the answers on a thread that runs other tasks, too: a journal never blocks there for longer than an
/// append to a file takes. Entries are written in the order in which these functions are called, whether or not and in
/// which order their answers are awaited: an entry's work begins with the call and not with the first poll of its answer.
///
/// A caller may be dropped while it waits, as its client hung up; a chain that is dropped closes its journal and cannot
/// wait for that. So what was begun is finished by the journal. One on a network gives it to a task of its own:
///
/// ```
/// use haft::call::{CallId, RunId};
/// use haft::journal::{Answer, JournalError};
/// use haft::result::Status;
/// use tokio::sync::{mpsc, oneshot};
///
/// struct Close(RunId, CallId, Status, oneshot::Sender<Result<(), JournalError>>);
///
/// /// One task takes entries in their order, and answers each.
/// fn close<'a>(entries: &mpsc::UnboundedSender<Close>, run: &RunId, chain: &CallId, status: Status) -> Answer<'a, ()> {
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
    /// A chain begins, before its script does.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the entry cannot be written, [`JournalError::Busy`] where another process is at the run: the
    /// script must not begin then.
    fn begin<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        start: &'a ChainStart,
    ) -> Answer<'a, ()>;

    /// A call is about to be dispatched.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the entry cannot be written, [`JournalError::Busy`] where another process took the run over:
    /// the call must not run then.
    fn call<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        call: &'a JournalCall,
    ) -> Answer<'a, ()>;

    /// A call has ended; `reply` is what the script is about to receive.
    ///
    /// # Errors
    /// As for [`call`](Self::call): the script must not receive the reply then.
    fn end<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        seq: u64,
        reply: &'a str,
    ) -> Answer<'a, ()>;

    /// The chain has ended, however it did. Also called for a chain that is dropped, whose answer nothing awaits: the
    /// journal finishes it, and logs it where it cannot.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    fn close<'a>(&'a self, run: &'a RunId, chain: &'a CallId, status: Status) -> Answer<'a, ()>;

    /// This process leaves the chain, which is suspended: its entries stay, to be resumed from. Finished by the journal
    /// like [`close`](Self::close).
    ///
    /// # Errors
    /// [`JournalError::Io`] where the run cannot be released.
    fn suspend<'a>(&'a self, run: &'a RunId, chain: &'a CallId) -> Answer<'a, ()>;

    /// The chains of a run that were not closed and that no process is at, in the order in which they began.
    ///
    /// # Errors
    /// [`JournalError::Busy`] where another process is at the run, [`JournalError::Damaged`] names the line that cannot be read,
    /// [`JournalError::Io`] says why a journal cannot be opened.
    fn abandoned<'a>(&'a self, run: &'a RunId) -> Answer<'a, Vec<Recorded>>;

    /// A chain of a run that was not closed and that no other process is at: this one, or the last where none is named.
    ///
    /// # Errors
    /// As for [`abandoned`](Self::abandoned).
    fn interrupted<'a>(
        &'a self,
        run: &'a RunId,
        chain: Option<&'a CallId>,
    ) -> Answer<'a, Option<Recorded>>;
}

opaque_debug!(Journal);

/// What goes into a script before its first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainStart {
    /// The script.
    pub code: String,
    /// The chain's arguments as they came in: JSON, the script among them.
    pub arguments: String,
    /// What its random numbers begin with.
    pub seed: u64,
    /// Its time when it began, in nanoseconds since 1970.
    pub started_ns: i128,
}

/// A call that a script makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCall {
    /// Its number within the chain, from 1.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// The digest of its arguments as the script gave them: [`digest`].
    pub args_digest: String,
    /// What the script saw since the call before of what differs each time (times, random bytes): JSON.
    pub noise: String,
}

/// A recorded chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The call that began it.
    pub chain: CallId,
    /// What went into it.
    pub start: ChainStart,
    /// Its calls, in their order.
    pub calls: Vec<RecordedCall>,
    /// The numbers of those that ended, in the order in which they did.
    pub ends: Vec<u64>,
}

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// What was called.
    pub call: JournalCall,
    /// What the script was told; none of a call that was dispatched and did not end.
    pub reply: Option<String>,
    /// Whether the run's record says that it started, or nobody knows. A call of risk high or more whose record does not
    /// say so has not run: its line is on the disk before it does.
    pub started: bool,
}

/// Why a journal could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else is at this run.
    #[error("run {0} is still at work in another process")]
    Busy(RunId),
    /// The file is not what was written.
    #[error("journal of run {run}, line {line}: {problem}")]
    Damaged {
        /// The run.
        run: RunId,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// It could not be written or read.
    #[error("journal of run {run}: {source}")]
    Io {
        /// The run.
        run: RunId,
        /// What the system said.
        source: io::Error,
    },
}

/// The digest by which a recorded call is known again: SHA-256 of the canonical arguments (RFC 8785).
pub fn digest(arguments: &str) -> String {
    canonical::args_digest(arguments)
}
