//! The lines of a run's record: writes events as lines, and parses lines.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalId;
use crate::approval::review::{Review, ReviewCost, ReviewVerdict};
use crate::audit::redact::Redactor;
use crate::audit::{AuditEvent, CallEnd, CallRecord, EventKind, RunStart};
use crate::budget::EffectCounts;
use crate::clock;
use crate::json::canonical::args_digest;
use crate::permission::Verdict;
use crate::result::{Status, milliseconds};
use crate::text::hex;

/// The format version, in every line.
pub(super) const VERSION: u32 = 1;

/// `prev` of a run's first line.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Maximum length of a line that is read. Written lines stay below it: six times (all escaped) the limits that follow.
pub(super) const MAX_LINE: usize = 256 << 10;

/// Maximum size, in bytes, of redacted arguments in a line.
const MAX_ARGUMENTS: usize = 4 << 10;
/// Maximum size, in bytes, of a sentence: a summary, an error message, the start of a result.
const MAX_SENTENCE: usize = 2 << 10;
/// Maximum size, in bytes, of a name: a tool's, a call's, a principal's, a rule.
const MAX_NAME: usize = 512;
/// Maximum number of list items: coerced paths, artifacts.
const MAX_ITEMS: usize = 32;

/// Maximum number of calls whose digests are kept until they end.
const MAX_RUNNING: usize = 1024;

/// The types of line.
pub(super) mod kind {
    pub(crate) const RUN_STARTED: &str = "run_started";
    pub(crate) const RUN_RESUMED: &str = "run_resumed";
    pub(crate) const CALL_STARTED: &str = "call_started";
    pub(crate) const CALL_ENDED: &str = "call_ended";
    pub(crate) const CLOSED: &str = "closed";
}

/// A line's position in the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePosition<'a> {
    pub(super) run: &'a str,
    pub(super) seq: u64,
    pub(super) prev: &'a str,
}

/// All possible members of a line, in the order of writing; absent ones are left out.
#[derive(Debug, Default, Serialize)]
struct RecordLine<'a> {
    v: u32,
    seq: u64,
    ts: &'a str,
    run: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    prev: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    door: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    haft: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    coerced: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<LineReview<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untrusted: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "EffectCounts::is_none")]
    uses: EffectCounts,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    private: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sends: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<LineErrorMembers<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strength: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<&'a str>,
}

/// What a reviewer said of the call's request.
#[derive(Debug, Serialize)]
struct LineReview<'a> {
    model: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: Cow<'a, str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    opinion: Option<Cow<'a, str>>,
    cost: ReviewCost,
}

#[derive(Debug, Serialize)]
struct LineErrorMembers<'a> {
    kind: &'static str,
    message: Cow<'a, str>,
}

/// What the writer must know about a line that it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineClass {
    /// A line of the run itself, or a call's start.
    Plain,
    /// A call's end, for the view of calls, and for the view of errors if it is one.
    Ended {
        /// Whether the call was unsuccessful.
        error: bool,
    },
}

/// Returns whether a call with this status belongs in the view of errors.
pub(super) fn is_error(status: &str) -> bool {
    status != Status::Ok.as_str() && status != Status::Suspended.as_str()
}

/// Writes lines: holds the redactor and caches.
pub(super) struct LineWriter {
    redactor: Redactor,
    /// The last second written, and its text up to the milliseconds.
    second: (i128, String),
    /// Started calls, keyed by the address of their record: they end with the same arguments.
    running: HashMap<usize, RedactedArguments, RandomState>,
}

/// What was computed from a call's arguments when it started.
struct RedactedArguments {
    /// Held so that no other record gets the same address.
    _call: Arc<CallRecord>,
    digest: String,
    arguments: String,
}

