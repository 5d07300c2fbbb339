//! The signed log of finished runs as data: what verifying finds, and the key by which it is verified.

use std::collections::HashMap;

use haft::audit::index::{ClosedEvent, RunFilter, RunState};
use haft::call::RunId;
use jiff::Timestamp;

use crate::app::App;
use crate::problem::Problem;
use crate::record_log::VerifierKey;
use crate::record_log::verify::{LogChecks, LogReport, verify as verify_log};

/// Number of runs that are read from the index at a time.
const PAGE: u32 = 10_000;

/// Verifies the log of the application's state folder, and the record of each run in it.
///
/// # Errors
/// The log, the index or a folder cannot be read. What does not fit is in the report.
pub async fn verify(app: &App, checks: LogChecks) -> Result<LogReport, Problem> {
    app.flush().await?;
    let log = app.record_log()?.clone();
    let closed = if log.settings().is_index_shared {
        HashMap::new()
    } else {
        closed_runs(app).await?
    };
    let unread = |why: String| Problem::failed(format!("cannot verify the record's log: {why}"));
    let verified = tokio::task::spawn_blocking(move || verify_log(&log, closed, &checks)).await;
    verified
        .map_err(|e| unread(e.to_string()))?
        .map_err(|e| unread(e.to_string()))
}

/// Reads since when records are kept: a day or a time.
///
/// # Errors
/// The text is neither.
pub fn kept_since(text: &str) -> Result<Timestamp, Problem> {
    let day = format!("{text}T00:00:00Z");
    let read = text.parse().or_else(|_| day.parse::<Timestamp>());
    read.map_err(|_| {
        Problem::usage(format!("invalid --kept-since `{text}`"))
            .advise("write a day or a time, for example 2026-11-01 or 2026-11-01T08:00:00Z")
    })
}

/// Returns how the index says that runs were closed.
async fn closed_runs(app: &App) -> Result<HashMap<String, ClosedEvent>, Problem> {
    let mut all = HashMap::new();
    let mut after: Option<RunId> = None;
    loop {
        let filter = RunFilter {
            state: Some(RunState::Closed),
            after: after.clone(),
            ..RunFilter::newest(PAGE)
        };
        let page = app.index().list(&filter).await;
        let page = page.map_err(|e| Problem::failed(format!("cannot list the runs: {e}")))?;
        let Some(last) = page.last().map(|entry| entry.run.clone()) else {
            return Ok(all);
        };
        after = Some(last);
        let entries = page.into_iter();
        all.extend(entries.filter_map(|entry| Some((entry.run.to_string(), entry.closed?))));
    }
}

/// Returns the key by which the log of the application's state folder is verified, and makes the log if there is none.
///
/// # Errors
/// There is no key, or the log cannot be written.
pub async fn key(app: &App) -> Result<VerifierKey, Problem> {
    let log = app.record_log()?.clone();
    let read = tokio::task::spawn_blocking(move || log.verifier()).await;
    read.map_err(|e| Problem::failed(format!("cannot read the key of the record's log: {e}")))?
}
