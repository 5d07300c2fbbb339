//! `Journal`: what a chain did, call by call, so that an interrupted one can be gone on with and nothing runs twice.
//!
//! A chain's script runs again from its start. What it was told the first time it is told again: the seed, the time, the
//! replies to its calls, as long as it asks the same in the same order. So a journal holds what went into a script, and
//! nothing of the script itself.

use std::io;

use crate::call::{CallId, RunId};
use crate::json::canonical;
use crate::opaque::opaque_debug;
use crate::result::Status;

pub mod dir;
pub mod line;

/// Keeps chains. Every call returns when the entry survives this process: it is written, not necessarily on the disk
/// (before an effect of risk high or more the run's record is, and a chain that is gone on with is held against it).
pub trait Journal: Send + Sync {
    /// A chain begins, before its script does.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the entry cannot be written: the script must not begin then.
    fn begin(&self, run: &RunId, chain: &CallId, start: &ChainStart) -> Result<(), JournalError>;

    /// A call is about to be dispatched.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the entry cannot be written: the call must not run then.
    fn call(&self, run: &RunId, chain: &CallId, call: &JournalCall) -> Result<(), JournalError>;

    /// A call has ended; `reply` is what the script is about to be told.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the entry cannot be written.
    fn end(&self, run: &RunId, chain: &CallId, seq: u64, reply: &str) -> Result<(), JournalError>;

    /// The chain has ended, however it did. Must not be lost with the caller: also called on a cancelled one.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the entry cannot be written.
    fn close(&self, run: &RunId, chain: &CallId, status: Status) -> Result<(), JournalError>;

    /// This process is not at the chain any more, which waits: what there is of it stays, for whoever goes on with it.
    ///
    /// # Errors
    /// [`JournalError::Io`] where the journal cannot be closed.
    fn suspend(&self, run: &RunId, chain: &CallId) -> Result<(), JournalError>;

    /// The chains of a run that were not closed and that no process is at, in the order in which they began.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] names the line that cannot be read, [`JournalError::Io`] says why a journal cannot be opened.
    fn abandoned(&self, run: &RunId) -> Result<Vec<Recorded>, JournalError>;

    /// A chain of a run that nobody closed and no other process is at: this one, or the last where none is named.
    ///
    /// # Errors
    /// [`JournalError::Busy`] where a process is at the chain, else as for [`abandoned`](Self::abandoned).
    fn interrupted(
        &self,
        run: &RunId,
        chain: Option<&CallId>,
    ) -> Result<Option<Recorded>, JournalError>;
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
