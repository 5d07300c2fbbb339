//! `haft runs`: the archives of what ran: listed, shown, verified.

use std::collections::HashMap;
use std::fmt::Write as _;

use haft::audit::index::{RunEntry, RunState};
use haft::audit::runs::{self, RunsError};
use haft::audit::verify::{self, Report};
use haft::call::RunId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::RunsAction;
use crate::assemble::House;
use crate::commands::{Done, changes, resume};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::Problem;
use crate::screen::list::{Cut, List};
use crate::screen::{DIM, GREEN, RED, styled, visible, when};

/// The most runs listed.
const MOST: usize = 10_000;
/// Runs that are looked through for recent calls.
const RECENT_RUNS: usize = 200;
/// The most lines of a run shown.
const MOST_LINES: usize = 100_000;

/// A run as it is listed (contract §9).
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    run: String,
    state: RunState,
    started: String,
    calls: u64,
    door: String,
    profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
}

/// Lists, shows or verifies.
pub(crate) async fn run(at: &Invocation, house: &House, action: Option<&RunsAction>) -> Done {
    match action {
        None | Some(RunsAction::List) => list(at, house).await,
        Some(RunsAction::Show { run }) => show(at, house, run).await,
        Some(RunsAction::Verify { run }) => check(at, house, run).await,
        Some(RunsAction::Resume { run }) => resume::run(at, house, run).await,
        Some(RunsAction::Diff(of)) => changes::diff(at, house, of),
        Some(RunsAction::Undo { of, yes, force }) => {
            let how = changes::How {
                yes: *yes,
                force: *force,
            };
            changes::undo(at, house, of, how).await
        }
    }
}