impl LineWriter {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            second: (i128::MIN, String::new()),
            running: HashMap::default(),
        }
    }

    /// Returns the time as `clock::rfc3339` writes it.
    fn time(&mut self, at: i128) -> String {
        const NANOS_PER_SECOND: i128 = 1_000_000_000;
        let second = at.div_euclid(NANOS_PER_SECOND);
        if self.second.0 != second {
            let text = clock::rfc3339(second * NANOS_PER_SECOND);
            let plain = text.strip_suffix("000Z").unwrap_or(&text);
            self.second = (second, plain.to_owned());
        }
        let milliseconds = at.rem_euclid(NANOS_PER_SECOND) / 1_000_000;
        format!("{}{milliseconds:03}Z", self.second.1)
    }

    fn know(&self, call: &Arc<CallRecord>) -> RedactedArguments {
        let arguments = self.redactor.redact_within(&call.arguments, MAX_ARGUMENTS);
        RedactedArguments {
            digest: args_digest(&call.arguments),
            arguments: arguments.into_owned(),
            _call: Arc::clone(call),
        }
    }

    /// Appends an event's line, without the newline, to `out`.
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        place: LinePosition<'_>,
        event: &AuditEvent,
    ) -> io::Result<LineClass> {
        let ts = self.time(event.at);
        let pen = |redactor| LineBuilder { redactor, place };
        match &event.what {
            EventKind::RunStarted(start) => {
                let line = pen(&self.redactor).run(&ts, kind::RUN_STARTED, start);
                serde_json::to_writer(out, &line)?;
            }
            EventKind::RunResumed(start) => {
                let line = pen(&self.redactor).run(&ts, kind::RUN_RESUMED, start);
                serde_json::to_writer(out, &line)?;
            }
            EventKind::CallStarted(call) => {
                let known = self.know(call);
                let line = pen(&self.redactor).call(&ts, kind::CALL_STARTED, call, &known);
                serde_json::to_writer(out, &line)?;
                if self.running.len() >= MAX_RUNNING {
                    self.running.clear();
                }
                self.running.insert(Arc::as_ptr(call).addr(), known);
            }
            EventKind::CallEnded(call, end) => {
                let known = self.running.remove(&Arc::as_ptr(call).addr());
                let known = known.unwrap_or_else(|| self.know(call));
                let pen = pen(&self.redactor);
                let line = pen.call(&ts, kind::CALL_ENDED, call, &known);
                serde_json::to_writer(out, &pen.ended(line, end))?;
                let error = is_error(end.status.as_str());
                return Ok(LineClass::Ended { error });
            }
            EventKind::RunClosed => {
                return Err(io::Error::other("a closed event is the archive's own"));
            }
        }
        Ok(LineClass::Plain)
    }
}

/// Writes the line that ends a record.
pub(super) fn write_closed(
    out: &mut Vec<u8>,
    place: LinePosition<'_>,
    at: i128,
    calls: u64,
) -> io::Result<()> {
    let ts = clock::rfc3339(at);
    let line = RecordLine {
        calls: Some(calls),
        count: Some(place.seq - 1),
        head: Some(place.prev),
        ..RecordLine::new(place, &ts, kind::CLOSED)
    };
    Ok(serde_json::to_writer(out, &line)?)
}

/// Returns the hex hash of a line, without its newline.
pub(super) fn hash(line: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(line))
}

impl<'a> RecordLine<'a> {
    fn new(place: LinePosition<'a>, ts: &'a str, kind: &'static str) -> Self {
        Self {
            v: VERSION,
            seq: place.seq,
            ts,
            run: place.run,
            kind,
            prev: place.prev,
            ..Self::default()
        }
    }
}

/// Builds lines: redacts and bounds everything that callers supplied.
struct LineBuilder<'a> {
    redactor: &'a Redactor,
    place: LinePosition<'a>,
}

impl<'a> LineBuilder<'a> {
    fn name(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact_within(text, MAX_NAME)
    }

