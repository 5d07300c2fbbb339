//! A run in a list.

use std::collections::BTreeMap;
use std::path::Path;

use haft::audit::index::{ChangeCount, FAILED, FirstCall, RunEntry, RunNotes, RunState};
use haft::audit::redact::Redactor;
use haft::audit::{self, runs as archive};
use haft::error::ErrorKind;
use haft::policy::RunProperties;
use haft::result::Status;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::argument;
use crate::conversation_file;

/// Maximum number of lines of a record that are read for a run without notes.
const MAX_LINES: usize = 2_000;

/// A run in a list (contract §9).
#[derive(Debug, Serialize)]
pub struct RunListItem {
    /// Its id.
    pub run: String,
    /// Open, suspended or closed.
    pub state: RunState,
    /// When it started: RFC 3339, UTC.
    pub started: String,
    /// When it was closed: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Milliseconds from its start to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Number of calls.
    pub calls: u64,
    /// The entry point that started it.
    pub door: String,
    /// The profile in force when it started.
    pub profile: String,
    /// The folder that it works in, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The client's own name, if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The beginning of what haft's agent was asked to do, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Its first call, with its most telling argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstCall>,
    /// How its last call ended; calls made by scripts do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Status>,
    /// The exit code of the last call, if its program ended by itself with another one than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How many of the calls with the status `error` are programs that ended by themselves with an exit code other than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exits: Option<u64>,
    /// Number of calls by status.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<String, u64>,
    /// Counts of what it changed in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
    /// Which of the Rule of Two it holds; only of a run that is shown alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_of_two: Option<RunProperties>,
}

impl RunListItem {
    /// Merges in what the index knows better than the archive.
    pub(super) fn learn(&mut self, entry: RunEntry) {
        if entry.closed.is_some() {
            // A sealed run stays sealed, whatever happened to its files.
            self.state = entry.state;
            self.calls = entry.calls;
        } else if self.state == RunState::Open {
            self.state = entry.state;
        }
        if entry.ended.is_some() {
            self.end(entry.ended);
        }
        if let Some(notes) = entry.notes {
            self.note(notes);
        }
    }

    fn end(&mut self, ended: Option<String>) {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let end = ended.as_deref().and_then(time);
        self.duration_ms = end
            .zip(time(&self.started))
            .map(|(ended, started)| ended.as_millisecond() - started.as_millisecond());
        self.ended = ended;
    }

    fn note(&mut self, notes: RunNotes) {
        let ended: u64 = notes.statuses.values().sum();
        self.calls = self.calls.max(ended);
        self.client = notes.client;
        self.first = notes.first;
        self.outcome = notes.outcome;
        self.exit_code = notes.exit_code;
        self.exits = Some(notes.exits).filter(|exits| *exits > 0);
        self.statuses = notes.statuses;
        self.changes = notes.changes;
    }

    /// Returns whether a call of it failed, timed out or was denied; a program's exit code alone does not count.
    pub(crate) fn has_failed(&self) -> bool {
        let count = |status: &Status| self.statuses.get(status.as_str()).copied();
        let failed: u64 = FAILED.iter().filter_map(count).sum();
        failed > self.exits.unwrap_or(0)
    }

    /// Reads the task from the conversation and, if no process noted the run's calls, their figures from the record;
    /// blocks.
    pub(super) fn read_missing(&mut self, home: &Path, redactor: &Redactor) {
        self.task = archive::run_dir(home, &self.run)
            .ok()
            .and_then(|folder| conversation_file::task(&folder))
            .map(|task| redactor.redact(&task).into_owned());
        if self.first.is_none()
            && let Some(notes) = read_notes(home, &self.run, redactor)
        {
            let (client, changes) = (self.client.take(), self.changes.take());
            self.note(RunNotes {
                client,
                changes,
                ..notes
            });
        }
    }
}

impl From<RunEntry> for RunListItem {
    fn from(entry: RunEntry) -> Self {
        let mut listed = Self {
            run: entry.run.to_string(),
            state: entry.state,
            started: entry.started,
            ended: None,
            duration_ms: None,
            calls: entry.calls,
            door: entry.start.entry_point,
            profile: entry.start.profile,
            workspace: entry.start.workspace,
            client: None,
            task: None,
            first: None,
            outcome: None,
            exit_code: None,
            exits: None,
            statuses: BTreeMap::new(),
            changes: None,
            rule_of_two: None,
        };
        listed.end(entry.ended);
        if let Some(notes) = entry.notes {
            listed.note(notes);
        }
        listed
    }
}

/// Returns what the lines that are read of a record say about its calls.
fn read_notes(home: &Path, run: &str, redactor: &Redactor) -> Option<RunNotes> {
    let mut notes = RunNotes::default();
    for line in archive::events(home, run).ok()?.take(MAX_LINES) {
        let line: Value = serde_json::from_str(&line.ok()?).ok()?;
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let Some(tool) = text("tool") else { continue };
        let is_nested = line.get("parent").is_some();
        if notes.first.is_none() && !is_nested {
            notes.first = Some(FirstCall {
                tool: tool.to_owned(),
                argument: argument::of_text(text("arguments").unwrap_or_default(), redactor),
            });
        }
        let Some(status) = text("status") else {
            continue;
        };
        *notes.statuses.entry(status.to_owned()).or_default() += 1;
        let exit_code = exit_code(&line);
        notes.exits += u64::from(exit_code.is_some());
        if !is_nested {
            let status = line.get("status").cloned().unwrap_or_default();
            notes.outcome = serde_json::from_value(status).ok();
            notes.exit_code = exit_code;
        }
    }
    Some(notes)
}

/// Returns the exit code with which the program of a recorded call ended by itself, if it is not 0.
pub(crate) fn exit_code(line: &Value) -> Option<i32> {
    let error = line.get("error")?;
    let is_failed = error.get("kind")?.as_str()? == ErrorKind::Failed.as_str();
    audit::exit_code(error.get("message")?.as_str()?).filter(|_| is_failed)
}
