//! Audit: the events every call leaves, and the sinks that must hear them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::approval::id::ApprovalId;
use crate::budget::Uses;
use crate::call::{CallId, Origin, Principal, RunId};
use crate::error::{ErrorKind, Failure};
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;
use crate::permission::Verdict;
use crate::result::Status;

pub mod archive;
pub mod index;
pub mod redact;
pub mod runs;
pub mod verify;

mod line;
mod queue;
mod layout;
mod run_folder;
mod writer;

/// One thing that happened in a run. Cheap to make: digests, redaction and JSON are the sink's work, off the call's path.
#[derive(Debug, Clone)]
pub struct Event {
    /// The run.
    pub run: RunId,
    /// Nanoseconds since 1970, UTC.
    pub at: i128,
    /// What happened.
    pub what: EventKind,
}

/// The kinds of event.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// A run began.
    RunStarted(Arc<RunStart>),
    /// A run that another process started and did not finish is resumed.
    RunResumed(Arc<RunStart>),
    /// A tool is about to run: written before it does.
    CallStarted(Arc<CallRecord>),
    /// A call came to its end, however it ended; also a refused one that never started.
    CallEnded(Arc<CallRecord>, CallEnd),
    /// A run ended; the sink adds count and head hash.
    RunClosed,
}

/// What is known when a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// For whom.
    pub principal: Principal,
    /// The entry point: `call`, `serve`, `library`, …; the record's member is `door`.
    pub entry_point: String,
    /// The workspace's root.
    pub workspace: Option<String>,
    /// The policy's profile.
    pub profile: String,
}

/// What is known of a call when it has been judged.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The call.
    pub call: CallId,
    /// The call that it was made within: a chain's.
    pub parent: Option<CallId>,
    /// The tool's name as asked for.
    pub tool: String,
    /// Who asked.
    pub origin: Origin,
    /// For whom.
    pub principal: Principal,
    /// The effective arguments: after coercion, with bound values; as asked for when the call got no further.
    pub arguments: Arc<str>,
    /// Paths of arguments that were coerced.
    pub coerced: Vec<String>,
    /// The ruling, when it came to one.
    pub verdict: Option<Verdict>,
    /// The rule that decided, as written, or the profile.
    pub rule: Option<String>,
    /// Who decided an Ask.
    pub decided_by: Option<String>,
    /// The request that was decided.
    pub approval: Option<ApprovalId>,
    /// What strangers may have written of its result: [`UntrustedSource`](crate::untrusted::UntrustedSource)s as text.
    pub untrusted: Vec<String>,
    /// What it took of the budgets of effects.
    pub uses: Uses,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// The honest status.
    pub status: Status,
    /// Why not, where it did not succeed.
    pub error: Option<(ErrorKind, String)>,
    /// From the first check to the end.
    pub duration: Duration,
    /// Refs of results kept aside.
    pub artifacts: Vec<String>,
    /// The one line for a person.
    pub summary: String,
    /// The beginning of the result, where it says more than the summary.
    pub result: Option<String>,
    /// How strongly it was confined.
    pub strength: Option<String>,
    /// What else strangers may have written of what it read, beyond its record's.
    pub untrusted: Vec<String>,
}

/// Why an event could not be recorded; the call is refused then.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct AuditError(Failure);

impl AuditError {
    /// A failure that says this, which reads on after "record the call: ".
    pub fn new(message: impl fmt::Display) -> Self {
        Self(Failure::new(format!("record the call: {message}")))
    }

    /// Adds the cause.
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self(self.0.with_source(source))
    }
}

/// Whoever must hear every event. Hooks are sinks: they watch, they never change a call.
pub trait AuditSink: Send + Sync {
    /// What it is called where it fails; the name of its type unless it says otherwise.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Takes an event in order. May wait when its queue is full, never drops; an error refuses the call.
    ///
    /// # Errors
    /// The sink cannot take the event, as its disk is full or its writer has ended.
    fn record(&self, event: Event) -> Result<(), AuditError>;

    /// Takes an event and answers when it is durable: used before an effect of risk `high` or more.
    fn record_durably(&self, event: Event) -> BoxFuture<'_, Result<(), AuditError>> {
        let taken = self.record(event);
        Box::pin(async move { taken })
    }
}

opaque_debug!(AuditSink);
