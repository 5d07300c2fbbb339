//! `SuspendedCalls`: calls that ended while waiting for a decision, so that the same call made again finds the outcome.
//!
//! A request in the inbox names its run, and a call of the same run finds it there. This covers the other cases: a call that
//! waits for the request of a nested call (a script), and a call that is made again in another run, because each call of its
//! entry point is a run of its own or because the process of its run has exited.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use crate::approval::ApprovalId;
use crate::call::{CallId, Principal, RunId};
use crate::error::HostFailure;
use crate::future::BoxFuture;
use crate::json::canonical::args_digest;
use crate::spec::ToolName;
use crate::text::hex;
use haft_types::opaque_debug;

/// Maximum number of calls that a process remembers without a store.
const MAX_CALLS: usize = 1000;

/// Maximum total size of their outcomes, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// A call that ended suspended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedCall {
    /// The run that it belongs to.
    pub run: RunId,
    /// The id of the call in its run.
    pub call: CallId,
    /// The [`key`] that identifies it when it is made again.
    pub key: String,
    /// The request that it waits for.
    pub approval: ApprovalId,
    /// Whether the request belongs to a nested call, which resumes it; otherwise it is its own, and the inbox knows the outcome.
    pub within: bool,
    /// Whether its run exists only for this call, so that a repeated call is in another run.
    pub alone: bool,
    /// Its outcome after the host resumed it without its client: contract §3 as JSON. [`find`](SuspendedCalls::find) returns an empty
    /// text, which only tells that there is one.
    pub outcome: Option<String>,
}

/// Why suspended calls could not be looked up or stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("suspended calls: {0}")]
pub struct SuspendedError(#[source] pub HostFailure);

/// The state of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OtherRun {
    /// A session of it lives: its client can return to its calls there.
    InUse,
    /// Its session is gone, and another process resumes it now.
    Resumed,
    /// It has no session any more.
    Abandoned,
    /// It has ended.
    Closed,
}

/// Tells the state of a host's other runs.
pub trait OtherRuns: Send + Sync {
    /// Returns the state of this run; `InUse` if that is unknown.
    fn look(&self, run: &RunId) -> OtherRun;

    /// Returns whether a call of an abandoned run can be resumed from stored state; true if that is unknown.
    fn can_resume<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> BoxFuture<'a, bool>;
}

opaque_debug!(OtherRuns);

/// Stores suspended calls until a client that repeats them has received the outcome.
pub trait SuspendedCalls: Send + Sync {
    /// Stores a call as suspended, without any earlier outcome; durable when this returns.
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), SuspendedError>>;

    /// Returns the calls with this key, newest first, with empty outcomes.
    fn find<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedCall>, SuspendedError>>;

    /// Returns this call of this run; `None` if it is not stored.
    fn get<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedCall>, SuspendedError>>;

    /// Stores the outcome of a resumed call, for a client that makes it again.
    fn finish<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: &'a str,
    ) -> BoxFuture<'a, Result<(), SuspendedError>>;

    /// Takes the outcome and removes the call; only the first caller gets it.
    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<String>, SuspendedError>>;

    /// Forgets a call whose outcome was delivered.
    fn forget<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<(), SuspendedError>>;
}

opaque_debug!(SuspendedCalls);

/// Returns the key that identifies a repeated call: tool, principal, workspace, and the arguments in canonical form.
pub fn key(tool: &ToolName, principal: &Principal, workspace: &str, arguments: &str) -> String {
    let digest = args_digest(arguments);
    let parts = [
        tool.as_str(),
        &principal.tenant,
        &principal.subject,
        workspace,
        &digest,
    ];
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}

/// Stores suspended calls for the life of the process. Above a thousand calls, or 64 MiB of outcomes, the oldest are forgotten.
#[derive(Debug, Default)]
pub struct MemorySuspended(Mutex<SuspendedTable>);

#[derive(Debug, Default)]
struct SuspendedTable {
    calls: HashMap<(RunId, CallId), (u64, SuspendedCall)>,
    number: u64,
}

impl SuspendedTable {
    /// Forgets the oldest calls until the rest is within the limits.
    fn bound(&mut self) {
        let size = |call: &SuspendedCall| call.outcome.as_ref().map_or(0, String::len);
        let mut bytes: usize = self.calls.values().map(|(_, call)| size(call)).sum();
        while self.calls.len() > MAX_CALLS || (bytes > MAX_BYTES && self.calls.len() > 1) {
            let oldest = self.calls.iter().min_by_key(|(_, (number, _))| *number);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            let removed = self.calls.remove(&oldest);
            bytes -= removed.map_or(0, |(_, call)| size(&call));
        }
    }
}

impl MemorySuspended {
    fn known(&self) -> MutexGuard<'_, SuspendedTable> {
        self.0.lock()
    }
}

fn name(run: &RunId, call: &CallId) -> (RunId, CallId) {
    (run.clone(), call.clone())
}

impl SuspendedCalls for MemorySuspended {
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), SuspendedError>> {
        let mut known = self.known();
        known.number += 1;
        let number = known.number;
        let noted = SuspendedCall {
            outcome: None,
            ..call.clone()
        };
        known
            .calls
            .insert(name(&call.run, &call.call), (number, noted));
        known.bound();
        Box::pin(async { Ok(()) })
    }

    fn find<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedCall>, SuspendedError>> {
        let known = self.known();
        let mut found: Vec<_> = known
            .calls
            .values()
            .filter(|(_, call)| call.key == key)
            .collect();
        found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        let found = found.into_iter().map(|(_, call)| SuspendedCall {
            outcome: call.outcome.as_ref().map(|_| String::new()),
            ..call.clone()
        });
        let found = found.collect();
        Box::pin(async move { Ok(found) })
    }

    fn get<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedCall>, SuspendedError>> {
        let found = self
            .known()
            .calls
            .get(&name(run, call))
            .map(|(_, call)| call.clone());
        Box::pin(async move { Ok(found) })
    }

    fn finish<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: &'a str,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        let mut known = self.known();
        if let Some((_, call)) = known.calls.get_mut(&name(run, call)) {
            call.outcome = Some(outcome.to_owned());
        }
        known.bound();
        Box::pin(async { Ok(()) })
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<String>, SuspendedError>> {
        let mut known = self.known();
        let name = name(run, call);
        let outcome = known
            .calls
            .get_mut(&name)
            .and_then(|(_, call)| call.outcome.take());
        if outcome.is_some() {
            known.calls.remove(&name);
        }
        Box::pin(async move { Ok(outcome) })
    }

    fn forget<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        self.known().calls.remove(&name(run, call));
        Box::pin(async { Ok(()) })
    }
}
