//! Runs as they are listed, their records, whether they verify.

use std::collections::HashMap;

use haft::audit::index::{RunEntry, RunState};
use haft::audit::runs::{self as archive, RunsError};
use haft::audit::verify::{Report, verify as verify_folder};
use haft::call::RunId;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::problem::Problem;

/// The most runs listed.
const MOST: usize = 10_000;
/// Runs that are looked through for recent calls.
const RECENT_RUNS: usize = 200;
/// The most lines of a run shown.
const MOST_LINES: usize = 100_000;

/// A run as it is listed (contract §9).
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Its id.
    pub run: String,
    /// Open, suspended or closed.
    pub state: RunState,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// How many calls it had.
    pub calls: u64,
    /// The entry point that started it.
    pub door: String,
    /// The profile that was in force.
    pub profile: String,
    /// The folder that it works in, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// All runs, newest first: what the archives hold, with what the index knows better.
///
/// # Errors
/// A [`Problem`] where the runs cannot be listed.
pub async fn list(app: &App) -> Result<Vec<Listed>, Problem> {
    app.flush().await?;
    let home = app.home().to_owned();
    let archived = tokio::task::spawn_blocking(move || archive::list(&home, MOST)).await;
    let archived = archived
        .map_err(|e| Problem::failed(format!("list the runs: {e}")))?
        .map_err(|e| problem(&e))?;
    let most = u32::try_from(MOST).unwrap_or(u32::MAX);
    let indexed = app.index().list(None, most).await;
    let indexed = indexed.map_err(|e| Problem::failed(format!("list the runs: {e}")))?;
    let mut all: HashMap<String, Listed> = archived
        .into_iter()
        .map(|entry| (entry.run.to_string(), Listed::from(entry)))
        .collect();
    for entry in indexed {
        match all.get_mut(entry.run.as_str()) {
            Some(known) => known.learn(&entry),
            None => drop(all.insert(entry.run.to_string(), Listed::from(entry))),
        }
    }
    let mut all: Vec<Listed> = all.into_values().collect();
    all.sort_by(|a, b| (&b.started, &b.run).cmp(&(&a.started, &a.run)));
    Ok(all)
}

/// These runs alone, newest first; no other is looked at. All, where none is named.
///
/// # Errors
/// A [`Problem`] where a run's record cannot be read.
pub async fn list_of(app: &App, only: Option<Vec<RunId>>) -> Result<Vec<Listed>, Problem> {
    let Some(only) = only else {
        return list(app).await;
    };
    app.flush().await?;
    let mut found = Vec::with_capacity(only.len());
    for run in only {
        let home = app.home().to_owned();
        let id = run.clone();
        let archived =
            tokio::task::spawn_blocking(move || archive::entry(&home, id.as_str())).await;
        let archived = archived
            .map_err(|e| Problem::failed(format!("list the runs: {e}")))?
            .map_err(|e| problem(&e))?;
        let Some(mut listed) = archived.map(Listed::from) else {
            continue;
        };
        let indexed = app.index().get(&run).await;
        let indexed = indexed.map_err(|e| Problem::failed(format!("list the runs: {e}")))?;
        if let Some(entry) = indexed {
            listed.learn(&entry);
        }
        found.push(listed);
    }
    found.sort_by(|a, b| (&b.started, &b.run).cmp(&(&a.started, &a.run)));
    Ok(found)
}

impl Listed {
    /// What the index knows better than the archive.
    fn learn(&mut self, entry: &RunEntry) {
        if entry.closed.is_some() {
            // A sealed run stays sealed, whatever became of its files.
            self.state = entry.state;
            self.calls = entry.calls;
        } else if self.state == RunState::Open {
            self.state = entry.state;
        }
    }
}

impl From<RunEntry> for Listed {
    fn from(entry: RunEntry) -> Self {
        Self {
            run: entry.run.to_string(),
            state: entry.state,
            started: entry.started,
            calls: entry.calls,
            door: entry.start.entry_point,
            profile: entry.start.profile,
            workspace: entry.start.workspace,
        }
    }
}

/// The record's lines.
///
/// # Errors
/// A [`Problem`] where there is no such run or its record cannot be read.
pub async fn events(app: &App, run: &str) -> Result<Vec<Value>, Problem> {
    app.flush().await?;
    let (home, run) = (app.home().to_owned(), run.to_owned());
    let read = move || -> Result<Vec<Value>, RunsError> {
        let mut all = Vec::new();
        for line in archive::events(&home, &run)?.take(MOST_LINES) {
            all.push(serde_json::from_str(&line?).unwrap_or_default());
        }
        Ok(all)
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|e| Problem::failed(format!("read the run: {e}")))?
        .map_err(|e| problem(&e))
}

/// The ends of a run's calls.
///
/// # Errors
/// A [`Problem`] where there is no such run or its record cannot be read.
pub async fn calls(app: &App, run: &str) -> Result<Vec<Value>, Problem> {
    let mut events = events(app, run).await?;
    events.retain(|event| event.get("type").and_then(Value::as_str) == Some("call_ended"));
    Ok(events)
}

/// The last calls of the newest runs, newest run first.
///
/// # Errors
/// A [`Problem`] where the runs cannot be listed.
pub async fn recent_calls(app: &App, most: usize) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    for run in list(app).await?.iter().take(RECENT_RUNS) {
        let Ok(calls) = calls(app, &run.run).await else {
            continue;
        };
        found.extend(calls.into_iter().rev().take(most - found.len()));
        if found.len() >= most {
            break;
        }
    }
    Ok(found)
}

/// Whether a run's record is sound.
///
/// # Errors
/// A [`Problem`] where there is no such run or its record cannot be read.
pub async fn verify(app: &App, run: &str) -> Result<Report, Problem> {
    let folder = archive::run_dir(app.home(), run).map_err(|e| problem(&e))?;
    let known = app.index().get(&RunId::new(run)).await;
    let known = known.map_err(|e| Problem::failed(format!("verify the run: {e}")))?;
    if known.is_none() && !folder.exists() {
        return Err(problem(&RunsError::NotFound(run.to_owned())));
    }
    let closed = known.and_then(|entry| entry.closed);
    let verified =
        tokio::task::spawn_blocking(move || verify_folder(&folder, closed.as_ref())).await;
    verified
        .map_err(|e| Problem::failed(format!("verify the run: {e}")))?
        .map_err(|e| Problem::failed(format!("verify the run: {e}")))
}

/// Checks that a run began in this workspace: its files are those that it began among.
///
/// # Errors
/// A [`Problem`] where it began in another one; it names both.
pub async fn check_workspace(app: &App, run: &RunId, action: &str) -> Result<(), Problem> {
    let known = app.index().get(run).await;
    let known = known.map_err(|e| Problem::failed(format!("look the run up: {e}")))?;
    let began = known.and_then(|entry| entry.start.workspace);
    match began.filter(|began| began != app.workspace()) {
        None => Ok(()),
        Some(began) => Err(Problem::usage(format!("run {run} works in {began}"))
            .advise(format!("haft runs {action} {run} --workspace {began}"))),
    }
}

/// A failure to read a record, as a problem.
pub fn problem(error: &RunsError) -> Problem {
    match error {
        RunsError::BadId(_) | RunsError::NotFound(_) => {
            Problem::usage(error.to_string()).advise("`haft runs list` shows them")
        }
        RunsError::Io { .. } => Problem::failed(error.to_string()),
    }
}