async fn list(at: &Invocation, house: &House) -> Done {
    let all = listed(house).await?;
    if at.screen.json {
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    let columns = [
        ("RUN", Cut::Never),
        ("STATE", Cut::Never),
        ("STARTED", Cut::Never),
        ("CALLS", Cut::Never),
        ("DOOR", Cut::Never),
        ("WORKSPACE", Cut::Middle),
    ];
    let mut list = List::new(&columns);
    for run in &all {
        let workspace = run.workspace.as_deref().unwrap_or_default();
        let (calls, started) = (run.calls.to_string(), when::ago(&run.started));
        list.row([
            &run.run,
            run.state.as_str(),
            &started,
            &calls,
            &run.door,
            workspace,
        ]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

/// All runs, newest first: what the archives hold, with what the index knows better.
pub(crate) async fn listed(house: &House) -> Result<Vec<Listed>, Problem> {
    house.flush().await?;
    let home = house.home().to_owned();
    let archived = tokio::task::spawn_blocking(move || runs::list(&home, MOST)).await;
    let archived = archived
        .map_err(|e| Problem::failed(format!("list the runs: {e}")))?
        .map_err(|e| told(&e))?;
    let most = u32::try_from(MOST).unwrap_or(u32::MAX);
    let indexed = house.index().list(None, most).await;
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
pub(crate) async fn listed_of(
    house: &House,
    only: Option<Vec<RunId>>,
) -> Result<Vec<Listed>, Problem> {
    let Some(only) = only else {
        return listed(house).await;
    };
    house.flush().await?;
    let mut found = Vec::with_capacity(only.len());
    for run in only {
        let home = house.home().to_owned();
        let id = run.clone();
        let archived = tokio::task::spawn_blocking(move || runs::entry(&home, id.as_str())).await;
        let archived = archived
            .map_err(|e| Problem::failed(format!("list the runs: {e}")))?
            .map_err(|e| told(&e))?;
        let Some(mut listed) = archived.map(Listed::from) else {
            continue;
        };
        let indexed = house.index().get(&run).await;
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
            door: entry.start.door,
            profile: entry.start.profile,
            workspace: entry.start.workspace,
        }
    }
}

async fn show(at: &Invocation, house: &House, run: &str) -> Done {
    let events = events(house, run).await?;
    if at.screen.json {
        at.screen.document(&json!({"run": run, "events": events}))?;
        return Ok(Exit::Done);
    }
    let columns = [
        ("SEQ", Cut::Never),
        ("TIME", Cut::Never),
        ("EVENT", Cut::Never),
        ("TOOL", Cut::Never),
        ("STATUS", Cut::Never),
        ("WHAT", Cut::End),
    ];
    let mut list = List::new(&columns);
    for event in &events {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        let time = text("ts").get(11..19).unwrap_or_default();
        let what = match text("type") {
            "call_started" => text("arguments"),
            "call_ended" => text("summary"),
            _ => text("workspace"),
        };
        let seq = event
            .get("seq")
            .and_then(Value::as_u64)
            .unwrap_or_default()
            .to_string();
        list.row([&seq, time, text("type"), text("tool"), text("status"), what]);
    }
    at.screen.out(&list.render())?;
    Ok(Exit::Done)
}

/// The record's lines.
pub(crate) async fn events(house: &House, run: &str) -> Result<Vec<Value>, Problem> {
    house.flush().await?;
    let (home, run) = (house.home().to_owned(), run.to_owned());
    let read = move || -> Result<Vec<Value>, RunsError> {
        let mut all = Vec::new();
        for line in runs::events(&home, &run)?.take(MOST_LINES) {
            all.push(serde_json::from_str(&line?).unwrap_or_default());
        }
        Ok(all)
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|e| Problem::failed(format!("read the run: {e}")))?
        .map_err(|e| told(&e))
}

/// The ends of a run's calls.
pub(crate) async fn calls(house: &House, run: &str) -> Result<Vec<Value>, Problem> {
    let mut events = events(house, run).await?;
    events.retain(|event| event.get("type").and_then(Value::as_str) == Some("call_ended"));
    Ok(events)
}

/// The last calls of the newest runs, newest run first.
pub(crate) async fn recent_calls(house: &House, most: usize) -> Result<Vec<Value>, Problem> {
    let mut found = Vec::new();
    for run in listed(house).await?.iter().take(RECENT_RUNS) {
        let Ok(calls) = calls(house, &run.run).await else {
            continue;
        };
        found.extend(calls.into_iter().rev().take(most - found.len()));
        if found.len() >= most {
            break;
        }
    }
    Ok(found)
}

async fn check(at: &Invocation, house: &House, run: &str) -> Done {
    let report = verified(house, run).await?;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        at.screen.out(&said(&report))?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

/// Whether a run's record is sound.
pub(crate) async fn verified(house: &House, run: &str) -> Result<Report, Problem> {
    let folder = runs::run_dir(house.home(), run).map_err(|e| told(&e))?;
    let known = house.index().get(&RunId::new(run)).await;
    let known = known.map_err(|e| Problem::failed(format!("verify the run: {e}")))?;
    if known.is_none() && !folder.exists() {
        return Err(told(&RunsError::NotFound(run.to_owned())));
    }
    let closed = known.and_then(|entry| entry.closed);
    let verified =
        tokio::task::spawn_blocking(move || verify::verify(&folder, closed.as_ref())).await;
    verified
        .map_err(|e| Problem::failed(format!("verify the run: {e}")))?
        .map_err(|e| Problem::failed(format!("verify the run: {e}")))
}

fn said(report: &Report) -> String {
    let run = visible::line(&report.run);
    let head = match (report.ok, report.first_bad) {
        (true, _) => styled(GREEN, "ok"),
        (false, Some(line)) => format!("{} at line {line}", styled(RED, "broken")),
        (false, None) => styled(RED, "broken"),
    };
    let mut out = format!(
        "{head} {run}, {}, {} lines\n",
        report.state.as_str(),
        report.lines
    );
    if let Some(problem) = &report.problem {
        let _ = writeln!(out, "  {}", visible::line(problem));
    }
    if report.torn {
        out.push_str(&styled(
            DIM,
            "  the last line is cut: the process ended while it was written\n",
        ));
    }
    for call in &report.in_doubt {
        let (tool, id) = (visible::line(&call.tool), visible::line(&call.call));
        let _ = writeln!(out, "  {tool} ({id}, line {}) {}", call.seq, call.note);
    }
    out
}

/// Checks that a run began in this workspace: its files are those that it began among.
pub(crate) async fn same_workspace(
    house: &House,
    run: &RunId,
    action: &str,
) -> Result<(), Problem> {
    let known = house.index().get(run).await;
    let known = known.map_err(|e| Problem::failed(format!("look the run up: {e}")))?;
    let began = known.and_then(|entry| entry.start.workspace);
    match began.filter(|began| began != house.workspace()) {
        None => Ok(()),
        Some(began) => Err(Problem::usage(format!("run {run} works in {began}"))
            .advise(format!("haft runs {action} {run} --workspace {began}"))),
    }
}

pub(crate) fn told(error: &RunsError) -> Problem {
    match error {
        RunsError::BadId(_) | RunsError::NotFound(_) => {
            Problem::usage(error.to_string()).advise("`haft runs list` shows them")
        }
        RunsError::Io { .. } => Problem::failed(error.to_string()),
    }
}
