//! Runs as data: lists, records, verification.

use haft::audit::index::RunFilter;
use haft::audit::runs::{self as archive, RunsError};
use haft::policy::RunProperties;
use serde_json::Value;

use crate::app::App;
use crate::problem::Problem;
use crate::view::prefix;

pub mod words;

mod listed;
mod pages;

pub use listed::RunListItem;
pub(crate) use listed::exit_code;
pub use pages::{MOST, list, list_of, page};

/// Maximum number of runs that are searched for recent calls.
const RECENT_RUNS: u32 = 200;
/// Maximum number of lines of a run that are shown.
const MAX_LINES: usize = 100_000;

/// Returns the id of the run that equals `typed`, or of the only one that starts with it.
///
/// # Errors
/// Several runs start with it, or the runs cannot be listed.
pub async fn find(app: &App, typed: &str) -> Result<String, Problem> {
    let folder = archive::run_dir(app.home(), typed)?;
    if folder.exists() {
        return Ok(typed.to_owned());
    }
    let ids = list(app).await?.into_iter().map(|listed| listed.run);
    prefix::find("runs", typed, ids)
}

/// Returns the lines of a run's record.
///
/// # Errors
/// A [`Problem`] if there is no such run or its record cannot be read.
pub async fn events(app: &App, run: &str) -> Result<Vec<Value>, Problem> {
    app.flush().await?;
    let (home, run) = (app.home().to_owned(), run.to_owned());
    let read = move || -> Result<Vec<Value>, RunsError> {
        let mut all = Vec::new();
        for line in archive::events(&home, &run)?.take(MAX_LINES) {
            all.push(serde_json::from_str(&line?).unwrap_or_default());
        }
        Ok(all)
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|e| Problem::failed(format!("cannot read the run: {e}")))?
        .map_err(Problem::from)
}

/// Returns which of the three of the Rule of Two a run holds, according to its record.
///
/// # Errors
/// A [`Problem`] if there is no such run or its record cannot be read.
pub async fn rule_of_two(app: &App, run: &str) -> Result<RunProperties, Problem> {
    app.flush().await?;
    let (home, run) = (app.home().to_owned(), run.to_owned());
    let read = tokio::task::spawn_blocking(move || archive::properties(&home, &run)).await;
    read.map_err(|e| Problem::failed(format!("cannot read the run: {e}")))?
        .map_err(Problem::from)
}

/// Returns the end events of a run's calls.
///
/// # Errors
/// A [`Problem`] if there is no such run or its record cannot be read.
pub async fn calls(app: &App, run: &str) -> Result<Vec<Value>, Problem> {
    let mut events = events(app, run).await?;
    events.retain(|event| event.get("type").and_then(Value::as_str) == Some("call_ended"));
    Ok(events)
}

/// Returns the last calls of the newest runs, newest run first.
///
/// # Errors
/// A [`Problem`] if the runs cannot be listed.
pub async fn recent_calls(app: &App, most: usize) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    for run in page(app, RunFilter::newest(RECENT_RUNS)).await? {
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
