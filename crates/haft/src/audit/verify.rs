//! Verifying a run's archive: every line follows the one before, the views agree, and the end is the one that was sealed.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::Serialize;

use crate::audit::index::{ClosedEvent, RunState};
use crate::audit::layout::{ERRORS, RECORD, TOOLS};
use crate::audit::line::{self, GENESIS, ParsedLine, VERSION, kind};
use crate::audit::runs::{LineRead, LineReader};

#[cfg(test)]
mod tests;

/// The result of verifying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// The run, as its folder is named.
    pub run: String,
    /// `Closed` if the record or the index says so.
    pub state: RunState,
    /// Whether no problem was found.
    pub ok: bool,
    /// Number of complete lines in the record.
    pub lines: u64,
    /// Number, from 1, of the first line that is wrong or missing.
    pub first_bad: Option<u64>,
    /// The problem with that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether the record ends within a line, as a killed process may leave it; valid in an open run.
    #[serde(skip_serializing_if = "is_false")]
    pub torn: bool,
    /// Calls that started but did not end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_doubt: Vec<InDoubtCall>,
}

/// A call that started but has no recorded end: it may have run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InDoubtCall {
    /// The call.
    pub call: String,
    /// Its tool.
    pub tool: String,
    /// Number of the line that records its start.
    pub seq: u64,
    /// `may have run`.
    pub note: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Verifies the archive in `dir`. `known` is how the archive was closed according to the index; it overrides the files.
///
/// A run that was never closed is valid as far as it goes: a missing end cannot be detected, and the report does not claim it.
/// Errors are for unreadable disks; a missing or damaged record is a finding in the report.
///
/// # Errors
/// The folder or one of its files cannot be read.
pub fn verify(dir: &Path, known: Option<&ClosedEvent>) -> io::Result<VerifyReport> {
    let mut check = RecordVerifier::new(dir)?;
    let torn = check.read(dir)?;
    if !dir.join(RECORD).exists() {
        check.fault(1, "the record is missing");
    }
    check.finish(known, torn)?;
    let closed = check.closed.is_some() || known.is_some();
    Ok(VerifyReport {
        run: check.run,
        state: if closed {
            RunState::Closed
        } else {
            RunState::Open
        },
        ok: check.bad.is_none(),
        lines: check.seq,
        first_bad: check.bad.as_ref().map(|(line, _)| *line),
        problem: check.bad.map(|(_, problem)| problem),
        torn,
        in_doubt: check.started.into_values().collect(),
    })
}

/// The end of an open record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordEnd {
    /// Number of the last line.
    pub(super) seq: u64,
    /// Hash of the last line.
    pub(super) prev: String,
    /// Number of calls that ended.
    pub(super) calls: u64,
    /// Total size of the complete lines, in bytes.
    pub(super) bytes: u64,
}

/// Returns the end of a valid, open record; otherwise an error that describes the problem.
pub(super) fn end(dir: &Path) -> io::Result<RecordEnd> {
    let mut check = RecordVerifier::new(dir)?;
    let torn = check.read(dir)?;
    check.finish(None, torn)?;
    let wrong = match (&check.bad, &check.closed) {
        (Some((line, problem)), _) => format!("the record is broken at line {line}: {problem}"),
        (None, Some(_)) => "the run is closed".to_owned(),
        (None, None) if check.seq == 0 => "the record is empty".to_owned(),
        (None, None) => {
            return Ok(RecordEnd {
                seq: check.seq,
                prev: check.prev,
                calls: check.ended,
                bytes: check.bytes,
            });
        }
    };
    Err(io::Error::other(wrong))
}

/// Rebuilds a view from a valid record.
pub(super) fn rewrite_view(dir: &Path, view: &str) -> io::Result<()> {
    let path = dir.join(view);
    let fresh = path.with_extension("new");
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600);
    let mut out = BufWriter::new(file.open(&fresh)?);
    let mut record = LineReader::open(&dir.join(RECORD))?;
    while let LineRead::Line(text) = record.next()? {
        let ended = ParsedLine::parse(text).filter(|line| line.kind == kind::CALL_ENDED);
        let belongs = |line: &ParsedLine<'_>| {
            view == TOOLS || line.status.as_deref().is_some_and(line::is_error)
        };
        if ended.as_ref().is_some_and(belongs) {
            out.write_all(text)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    drop(out);
    std::fs::rename(&fresh, &path)
}

