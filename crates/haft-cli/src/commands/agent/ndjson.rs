//! `Ndjson`: writes the events of a run to stdout, one line of JSON each (contract §6), and nothing else.

use std::sync::OnceLock;

use haft::call::RunId;
use haft::progress::{ProgressEvent, ProgressSink};
use haft_agent::{AgentEvent, Watcher};
use haft_app::problem::Problem;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::view::RunView;
use crate::screen::Screen;

/// Writes lines.
#[derive(Debug)]
pub(super) struct Ndjson {
    screen: Screen,
    run: OnceLock<RunId>,
    /// The last line of a dry run, held until its report is added.
    held: Option<Mutex<Value>>,
}

impl Ndjson {
    pub(super) fn new(screen: Screen, is_dry: bool) -> Self {
        Self {
            screen,
            run: OnceLock::new(),
            held: is_dry.then(Mutex::default),
        }
    }

    fn line(&self, mut line: Value) {
        if let Some(run) = self.run.get() {
            line["run"] = json!(run);
        }
        self.write(line.to_string().into_bytes());
    }

    fn write(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        // The screen notes what could not be written: the command ends with that.
        let _ = self.screen.raw(&line);
    }
}

impl Watcher for Ndjson {
    fn event(&self, event: AgentEvent<'_>) {
        match (event.to_json(), &self.held) {
            (Some(line), Some(held)) if matches!(event, AgentEvent::Done(_)) => *held.lock() = line,
            (Some(line), _) => self.line(line),
            (None, _) => {}
        }
    }
}

impl ProgressSink for Ndjson {
    fn progress(&self, event: ProgressEvent) {
        let mut line = Vec::new();
        event.write_json(&mut line);
        self.write(line);
    }
}

impl RunView for Ndjson {
    fn begins(&self, run: &RunId, _model: &str) {
        // The run is reported only once.
        let _ = self.run.set(run.clone());
    }

    fn notice(&self, text: &str) {
        self.line(json!({"type": "notice", "text": text}));
    }

    fn accept_dry_run_report(&self, report: Value) -> bool {
        let Some(held) = &self.held else {
            return false;
        };
        let mut line = std::mem::take(&mut *held.lock());
        if line.is_null() {
            line = json!({"type": "notice", "text": "the run broke off"});
        }
        line["dry_run"] = report;
        self.line(line);
        true
    }

    fn failed(&self, problem: &Problem) {
        self.line(json!({"type": "done", "end": "failed", "message": problem.what()}));
    }
}
