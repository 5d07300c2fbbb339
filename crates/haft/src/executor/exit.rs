//! The single exit: closes, answers and records every call that began, including dropped ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::approval::ApprovalId;
use crate::audit::{CallEnd, CallRecord, EventKind};
use crate::call::CallId;
use crate::context::Resumption;
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::call_result::OutcomeContent;
use crate::executor::draft::CallIdentity;
use crate::executor::incoming::{CallMode, IncomingCall};
use crate::executor::record_draft::RecordDraft;
use crate::json::canonical::args_digest;
use crate::result::{Artifact, Content, Outcome, Status, milliseconds};
use crate::session::Session;
use crate::session::nest::CallScope;

/// Maximum length of a summary, in bytes.
const MAX_SUMMARY: usize = 160;

/// Maximum number of result bytes that are recorded; sinks redact and cut it further.
const MAX_RESULT: usize = 4 << 10;

/// The message for a resumed call that this process leaves.
pub(super) const STOPPED_MESSAGE: &str =
    "haft stopped before the call ended; it can be resumed again";

/// A call from its first check to its exit. Dropping it unclosed records the call as cancelled.
pub(super) struct OpenCall<'a> {
    parts: &'a Arc<ExecutorParts>,
    session: &'a Session,
    /// Who makes the call, and why.
    how: CallMode,
    /// Whether it is a call of one of the executor's internal tools, made by the tool of another call.
    internal: bool,
    /// Whether the caller gave it an id.
    own_id: bool,
    pub(super) record: RecordDraft,
    /// Set if the call was suspended or interrupted before, and continues.
    resumption: Option<Resumption>,
    /// The state of the calls made within it.
    nest: Arc<CallScope>,
    /// Its number in the trace of the outer call.
    seq: Option<u64>,
    begun: Instant,
    /// Number of untrusted sources that the run had read before the call.
    untrusted: usize,
    closed: bool,
}

impl<'a> OpenCall<'a> {
    /// Opens an incoming call.
    pub(super) fn new(
        parts: &'a Arc<ExecutorParts>,
        session: &'a Session,
        incoming: IncomingCall,
    ) -> Self {
        let IncomingCall {
            call,
            how,
            internal,
        } = incoming;
        session.running().begin();
        let outer = session.nest();
        // Traced before any check: refused calls are in the trace, too.
        let traced = |outer: &Arc<CallScope>| outer.begin(&call.name, args_digest(&call.arguments));
        let seq = outer.and_then(traced);
        let within = || Some(outer?.call().nth_within(seq?));
        let own_id = call.id.is_some();
        let id = call.id.or_else(within);
        let id = id.unwrap_or_else(|| session.next_call());
        Self {
            parts,
            session,
            how,
            internal,
            own_id,
            nest: Arc::new(CallScope::new(id.clone(), outer.cloned())),
            record: RecordDraft::new(id, call.name, call.origin, call.arguments),
            resumption: None,
            seq,
            begun: Instant::now(),
            untrusted: session.untrusted().len(),
            closed: false,
        }
    }

