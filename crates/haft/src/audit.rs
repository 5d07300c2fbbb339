//! Audit: the events that every call leaves, and the sinks that receive them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::approval::ApprovalId;
use crate::approval::review::Review;
use crate::budget::EffectCounts;
use crate::call::{CallId, Origin, Principal, RunId};
use crate::error::{ErrorKind, HostFailure};
use crate::future::BoxFuture;
use crate::permission::Verdict;
use crate::policy::RunProperties;
use crate::result::Status;
use haft_types::opaque_debug;

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

/// An event in a run. Cheap to create: digests, redaction and JSON are the sink's work, off the call's path.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// The run.
    pub run: RunId,
    /// Time in nanoseconds since 1970, UTC.
    pub at: i128,
    /// What happened.
    pub what: EventKind,
}

/// The kinds of event.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// A run starts.
    RunStarted(Arc<RunStart>),
    /// A run that another process started and did not finish is resumed.
    RunResumed(Arc<RunStart>),
    /// A tool is about to run; recorded before it does.
    CallStarted(Arc<CallRecord>),
    /// A call ends in any way; includes refused calls that never started.
    CallEnded(Arc<CallRecord>, CallEnd),
    /// A run ends; the sink adds the count and the head hash.
    RunClosed,
}

/// What is known when a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// The principal that the run is for.
    pub principal: Principal,
    /// The entry point: `call`, `serve`, `library`, …; recorded as `door`.
    pub entry_point: String,
    /// The root of the workspace.
    pub workspace: Option<String>,
    /// The policy's profile.
    pub profile: String,
}

/// What is known of a call once it is judged.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The call.
    pub call: CallId,
    /// The call that it is nested in: a chain's.
    pub parent: Option<CallId>,
    /// The tool's name as the caller wrote it.
    pub tool: String,
    /// The call's origin.
    pub origin: Origin,
    /// The principal that the call is for.
    pub principal: Principal,
    /// The arguments as they were judged: coerced, with refs unresolved and without the values that the host fills in.
    /// The caller's own text if refs were resolved, host values were filled in, or the call got no further.
    pub arguments: Arc<str>,
    /// Paths of coerced arguments.
    pub coerced: Vec<String>,
    /// The ruling, if there was one.
    pub verdict: Option<Verdict>,
    /// The deciding rule, as written, or the profile.
    pub rule: Option<String>,
    /// Who decided the request for approval.
    pub decided_by: Option<String>,
    /// The request that was decided; the one that was withdrawn, if the call is decided without it.
    pub approval: Option<ApprovalId>,
    /// What a reviewer said of the request before a person was asked.
    pub review: Option<Box<Review>>,
    /// Untrusted sources of its result: [`UntrustedSource`](crate::untrusted::UntrustedSource)s as text.
    pub untrusted: Vec<String>,
    /// What it used of the effect budgets.
    pub uses: EffectCounts,
    /// What it added to what its run holds of the Rule of Two.
    pub properties: RunProperties,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// Its status.
    pub status: Status,
    /// Why the call did not succeed, if so.
    pub error: Option<(ErrorKind, String)>,
    /// Time from the first check to the end.
    pub duration: Duration,
    /// Refs of results stored as artifacts.
    pub artifacts: Vec<String>,
    /// The one-line summary for the user.
    pub summary: String,
    /// The start of the result, if it says more than the summary.
    pub result: Option<String>,
    /// How strongly the call was confined.
    pub strength: Option<String>,
    /// Untrusted sources that it read in addition to those in its record.
    pub untrusted: Vec<String>,
}

impl CallEnd {
    /// Returns the exit code with which the call's program ended by itself, if that is why the call has the status `error`: the
    /// error of a command begins with it.
    pub fn exit_code(&self) -> Option<i32> {
        match &self.error {
            Some((ErrorKind::Failed, message)) => exit_code(message),
            _ => None,
        }
    }
}

/// Returns the exit code that a command's error begins with: "exit code 3 after 0.1 s".
pub fn exit_code(message: &str) -> Option<i32> {
    let rest = message.strip_prefix("exit code ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Why an event could not be recorded; the call is then refused.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct AuditError(HostFailure);

impl AuditError {
    /// Creates a failure; `message` continues "record the call: ".
    pub fn new(message: impl fmt::Display) -> Self {
        Self(HostFailure::new(format!("record the call: {message}")))
    }

    /// Adds the cause.
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self(self.0.with_source(source))
    }
}

/// A receiver of every event. Hooks are sinks: they watch and never change a call.
pub trait AuditSink: Send + Sync {
    /// Returns the name used in error messages; by default the name of the type.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Records an event, in order. May wait while its queue is full, but never drops one; an error refuses the call.
    ///
    /// # Errors
    /// The sink cannot record the event, for example because its disk is full or its writer has ended.
    fn record(&self, event: AuditEvent) -> Result<(), AuditError>;

    /// Records an event and completes when it is durable; used before an effect of risk `high` or more.
    fn record_durably(&self, event: AuditEvent) -> BoxFuture<'_, Result<(), AuditError>> {
        let recorded = self.record(event);
        Box::pin(async move { recorded })
    }
}

opaque_debug!(AuditSink);
