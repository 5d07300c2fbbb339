//! What tells runs apart: the first call with its argument, the outcome, the time it took; read from the two ends of a record.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use haft::audit::index::RunState;
use haft::audit::runs::run_dir;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::problem::Problem;
use crate::view::runs::{Listed, list};

/// Bytes of a record's beginning that are read for the first call.
const HEAD: u64 = 256 * 1024;

/// Bytes of a record's end that are read for the last one.
const TAIL: u64 = 64 * 1024;

/// Arguments that say most about a call, the most telling first.
const TELLING: [&str; 12] = [
    "command", "path", "url", "pattern", "query", "from", "question", "title", "skill", "ref",
    "task", "code",
];

/// A run with what tells it apart.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// As it is listed.
    #[serde(flatten)]
    pub run: Listed,
    /// The first call's tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_tool: Option<String>,
    /// The argument of the first call that says most about it: a command, a path, a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_argument: Option<String>,
    /// How it ended or stands: `ok`, `denied`, `2 of 7 failed`, `pending`, `open`.
    pub outcome: String,
    /// From its first line to its last, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// At most so many.
    pub most: Option<usize>,
    /// Whose first call is of this tool.
    pub tool: Option<String>,
    /// Whose state or outcome is this word.
    pub status: Option<String>,
    /// Of this folder.
    pub workspace: Option<String>,
}

/// The runs that pass the filter, newest first.
///
/// # Errors
/// A [`Problem`] where the runs cannot be listed.
pub async fn summaries(app: &App, filter: RunFilter) -> Result<Vec<Summary>, Problem> {
    let runs = list(app).await?;
    let home = app.home().to_owned();
    let read = move || {
        let most = filter.most.unwrap_or(usize::MAX);
        let here = |run: &Listed| filter.workspace.is_none() || run.workspace == filter.workspace;
        let all = runs.into_iter().filter(here);
        let all = all.map(|run| summary(&home, run));
        all.filter(|summary| passes(summary, &filter))
            .take(most)
            .collect()
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|e| Problem::failed(format!("list the runs: {e}")))
}

fn passes(summary: &Summary, filter: &RunFilter) -> bool {
    let tool = filter.tool.as_ref();
    let status = filter.status.as_deref();
    tool.is_none_or(|tool| summary.first_tool.as_ref() == Some(tool))
        && status.is_none_or(|status| {
            summary.run.state.as_str() == status
                || summary.outcome == status
                || (status == "failed" && summary.outcome.ends_with("failed"))
        })
}

fn summary(home: &Path, run: Listed) -> Summary {
    let mut made = Summary {
        first_tool: None,
        first_argument: None,
        outcome: String::new(),
        duration_ms: None,
        run,
    };
    let Ok(folder) = run_dir(home, &made.run.run) else {
        return made;
    };
    if let Some((tool, argument)) = first_call(&folder.join("events.jsonl")) {
        (made.first_tool, made.first_argument) = (Some(tool), argument);
    }
    let (status, last) = last_call(&folder.join("events.jsonl")).unwrap_or_default();
    let failed = lines(&folder.join("logs/errors.jsonl"));
    made.outcome = outcome(&made.run, &status, failed);
    made.duration_ms = between(&made.run.started, &last);
    made
}

fn outcome(run: &Listed, last: &str, failed: u64) -> String {
    match run.state {
        RunState::Suspended => "pending".to_owned(),
        _ if run.calls == 1 && !last.is_empty() => last.to_owned(),
        RunState::Open => "open".to_owned(),
        RunState::Closed if failed == 0 => "ok".to_owned(),
        RunState::Closed => format!("{failed} of {} failed", run.calls),
    }
}

/// The first call of a record: its tool and what it was about.
fn first_call(record: &Path) -> Option<(String, Option<String>)> {
    let head = BufReader::new(File::open(record).ok()?.take(HEAD));
    for line in head.lines() {
        let event: Value = serde_json::from_str(&line.ok()?).ok()?;
        if let Some(tool) = event["tool"].as_str() {
            let arguments = event["arguments"].as_str();
            return Some((tool.to_owned(), arguments.and_then(telling)));
        }
    }
    None
}

/// The argument that says most about a call.
fn telling(arguments: &str) -> Option<String> {
    // Redacted and bounded arguments need not be JSON any more.
    let Ok(Value::Object(map)) = serde_json::from_str(arguments) else {
        return Some(arguments.chars().take(200).collect());
    };
    let named = TELLING
        .iter()
        .find_map(|name| map.get(*name).and_then(Value::as_str));
    let any = || map.values().find_map(Value::as_str);
    named.or_else(any).map(str::to_owned)
}

/// The status of the last call that ended, and when the last line was written.
fn last_call(record: &Path) -> Option<(String, String)> {
    let mut file = File::open(record).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut status, mut last) = (String::new(), String::new());
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if let Some(at) = event["ts"].as_str() {
            at.clone_into(&mut last);
        }
        if let Some(ended) = event["status"].as_str() {
            ended.clone_into(&mut status);
        }
    }
    Some((status, last))
}

fn lines(path: &Path) -> u64 {
    let Ok(file) = File::open(path) else {
        return 0;
    };
    BufReader::new(file)
        .split(b'\n')
        .map_while(Result::ok)
        .count() as u64
}

fn between(from: &str, to: &str) -> Option<i64> {
    let (from, to) = (
        from.parse::<jiff::Timestamp>(),
        to.parse::<jiff::Timestamp>(),
    );
    let (from, to) = (from.ok()?, to.ok()?);
    Some(
        to.as_millisecond()
            .saturating_sub(from.as_millisecond())
            .max(0),
    )
}
