//! `SuspendedCalls`: which calls ended because a person was asked, so that the same call made again finds what became of it.
//!
//! A request of the inbox knows the run in whose name it was asked, and a call of the same run finds it there. This is for
//! what that does not cover: a call that waits for what a call within it asked (a script), and a call that is made again
//! in another run, because each call of its entry point is a run of its own or because its run's process is gone.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use crate::approval::ApprovalId;
use crate::call::{CallId, Principal, RunId};
use crate::error::Failure;
use crate::future::BoxFuture;
use crate::json::canonical::args_digest;
use crate::opaque::opaque_debug;
use crate::spec::ToolName;
use crate::text::hex;

/// Most calls that a process remembers without a store.
const MOST: usize = 1000;

/// Most bytes of their outcomes.
const MOST_BYTES: usize = 64 << 20;

/// A call that ended suspended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedCall {
    /// Its run.
    pub run: RunId,
    /// Itself.
    pub call: CallId,
    /// By what it is found when it is made again: [`key`].
    pub key: String,
    /// The request that it waits for.
    pub approval: ApprovalId,
    /// The request is that of a call within it, which resumes it; else it is its own, and the inbox knows how it ended.
    pub within: bool,
    /// Its run is for it alone: whoever makes it again does so in another run.
    pub alone: bool,
    /// How it ended after the host resumed it without its client: contract §3 as JSON. Empty where
    /// [`find`](SuspendedCalls::find) gives it, which says only that there is one.
    pub outcome: Option<String>,
}

/// Why suspended calls could not be looked up or noted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("suspended calls: {0}")]
pub struct SuspendedError(#[source] pub Failure);

/// Where another run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OtherRun {
    /// A session of it lives: whoever opened it can come back to its calls there.
    InUse,
    /// Its session is gone, and somebody resumes it now.
    Resumed,
    /// No session of it is left anywhere.
    Abandoned,
    /// It has ended.
    Closed,
}

/// Says of other runs of a host where they stand.
pub trait OtherRuns: Send + Sync {
    /// Where this run stands; in use where that cannot be told.
    fn look(&self, run: &RunId) -> OtherRun;

    /// Whether anything is kept from which a call of an abandoned run can be resumed; true where that cannot be told.
    fn can_resume<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> BoxFuture<'a, bool>;
}

opaque_debug!(OtherRuns);

/// Keeps suspended calls until their outcome was told to whoever makes them again.
pub trait SuspendedCalls: Send + Sync {
    /// Notes that a call ended suspended, without an outcome whatever it had; safe when this returns.
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), SuspendedError>>;

    /// Those of a key, the newest first; their outcomes are left empty.
    fn find<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedCall>, SuspendedError>>;

    /// One of them.
    fn get<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedCall>, SuspendedError>>;

    /// Keeps how a resumed call ended, for whoever makes it again.
    fn finish<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: &'a str,
    ) -> BoxFuture<'a, Result<(), SuspendedError>>;

    /// Takes the outcome, and with it the call: the first one gets it.
    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<String>, SuspendedError>>;

    /// Forgets a call, whose outcome was told.
    fn forget<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<(), SuspendedError>>;
}

opaque_debug!(SuspendedCalls);

/// By what a call is found that is made again: tool, principal, workspace, and the arguments in canonical form.
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

/// Suspended calls for as long as the process lives; over a thousand of them, or 64 MiB of outcomes,
/// the oldest are forgotten.
#[derive(Debug, Default)]
pub struct MemorySuspended(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    calls: HashMap<(RunId, CallId), (u64, SuspendedCall)>,
    number: u64,
}

impl Known {
    /// Forgets the oldest calls until the rest is within the bounds.
    fn bound(&mut self) {
        let size = |call: &SuspendedCall| call.outcome.as_ref().map_or(0, String::len);
        let mut bytes: usize = self.calls.values().map(|(_, call)| size(call)).sum();
        while self.calls.len() > MOST || (bytes > MOST_BYTES && self.calls.len() > 1) {
            let oldest = self.calls.iter().min_by_key(|(_, (number, _))| *number);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                return;
            };
            let gone = self.calls.remove(&oldest);
            bytes -= gone.map_or(0, |(_, call)| size(&call));
        }
    }
}

impl MemorySuspended {
    fn known(&self) -> MutexGuard<'_, Known> {
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
