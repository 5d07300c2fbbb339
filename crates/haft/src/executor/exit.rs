//! The one exit: every call that was begun is closed here, answered and recorded; a dropped one, too.

use std::sync::Arc;
use std::time::Instant;

use crate::approval::ApprovalId;
use crate::approval::inbox::InboxError;
use crate::audit::{CallEnd, CallRecord, What};
use crate::call::{CallId, Origin, ToolCall};
use crate::context::Resumption;
use crate::error::ErrorKind;
use crate::executor::approve::Ticket;
use crate::executor::claim::Claimed;
use crate::executor::draft::Caller;
use crate::executor::kept::Kept;
use crate::executor::shape::Shaped;
use crate::executor::stop::Stop;
use crate::executor::{How, Parts};
use crate::json::canonical::args_digest;
use crate::permission::Verdict;
use crate::result::{Content, Outcome, Status, milliseconds};
use crate::session::Session;
use crate::session::nest::Nest;

/// Longest summary, in bytes.
const SUMMARY: usize = 160;

/// What is said of a resumed call that its process leaves.
pub(super) const STOPPED: &str = "haft stopped before the call ended; it can be resumed again";

/// A call between its door and its exit. Dropping it unclosed records the call as cancelled.
pub(super) struct OpenCall<'a> {
    parts: &'a Parts,
    session: &'a Session,
    id: CallId,
    /// Whether the caller named it.
    own_id: bool,
    /// How it comes to be made.
    pub(super) how: How,
    /// It is a call of one of the executor's own tools, made by the tool of another call.
    pub(super) internal: bool,
    /// It was suspended or interrupted before, and goes on.
    resumption: Option<Resumption>,
    name: String,
    origin: Origin,
    arguments: String,
    begun: Instant,
    closed: bool,
    record: Option<Arc<CallRecord>>,
    /// What it keeps of the calls made within it.
    nest: Arc<Nest>,
    /// Its number in the trace of the call that it is nested in.
    seq: Option<u64>,
    /// Paths of arguments that admission coerced.
    pub(super) coerced: Vec<String>,
    /// The arguments as they were judged.
    pub(super) judged: Option<Arc<str>>,
    /// Verdict and rule, when it came to that.
    pub(super) ruling: Option<(Verdict, String)>,
    /// Who decided an Ask.
    pub(super) decided_by: Option<String>,
    /// The request that a person decided about.
    pub(super) approval: Option<ApprovalId>,
    /// What was decided before the call came in: it is resumed.
    pub(super) ticket: Option<Ticket>,
    /// Why the inbox did not let it have that decision.
    pub(super) refused: Option<InboxError>,
    /// The decision that the call acts on, to be finished with its outcome.
    pub(super) claimed: Option<Claimed>,
    /// By what it is found when it is made again, where it may be suspended.
    pub(super) kept: Option<Kept>,
}

impl<'a> OpenCall<'a> {
    /// Takes a call in.
    pub(super) fn new(parts: &'a Parts, session: &'a Session, call: ToolCall, how: How) -> Self {
        session.running().begin();
        let outer = session.nest();
        // Traced before anything is looked at: a refused call is in the trace, too.
        let traced = |outer: &Arc<Nest>| outer.begin(&call.name, args_digest(&call.arguments));
        let seq = outer.and_then(traced);
        let within = || Some(outer?.call().nth_within(seq?));
        let own_id = call.id.is_some();
        let id = call.id.or_else(within);
        let id = id.unwrap_or_else(|| session.next_call());
        Self {
            parts,
            session,
            nest: Arc::new(Nest::new(id.clone(), outer.cloned())),
            seq,
            id,
            own_id,
            how,
            internal: false,
            resumption: None,
            name: call.name,
            origin: call.origin,
            arguments: call.arguments,
            begun: Instant::now(),
            closed: false,
            record: None,
            coerced: Vec::new(),
            judged: None,
            ruling: None,
            decided_by: None,
            approval: None,
            ticket: None,
            refused: None,
            claimed: None,
            kept: None,
        }
    }

    /// Whether the caller named the call.
    pub(super) fn has_own_id(&self) -> bool {
        self.own_id
    }

    /// Goes on under the id of the call that this one repeats; nothing was recorded under its own.
    pub(super) fn rename(&mut self, id: CallId) {
        self.nest = Arc::new(Nest::new(id.clone(), self.session.nest().cloned()));
        self.id = id;
    }

    /// The call was suspended or interrupted before: until it is over it can be resumed again.
    pub(super) fn goes_on(&mut self) {
        self.nest.set_resumable(true);
        // A host that ends the run meanwhile leaves it open.
        self.session.at_work().note_resumable(&self.id, true);
        let by_host = self.how != How::Asked;
        let leaving = self.session.leaving();
        self.resumption = Some(Resumption::new(&self.nest, leaving, by_host));
    }

    /// How it is resumed, if it is.
    pub(super) fn resumption(&self) -> Option<&Resumption> {
        self.resumption.as_ref()
    }

    /// When the call came in.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// The call's id.
    pub(super) fn id(&self) -> &CallId {
        &self.id
    }

