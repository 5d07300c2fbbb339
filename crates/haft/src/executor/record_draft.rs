//! `RecordDraft`: a `CallRecord` in the making, filled by the stages.

use std::sync::Arc;

use crate::approval::ApprovalId;
use crate::audit::CallRecord;
use crate::budget::Uses;
use crate::call::{CallId, Origin};
use crate::permission::Verdict;
use crate::policy::Ruling;
use crate::session::Session;
use crate::untrusted::UntrustedSource;

/// What the record will say of a call. Made into one when the call starts, or ends without that.
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
    /// The request that was decided about.
    pub(super) approval: Option<ApprovalId>,
    /// What strangers may have written of its result.
    untrusted: Vec<String>,
    /// What it takes of the budgets of effects.
    pub(super) uses: Uses,
    made: Option<Arc<CallRecord>>,
}

impl RecordDraft {
    /// A call that came in.
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
            untrusted: Vec::new(),
            uses: Uses::NONE,
            made: None,
        }
    }

    /// The call's id.
    pub(super) fn id(&self) -> &CallId {
        &self.id
    }

    /// The call goes on under another id; nothing was recorded under its own.
    pub(super) fn rename(&mut self, id: CallId) {
        self.id = id;
    }

    /// The tool's name as asked for.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where the call came from.
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// The arguments as asked for.
    pub(super) fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Takes the arguments as asked for.
    pub(super) fn take_arguments(&mut self) -> String {
        std::mem::take(&mut self.arguments)
    }

    /// Gives them back, for the record of a refused call.
    pub(super) fn keep_arguments(&mut self, text: String) {
        self.arguments = text;
    }

    /// Notes the arguments that the policy judges.
    pub(super) fn judge(&mut self, arguments: &str) {
        self.judged = Some(arguments.into());
    }

    /// Notes how the policy ruled.
    pub(super) fn rule(&mut self, ruling: &Ruling) {
        self.verdict = Some(ruling.verdict);
        self.rule = Some(ruling.rule.to_string());
    }

    /// Notes what strangers may have written of its result.
    pub(super) fn untrusted(&mut self, sources: &[UntrustedSource]) {
        self.untrusted = sources.iter().map(UntrustedSource::to_string).collect();
    }

    /// What is known of the call, for its lines; made once.
    pub(super) fn made(&mut self, session: &Session) -> Arc<CallRecord> {
        if let Some(record) = &self.made {
            return Arc::clone(record);
        }
        let asked = || Arc::from(std::mem::take(&mut self.arguments));
        let arguments = self.judged.take().unwrap_or_else(asked);
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
            untrusted: std::mem::take(&mut self.untrusted),
            uses: self.uses,
        });
        self.made = Some(Arc::clone(&record));
        record
    }

    /// The call's id and its tool's name, for its outcome.
    pub(super) fn take_names(&mut self) -> (CallId, String) {
        (self.id.clone(), std::mem::take(&mut self.name))
    }
}
