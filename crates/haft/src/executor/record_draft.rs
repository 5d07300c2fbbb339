//! `RecordDraft`: a `CallRecord` under construction, filled in by the stages.

use std::sync::Arc;

use crate::approval::ApprovalId;
use crate::approval::review::Review;
use crate::audit::CallRecord;
use crate::budget::EffectCounts;
use crate::call::{CallId, Origin};
use crate::permission::Verdict;
use crate::policy::{Ruling, RunProperties};
use crate::session::Session;
use crate::untrusted::UntrustedSource;

/// The data for a call's record. It becomes a record when the call starts, or when it ends without starting.
pub(super) struct RecordDraft {
    id: CallId,
    name: String,
    origin: Origin,
    /// The arguments as the caller wrote them.
    arguments: String,
    /// Paths of arguments that admission coerced.
    pub(super) coerced: Vec<String>,
    /// The arguments as they were judged.
    judged: Option<Arc<str>>,
    verdict: Option<Verdict>,
    rule: Option<String>,
    /// The user or approver that decided an Ask.
    pub(super) decided_by: Option<String>,
    /// The request that was decided, or withdrawn because the call is decided without it.
    pub(super) approval: Option<ApprovalId>,
    /// What a reviewer said of the request.
    pub(super) review: Option<Box<Review>>,
    /// Sources of untrusted content in its result.
    untrusted: Vec<String>,
    /// What it reserves from the effect budgets.
    pub(super) uses: EffectCounts,
    /// What it adds to what its run holds of the Rule of Two.
    pub(super) properties: RunProperties,
    made: Option<Arc<CallRecord>>,
}

impl RecordDraft {
    /// Creates the draft of an incoming call.
    pub(super) fn new(id: CallId, name: String, origin: Origin, arguments: String) -> Self {
        Self {
            id,
            name,
            origin,
            arguments,
            coerced: Vec::new(),
            judged: None,
            verdict: None,
            rule: None,
            decided_by: None,
            approval: None,
            review: None,
            untrusted: Vec::new(),
            uses: EffectCounts::NONE,
            properties: RunProperties::NONE,
            made: None,
        }
    }

    pub(super) fn id(&self) -> &CallId {
        &self.id
    }

    /// Continues the call under another id; nothing was recorded under its own.
    pub(super) fn rename(&mut self, id: CallId) {
        self.id = id;
    }

    /// Returns the tool's name as the caller wrote it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the arguments as the caller wrote them.
    pub(super) fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Takes the arguments as the caller wrote them.
    pub(super) fn take_arguments(&mut self) -> String {
        std::mem::take(&mut self.arguments)
    }

    /// Puts the arguments back, for the record of a refused call.
    pub(super) fn keep_arguments(&mut self, text: String) {
        self.arguments = text;
    }

    /// Notes the arguments that the policy judges.
    pub(super) fn judge(&mut self, arguments: &str) {
        self.judged = Some(arguments.into());
    }

    /// Notes the policy's ruling.
    pub(super) fn rule(&mut self, ruling: &Ruling) {
        self.verdict = Some(ruling.verdict);
        self.rule = Some(ruling.rule.to_string());
    }

    /// Notes the sources of untrusted content in its result.
    pub(super) fn untrusted(&mut self, sources: &[UntrustedSource]) {
        self.untrusted = sources.iter().map(UntrustedSource::to_string).collect();
    }

    /// Returns the call's record; built once.
    pub(super) fn build_record(&mut self, session: &Session) -> Arc<CallRecord> {
        if let Some(record) = &self.made {
            return Arc::clone(record);
        }
        let take_arguments = || Arc::from(std::mem::take(&mut self.arguments));
        let arguments = self.judged.take().unwrap_or_else(take_arguments);
        let record = Arc::new(CallRecord {
            call: self.id.clone(),
            parent: session.nest().map(|nest| nest.call().clone()),
            tool: self.name.clone(),
            origin: self.origin,
            principal: session.principal().clone(),
            arguments,
            coerced: std::mem::take(&mut self.coerced),
            verdict: self.verdict,
            rule: self.rule.take(),
            decided_by: self.decided_by.clone(),
            approval: self.approval.clone(),
            review: self.review.take(),
            untrusted: std::mem::take(&mut self.untrusted),
            uses: self.uses,
            properties: self.properties,
        });
        self.made = Some(Arc::clone(&record));
        record
    }

    /// Returns the call's id and its tool's name, for its outcome.
    pub(super) fn take_names(&mut self) -> (CallId, String) {
        (self.id.clone(), std::mem::take(&mut self.name))
    }
}