/// What is known so far of the record that is being verified.
struct RecordVerifier {
    run: String,
    /// Total size of the lines read, in bytes.
    bytes: u64,
    /// Number of lines read.
    seq: u64,
    /// Hash of the last line read.
    prev: String,
    /// Number of calls that ended.
    ended: u64,
    /// The closing line, once read.
    closed: Option<ClosedEvent>,
    /// Calls that have started and not ended yet.
    started: BTreeMap<String, InDoubtCall>,
    tools: ViewReader,
    errors: ViewReader,
    /// Number of the first wrong line, and its problem.
    bad: Option<(u64, String)>,
    /// Hash of a line whose `prev` does not match: the next line tells which of the two was edited.
    doubted: Option<String>,
}

impl RecordVerifier {
    fn new(dir: &Path) -> io::Result<Self> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self {
            run: name.into_owned(),
            bytes: 0,
            seq: 0,
            prev: GENESIS.to_owned(),
            ended: 0,
            closed: None,
            started: BTreeMap::new(),
            tools: ViewReader::open(dir, TOOLS)?,
            errors: ViewReader::open(dir, ERRORS)?,
            bad: None,
            doubted: None,
        })
    }

    /// Reads the record; returns whether it ends within a line.
    fn read(&mut self, dir: &Path) -> io::Result<bool> {
        let mut record = LineReader::open(&dir.join(RECORD))?;
        loop {
            match record.next()? {
                LineRead::End => return Ok(false),
                LineRead::Torn => return Ok(true),
                LineRead::TooLong => {
                    self.fault(self.seq + 1, "longer than any line that is written");
                    return Ok(false);
                }
                LineRead::Line(text) => {
                    self.seq += 1;
                    self.bytes += text.len() as u64 + 1;
                    self.line(text)?;
                }
            }
        }
    }

    /// Notes a problem; only the first one counts.
    fn fault(&mut self, line: u64, problem: impl Into<String>) {
        self.bad.get_or_insert_with(|| (line, problem.into()));
    }

    fn line(&mut self, text: &[u8]) -> io::Result<()> {
        let hash = line::hash(text);
        let parsed = ParsedLine::parse(text);
        let closing = parsed
            .as_ref()
            .is_some_and(|line| line.kind == kind::CLOSED);
        if let Some(line) = &parsed {
            self.settle_doubt(&line.prev);
        }
        match parsed {
            // After the first problem, lines are only counted and checked for the closing one.
            _ if self.bad.is_some() => {}
            None => self.fault(self.seq, "no line of a record"),
            Some(line) => match self.links(&line) {
                Some(problem) => self.fault(self.seq, problem),
                None if line.prev != self.prev => {
                    self.fault(
                        self.seq,
                        "hash mismatch: this line or the one before it was changed",
                    );
                    self.doubted = Some(hash.clone());
                    if line.head.as_ref() == Some(&line.prev) {
                        self.settle_doubt(&hash);
                    }
                }
                None => self.apply(&line, text)?,
            },
        }
        if closing {
            let head = std::mem::take(&mut self.prev);
            self.closed = Some(ClosedEvent {
                count: self.seq - 1,
                head,
                calls: self.ended,
                seal: hash.clone(),
            });
        }
        self.prev = hash;
        Ok(())
    }

    /// If `hash` confirms the doubted line, that line is valid, so the one before it was edited.
    fn settle_doubt(&mut self, hash: &str) {
        if self.doubted.take().is_some_and(|doubted| doubted == hash)
            && let Some((line, problem)) = &mut self.bad
        {
            *line -= 1;
            *problem = "edited: the next line holds a different hash of it".into();
        }
    }

    /// Returns the problem with a line's place in the record.
    fn links(&self, line: &ParsedLine<'_>) -> Option<String> {
        if self.closed.is_some() {
            return Some("a line after the closing one".into());
        }
        if line.v != VERSION {
            return Some(format!("version {}, not {VERSION}", line.v));
        }
        if line.seq != self.seq {
            return Some(format!("number {}, not {}", line.seq, self.seq));
        }
        if line.run != self.run {
            return Some(format!("of run {}", line.run));
        }
        if line.ts.parse::<jiff::Timestamp>().is_err() {
            return Some("without a time".into());
        }
        let first = line.kind == kind::RUN_STARTED;
        (first != (self.seq == 1)).then(|| "a run begins once, with its first line".into())
    }

    /// Updates the state from a valid line.
    fn apply(&mut self, line: &ParsedLine<'_>, text: &[u8]) -> io::Result<()> {
        let call = || line.call.as_deref().unwrap_or_default().to_owned();
        match line.kind.as_ref() {
            kind::CALL_STARTED => {
                let doubt = InDoubtCall {
                    call: call(),
                    tool: line.tool.as_deref().unwrap_or_default().to_owned(),
                    seq: self.seq,
                    note: "may have run",
                };
                self.started.insert(call(), doubt);
            }
            kind::CALL_ENDED => {
                self.started.remove(&call());
                self.ended += 1;
                let mut agree = self.tools.matches_view(text, self.seq)?;
                if line.status.as_deref().is_some_and(line::is_error) {
                    agree &= self.errors.matches_view(text, self.seq)?;
                }
                if !agree {
                    self.fault(self.seq, "a view of it in logs/ differs");
                }
            }
            kind::CLOSED => {
                let sound = line.count == Some(self.seq - 1)
                    && line.head.as_deref() == Some(&self.prev)
                    && line.calls == Some(self.ended);
                if !sound {
                    self.fault(self.seq, "closes another record");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes the checks that are only possible at the end.
    fn finish(&mut self, known: Option<&ClosedEvent>, torn: bool) -> io::Result<()> {
        let end = self.seq + 1;
        match (&self.closed, known) {
            (None, Some(known)) => {
                let problem = format!("cut: the run was closed after line {}", known.count);
                self.fault(end.min(known.count + 1), problem);
            }
            (Some(closed), Some(known)) if closed != known => {
                self.fault(
                    self.seq,
                    "its end differs from the one that was sealed: rewritten",
                );
            }
            _ => {}
        }
        if self.bad.is_some() {
            return Ok(());
        }
        if torn && self.closed.is_some() {
            self.fault(end, "something after the closing line");
        }
        for (view, name) in [(&mut self.tools, TOOLS), (&mut self.errors, ERRORS)] {
            // A killed process may not have written its views; one that closed the run has.
            let missing = view.missing_since.filter(|_| self.closed.is_some());
            let fault = match missing {
                Some(line) => Some((line, format!("{name} lacks it"))),
                None if !view.is_at_end(self.closed.is_some())? => {
                    Some((end, format!("{name} has a line that the record lacks")))
                }
                None => None,
            };
            if self.bad.is_none() {
                self.bad = fault;
            }
        }
        Ok(())
    }
}

/// A view, read along with the record.
struct ViewReader {
    lines: LineReader,
    /// The record's line from which on the view is empty.
    missing_since: Option<u64>,
}

impl ViewReader {
    fn open(dir: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            lines: LineReader::open(&dir.join(name))?,
            missing_since: None,
        })
    }

    /// Returns whether the view's next line is this one, or the view has already ended.
    fn matches_view(&mut self, text: &[u8], seq: u64) -> io::Result<bool> {
        if self.missing_since.is_some() {
            return Ok(true);
        }
        match self.lines.next()? {
            LineRead::Line(line) => Ok(line == text),
            LineRead::TooLong => Ok(false),
            LineRead::Torn | LineRead::End => {
                self.missing_since = Some(seq);
                Ok(true)
            }
        }
    }

    /// Returns whether the view has no more lines; an incomplete line does not count unless the run was closed.
    fn is_at_end(&mut self, closed: bool) -> io::Result<bool> {
        Ok(match self.lines.next()? {
            LineRead::End => true,
            LineRead::Torn => !closed,
            LineRead::Line(_) | LineRead::TooLong => false,
        })
    }
}