    /// The tool's name as asked for.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Who asked.
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// Who made it, for a request to a person.
    pub(super) fn caller(&self) -> Caller<'_> {
        let outer = self.session.nest().map(|nest| &**nest);
        // A call of the executor's own tools is asked about after the call around it ran: it goes on by itself.
        let parent = if self.internal {
            outer.and_then(Nest::outer)
        } else {
            outer
        };
        Caller {
            call: &self.id,
            parent: parent.map(Nest::call),
            origin: self.origin,
        }
    }

    /// The session that it runs in.
    pub(super) fn session(&self) -> &'a Session {
        self.session
    }

    /// What it keeps of the calls made within it.
    pub(super) fn nest(&self) -> &Arc<Nest> {
        &self.nest
    }

    /// Ends its line in the trace of the call that it is nested in.
    fn trace_end(&self, status: Status) {
        if let (Some(outer), Some(seq)) = (self.session.nest(), self.seq) {
            outer.end(seq, status, milliseconds(self.begun.elapsed()));
        }
    }

    /// Takes the arguments as asked for.
    pub(super) fn take_arguments(&mut self) -> String {
        std::mem::take(&mut self.arguments)
    }

    /// Gives them back, for the record of a refused call.
    pub(super) fn keep_arguments(&mut self, text: String) {
        self.arguments = text;
    }

    /// Whether anybody records.
    pub(super) fn is_recorded(&self) -> bool {
        !self.parts.sinks.is_empty()
    }

    /// What is known of the call, for its lines; made once, when it starts or ends.
    pub(super) fn record(&mut self) -> Arc<CallRecord> {
        if let Some(record) = &self.record {
            return Arc::clone(record);
        }
        let asked = || Arc::from(std::mem::take(&mut self.arguments));
        let arguments = self.judged.take().unwrap_or_else(asked);
        let (verdict, rule) = self.ruling.take().unzip();
        let record = Arc::new(CallRecord {
            call: self.id.clone(),
            parent: self.session.nest().map(|nest| nest.call().clone()),
            tool: self.name.clone(),
            origin: self.origin,
            principal: self.session.principal().clone(),
            arguments,
            coerced: std::mem::take(&mut self.coerced),
            verdict,
            rule,
            decided_by: self.decided_by.clone(),
            approval: self.approval.clone(),
        });
        self.record = Some(Arc::clone(&record));
        record
    }

    /// Closes the call: normalises, records, answers.
    pub(super) fn close(mut self, end: Result<Shaped, Stop>) -> Outcome {
        let shaped = end.unwrap_or_else(Shaped::from);
        let duration = self.begun.elapsed();
        let summary = summary(&shaped);
        if let Some(waits) = &shaped.approval {
            self.approval = Some(ApprovalId::new(waits));
        }
        self.closed = true;
        self.trace_end(shaped.status);
        if self.is_recorded() {
            self.record_end(CallEnd {
                status: shaped.status,
                error: shaped.error.as_ref().map(|e| (e.kind, e.message.clone())),
                duration,
                artifacts: shaped
                    .artifacts
                    .iter()
                    .map(|a| a.reference.clone())
                    .collect(),
                summary: summary.clone(),
                strength: shaped.strength.clone(),
            });
        }
        Outcome {
            run: self.session.run().clone(),
            call: self.id.clone(),
            tool: std::mem::take(&mut self.name),
            origin: self.origin,
            status: shaped.status,
            summary,
            content: shaped.content,
            data: shaped.data,
            artifacts: shaped.artifacts,
            error: shaped.error,
            calls: shaped.calls.unwrap_or_else(|| self.nest.trace()),
            strength: shaped.strength,
            approval: shaped.approval,
            operator: shaped.operator,
            duration,
        }
    }

    /// Ends the call without a line: another one acts on the decision that it was to act on.
    pub(super) fn discard(mut self) {
        self.closed = true;
        self.trace_end(Status::Cancelled);
    }

    fn record_end(&mut self, end: CallEnd) {
        let what = What::CallEnded(self.record(), end);
        if let Err(error) = self.parts.record(self.session, what) {
            // The call has run and its answer is owed; the failed sink refuses the next one.
            tracing::error!(call = %self.id, %error, "the end of a call was not recorded");
        }
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if !self.closed {
            self.trace_end(Status::Cancelled);
        }
        let resumable = !self.closed && self.nest.is_resumable();
        if !self.closed && self.resumption.is_some() {
            self.session.at_work().note_resumable(&self.id, resumable);
        }
        let why = if resumable {
            STOPPED
        } else {
            "the caller went away"
        };
        if !self.closed && self.is_recorded() {
            self.record_end(CallEnd {
                status: Status::Cancelled,
                error: Some((ErrorKind::Cancelled, why.into())),
                duration: self.begun.elapsed(),
                artifacts: Vec::new(),
                summary: why.into(),
                strength: None,
            });
        }
        if self.session.running().end()
            && let Err(error) = self.parts.end_run(self.session)
        {
            tracing::error!(run = %self.session.run(), %error, "the end of a run was not recorded");
        }
    }
}

/// One bounded line for a person: the tool's own, else the failure, else how the content begins.
fn summary(shaped: &Shaped) -> String {
    let own = shaped.summary.as_deref();
    let failed = || shaped.error.as_ref().map(|e| e.message.as_str());
    let text = || shaped.content.iter().find_map(first_text);
    let data = || shaped.data.as_ref().map(|raw| raw.get());
    let line = own
        .or_else(failed)
        .or_else(text)
        .or_else(data)
        .unwrap_or("done");
    let line = line.trim_start().lines().next().unwrap_or_default();
    if line.len() <= SUMMARY {
        return line.to_owned();
    }
    let end = line.floor_char_boundary(SUMMARY);
    format!("{}…", line.get(..end).unwrap_or_default())
}

fn first_text(content: &Content) -> Option<&str> {
    match content {
        Content::Text { text } | Content::Resource { text, .. } => Some(text),
        Content::Image { .. } | Content::Audio { .. } | Content::ResourceLink { .. } => None,
    }
}