    fn names(&self, texts: &'a [String]) -> Vec<Cow<'a, str>> {
        let few = texts.iter().take(MAX_ITEMS);
        few.map(|text| self.name(text)).collect()
    }

    fn review(&self, review: &'a Review) -> LineReview<'a> {
        let sentence = |text: &'a str| self.redactor.redact_within(text, MAX_SENTENCE);
        LineReview {
            model: self.name(&review.model),
            verdict: review.verdict.map(ReviewVerdict::as_str),
            reason: sentence(&review.reason),
            failed: review.failed,
            opinion: review.opinion.as_deref().map(sentence),
            cost: review.cost,
        }
    }

    fn run(&self, ts: &'a str, kind: &'static str, start: &'a RunStart) -> RecordLine<'a> {
        RecordLine {
            principal: Some(start.principal.to_string().into()),
            door: Some(self.name(&start.entry_point)),
            workspace: start.workspace.as_deref().map(|w| self.name(w)),
            profile: Some(self.name(&start.profile)),
            haft: Some(env!("CARGO_PKG_VERSION")),
            ..RecordLine::new(self.place, ts, kind)
        }
    }

    fn call(
        &self,
        ts: &'a str,
        kind: &'static str,
        call: &'a CallRecord,
        known: &'a RedactedArguments,
    ) -> RecordLine<'a> {
        let principal = call.principal.to_string();
        RecordLine {
            call: Some(self.name(call.call.as_str())),
            parent: call.parent.as_ref().map(|p| self.name(p.as_str())),
            tool: Some(self.name(&call.tool)),
            origin: Some(call.origin.as_str()),
            principal: Some(cut(principal).into()),
            args_digest: Some(&known.digest),
            arguments: (!known.arguments.is_empty()).then_some(known.arguments.as_str()),
            coerced: self.names(&call.coerced),
            verdict: call.verdict.map(Verdict::as_str),
            rule: call.rule.as_deref().map(|rule| self.name(rule)),
            decided_by: call.decided_by.as_deref().map(|by| self.name(by)),
            approval: call.approval.as_ref().map(ApprovalId::as_str),
            review: call.review.as_deref().map(|review| self.review(review)),
            untrusted: self.names(&call.untrusted),
            uses: call.uses,
            private: call.properties.private,
            sends: call.properties.sends,
            ..RecordLine::new(self.place, ts, kind)
        }
    }

    fn ended(&self, mut line: RecordLine<'a>, end: &'a CallEnd) -> RecordLine<'a> {
        let mut untrusted = std::mem::take(&mut line.untrusted);
        for name in self.names(&end.untrusted) {
            if !untrusted.contains(&name) {
                untrusted.push(name);
            }
        }
        let sentence = |text: &'a str| self.redactor.redact_within(text, MAX_SENTENCE);
        RecordLine {
            status: Some(end.status.as_str()),
            duration_ms: Some(milliseconds(end.duration)),
            summary: (!end.summary.is_empty()).then(|| sentence(&end.summary)),
            result: end
                .result
                .as_deref()
                .filter(|text| !text.is_empty())
                .map(sentence),
            error: end.error.as_ref().map(|(kind, message)| LineErrorMembers {
                kind: kind.as_str(),
                message: sentence(message),
            }),
            artifacts: self.names(&end.artifacts),
            strength: end.strength.as_deref().map(|s| self.name(s)),
            untrusted,
            ..line
        }
    }
}

/// Bounds a name that is not caller text.
fn cut(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(MAX_NAME));
    name
}

/// A parsed line: the members that verifying and listing need; others are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct ParsedLine<'a> {
    pub(super) v: u32,
    pub(super) seq: u64,
    #[serde(borrow)]
    pub(super) ts: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) run: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) prev: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) call: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) principal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) door: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) workspace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) profile: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) untrusted: Vec<Cow<'a, str>>,
    #[serde(default)]
    pub(super) uses: EffectCounts,
    #[serde(default)]
    pub(super) private: bool,
    #[serde(default)]
    pub(super) sends: bool,
    #[serde(borrow, default)]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) calls: Option<u64>,
    #[serde(default)]
    pub(super) count: Option<u64>,
    #[serde(borrow, default)]
    pub(super) head: Option<Cow<'a, str>>,
}

impl<'a> ParsedLine<'a> {
    /// Parses a line without its newline.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    //! The cached shortcut must give the same result.

    use super::*;

    #[test]
    fn times_are_written_as_the_clock_writes_them() {
        let mut scribe = LineWriter::new(Redactor::default());
        for at in [
            0,
            1,
            999_999,
            1_000_000,
            1_999_999_999,
            -1,
            -1_500_000_000,
            1_795_298_400_123_456_789,
        ] {
            assert_eq!(scribe.time(at), clock::rfc3339(at), "{at}");
        }
    }
}