    /// Returns the parts of the executor that runs it.
    pub(super) fn parts(&self) -> &'a Arc<ExecutorParts> {
        self.parts
    }

    /// Returns who makes the call, and why.
    pub(super) fn mode(&self) -> CallMode {
        self.how
    }

    /// Returns whether its tool is one of the executor's internal tools.
    pub(super) fn is_internal(&self) -> bool {
        self.internal
    }

    /// Returns whether the caller gave the call an id.
    pub(super) fn has_own_id(&self) -> bool {
        self.own_id
    }

    /// Continues under the id of the call that this one repeats; nothing was recorded under its own.
    pub(super) fn rename(&mut self, id: CallId) {
        self.nest = Arc::new(CallScope::new(id.clone(), self.session.nest().cloned()));
        self.record.rename(id);
    }

    /// Marks the call as suspended or interrupted before: until it ends, it can be resumed again.
    pub(super) fn mark_resumable(&mut self) {
        self.nest.set_resumable(true);
        // A host that finishes the run meanwhile leaves it open, so that the call can be resumed.
        self.session.at_work().note_resumable(self.id(), true);
        let by_host = !self.how.is_by_client();
        let leaving = self.session.waits_cancelled();
        self.resumption = Some(Resumption::new(&self.nest, leaving, by_host));
    }

    /// Returns how it is resumed, if it is.
    pub(super) fn resumption(&self) -> Option<&Resumption> {
        self.resumption.as_ref()
    }

    /// Returns when the call came in.
    pub(super) fn received_at(&self) -> Instant {
        self.begun
    }

    pub(super) fn id(&self) -> &CallId {
        self.record.id()
    }

    /// Returns what an approval request says of the call: its id, its origin and the outer call.
    pub(super) fn caller(&self) -> CallIdentity<'_> {
        let outer = self.session.nest().map(|nest| &**nest);
        // The approval for an internal tool is requested after the outer call ran: that call continues by itself.
        let parent = if self.internal {
            outer.and_then(CallScope::outer)
        } else {
            outer
        };
        CallIdentity {
            call: self.id(),
            parent: parent.map(CallScope::call),
            origin: self.record.origin(),
        }
    }

    /// Returns the session that it runs in.
    pub(super) fn session(&self) -> &'a Session {
        self.session
    }

    /// Returns the state of the calls made within it.
    pub(super) fn nest(&self) -> &Arc<CallScope> {
        &self.nest
    }

    /// Ends its entry in the trace of the outer call.
    fn trace_end(&self, status: Status) {
        if let (Some(outer), Some(seq)) = (self.session.nest(), self.seq) {
            outer.end(seq, status, milliseconds(self.begun.elapsed()));
        }
    }

    /// Returns whether there is an audit sink.
    pub(super) fn is_recorded(&self) -> bool {
        !self.parts.sinks.is_empty()
    }

    /// Returns the call's record; built once, when the call starts or ends.
    pub(super) fn record(&mut self) -> Arc<CallRecord> {
        self.record.build_record(self.session)
    }

    /// Closes the call: builds the summary, records the end and returns the outcome.
    pub(super) fn close(&mut self, end: OutcomeContent) -> Outcome {
        let duration = self.begun.elapsed();
        let summary = summary(&end);
        if let Some(waits) = &end.approval {
            self.record.approval = Some(ApprovalId::new(waits));
        }
        self.closed = true;
        self.trace_end(end.status);
        let outcome = if self.is_recorded() {
            let strength = end.strength.clone();
            let outcome = self.outcome(end, summary, duration);
            self.record_end(CallEnd {
                status: outcome.status,
                error: outcome.error.as_ref().map(|e| (e.kind, e.message.clone())),
                duration,
                artifacts: refs(&outcome.artifacts),
                summary: outcome.summary.clone(),
                result: start_of_result(&outcome),
                strength,
                untrusted: self.new_untrusted_sources(),
            });
            outcome
        } else {
            self.outcome(end, summary, duration)
        };
        self.leave_run();
        let (call, tool) = self.record.take_names();
        Outcome {
            call,
            tool,
            ..outcome
        }
    }

    /// Returns the outcome, whose names are still part of the record.
    fn outcome(&self, end: OutcomeContent, summary: String, duration: Duration) -> Outcome {
        let run = self.session.run().clone();
        Outcome {
            origin: self.record.origin(),
            summary,
            content: end.content,
            data: end.data,
            data_is_for_programs: end.data_is_for_programs,
            notes: end.notes,
            artifacts: end.artifacts,
            error: end.error,
            outer_error: end.outer_error,
            calls: end.calls.unwrap_or_else(|| self.nest.trace()),
            strength: end.strength,
            approval: end.approval,
            operator: end.operator,
            duration,
            original: end.original,
            ..Outcome::new(run, CallId::new(""), "", end.status)
        }
    }

    /// Returns the untrusted sources noted since the call came in, and those that no record holds yet.
    fn new_untrusted_sources(&self) -> Vec<String> {
        let new = self.session.untrusted_for_record(self.untrusted);
        new.iter().map(ToString::to_string).collect()
    }

    /// Ends the call without a record: another call acts on its decision.
    pub(super) fn discard(&mut self) {
        self.closed = true;
        self.trace_end(Status::Cancelled);
        self.leave_run();
    }

    /// Removes the call from the run, and records the run's end if it was the last call of an ending run.
    fn leave_run(&self) {
        if self.session.running().end()
            && let Err(error) = self.parts.end_run(self.session)
        {
            tracing::error!(run = %self.session.run(), %error, "the end of a run was not recorded");
        }
    }

    fn record_end(&mut self, end: CallEnd) {
        let what = EventKind::CallEnded(self.record(), end);
        if let Err(error) = self.parts.record(self.session, what) {
            // The call has run and must be answered; the failed sink refuses the next one.
            tracing::error!(call = %self.id(), %error, "the end of a call was not recorded");
        }
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        self.trace_end(Status::Cancelled);
        let resumable = self.nest.is_resumable();
        if self.resumption.is_some() {
            self.session.at_work().note_resumable(self.id(), resumable);
        }
        let why = if resumable {
            STOPPED_MESSAGE
        } else {
            "the caller went away"
        };
        if self.is_recorded() {
            self.record_end(CallEnd {
                status: Status::Cancelled,
                error: Some((ErrorKind::Cancelled, why.into())),
                duration: self.begun.elapsed(),
                artifacts: Vec::new(),
                summary: why.into(),
                result: None,
                strength: None,
                untrusted: self.new_untrusted_sources(),
            });
        }
        self.leave_run();
    }
}

/// Returns one bounded line for the user: the tool's own summary, else the failure, else the start of the content.
fn summary(shaped: &OutcomeContent) -> String {
    let own = shaped.summary.as_deref();
    let failed = || shaped.error.as_ref().map(|e| e.message.as_str());
    let text = || shaped.content.iter().find_map(first_text);
    let data = || shaped.data.as_ref().map(|raw| raw.get());
    let line = own
        .or_else(failed)
        .or_else(text)
        .or_else(data)
        .unwrap_or("done");
    let line = first_line(line.trim_start());
    if line.len() <= MAX_SUMMARY {
        return line.to_owned();
    }
    let end = line.floor_char_boundary(MAX_SUMMARY);
    format!("{}…", line.get(..end).unwrap_or_default())
}

/// Returns the start of what the tool gave, if it says more than the summary.
fn start_of_result(outcome: &Outcome) -> Option<String> {
    let mut text = outcome.render().body();
    text.truncate(text.floor_char_boundary(MAX_RESULT));
    (!text.is_empty() && text != outcome.summary).then_some(text)
}

fn refs(artifacts: &[Artifact]) -> Vec<String> {
    artifacts.iter().map(|a| a.reference.clone()).collect()
}

fn first_line(text: &str) -> &str {
    let end = memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    let line = text.get(..end).unwrap_or_default();
    line.strip_suffix('\r').unwrap_or(line)
}

fn first_text(content: &Content) -> Option<&str> {
    match content {
        Content::Text { text } | Content::Resource { text, .. } => Some(text),
        Content::Image { .. } | Content::Audio { .. } | Content::ResourceLink { .. } => None,
    }
}
