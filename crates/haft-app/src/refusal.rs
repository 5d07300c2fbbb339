//! Records messages that were refused before they became calls.

use std::sync::Arc;
use std::time::Duration;

use haft::audit::{AuditEvent, AuditSink, CallEnd, CallRecord, EventKind};
use haft::call::{CallId, Origin};
use haft::clock;
use haft::error::ErrorKind;
use haft::result::Status;
use haft::session::Session;

use crate::app::App;

impl App {
    /// Records a refused message in its run. `number` distinguishes it from others of the process.
    pub fn record_refusal(&self, session: &Session, number: u64, reason: &str) {
        let record = CallRecord {
            call: CallId::new(format!("refused-{number}")),
            parent: None,
            tool: String::new(),
            origin: Origin::Mcp,
            principal: session.principal().clone(),
            arguments: Arc::from(""),
            coerced: Vec::new(),
            verdict: None,
            rule: None,
            decided_by: None,
            review: None,
            untrusted: Vec::new(),
            uses: haft::budget::EffectCounts::NONE,
            properties: haft::policy::RunProperties::NONE,
            approval: None,
        };
        let end = CallEnd {
            status: Status::Error,
            error: Some((ErrorKind::InvalidArguments, reason.to_owned())),
            duration: Duration::ZERO,
            artifacts: Vec::new(),
            summary: "message refused".to_owned(),
            result: None,
            strength: None,
            untrusted: Vec::new(),
        };
        let event = AuditEvent {
            run: session.run().clone(),
            at: clock::now(),
            what: EventKind::CallEnded(Arc::new(record), end),
        };
        if let Err(e) = self.0.kept.archive.record(event) {
            tracing::warn!(error = %e, "record a refused message");
        }
    }
}
