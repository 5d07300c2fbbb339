//! `haft runs`: lists, shows and verifies the archives of runs.

use std::fmt::Write as _;

use haft::audit::index::{FAILED, RunFilter, RunState};
use haft::audit::verify::VerifyReport;
use haft::plural::counted;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::verify::verify;
use haft_app::view::runs::RunListItem;
use haft_app::view::{runs, when};

use crate::args::{ListRuns, RunSelector, RunsAction, VerifyRuns};
use crate::commands::{ExitResult, changes, resume};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{TextTable, Truncation};
use crate::screen::{DIM, GREEN, RED, is_terminal, styled, visible};

mod export;
mod log;
mod marks;
mod services;
mod show;

/// Lists, shows or verifies.
pub(crate) async fn run(at: &Invocation, app: &App, action: Option<&RunsAction>) -> ExitResult {
    match action {
        None => list(at, app, &ListRuns::default()).await,
        Some(RunsAction::List(which)) => list(at, app, which).await,
        Some(RunsAction::Show(of)) => show::run(at, app, &whole(app, of).await?).await,
        Some(RunsAction::Verify(VerifyRuns { run: Some(run), .. })) => {
            check(at, app, &runs::find(app, run).await?).await
        }
        Some(RunsAction::Verify(which)) if which.log => log::verify(at, app, which).await,
        Some(RunsAction::Verify(_)) => check_all(at, app).await,
        Some(RunsAction::LogKey) => log::key(at, app).await,
        Some(RunsAction::Export { run, format }) => {
            export::run(at, app, &runs::find(app, run).await?, *format)
        }
        Some(RunsAction::Resume { run }) => {
            resume::run(at, app, &runs::find(app, run).await?).await
        }
        Some(RunsAction::Marks { clear, client }) => marks::run(at, app, *clear, client.as_deref()),
        Some(RunsAction::Stop { run, command }) => {
            let run = runs::find(app, run).await?;
            services::end(at, app, &run, command.as_deref()).await
        }
        Some(RunsAction::Expose { run, port }) => {
            let run = runs::find(app, run).await?;
            services::expose(at, app, &run, *port).await
        }
        Some(RunsAction::Diff(of)) => changes::diff(at, app, &whole(app, of).await?),
        Some(RunsAction::Undo {
            of,
            session,
            yes,
            force,
        }) => {
            let how = changes::UndoOptions {
                yes: *yes,
                force: *force,
            };
            let of = whole(app, of).await?;
            if *session {
                changes::undo_session(at, app, &of, how).await
            } else {
                changes::undo(at, app, &of, how).await
            }
        }
    }
}

/// Returns the selection with the run's complete id.
async fn whole(app: &App, of: &RunSelector) -> Result<RunSelector, Problem> {
    Ok(RunSelector {
        run: runs::find(app, &of.run).await?,
        call: of.call.clone(),
    })
}

/// The number of runs that a terminal shows unless the user gives one.
const SCREENFUL: u32 = 50;

/// Returns the filter that the options ask for.
fn filter(app: &App, which: &ListRuns, otherwise: u32) -> Result<RunFilter, Problem> {
    let mut filter = RunFilter {
        tool: which.tool.clone(),
        workspace: which.here.then(|| app.workspace().to_owned()),
        ..RunFilter::newest(which.most.unwrap_or(otherwise))
    };
    if let Some(word) = &which.status {
        runs::words::with_status(&mut filter, word).map_err(Problem::usage)?;
    }
    let state = which.state.as_deref().map(runs::words::state);
    filter.state = state.transpose().map_err(Problem::usage)?;
    Ok(filter)
}

async fn list(at: &Invocation, app: &App, which: &ListRuns) -> ExitResult {
    let is_screen = is_terminal() && !at.screen.json;
    let otherwise = if is_screen { SCREENFUL } else { runs::MOST };
    let filter = filter(app, which, otherwise)?;
    let is_full = |count: usize| u32::try_from(count).is_ok_and(|count| count == SCREENFUL);
    let all = runs::page(app, filter).await?;
    if at.screen.json {
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    let columns = [
        ("RUN", Truncation::Never),
        ("STARTED", Truncation::Never),
        ("FROM", Truncation::Never),
        ("FIRST CALL", Truncation::End),
        ("CALLS", Truncation::Never),
        ("OUTCOME", Truncation::Never),
        ("TOOK", Truncation::Never),
        ("FOLDER", Truncation::Middle),
    ];
    let mut list = TextTable::new(&columns);
    for run in &all {
        row(&mut list, run);
    }
    at.screen.out(&list.render())?;
    if all.is_empty() {
        at.screen.say(&styled(DIM, "no such run is recorded"));
    }
    if is_screen && which.most.is_none() && is_full(all.len()) {
        at.screen
            .say(&styled(DIM, "the newest 50; -n COUNT shows more"));
    }
    Ok(Exit::Done)
}

fn row(list: &mut TextTable, run: &RunListItem) {
    let first = run.first.as_ref();
    let tool = first.map_or("", |first| &first.tool);
    let argument = first.and_then(|first| first.argument.as_deref());
    let first = format!("{tool} {}", argument.unwrap_or_default());
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a run, for people"
    )]
    let took = run.duration_ms.map(|ms| when::duration(ms as f64));
    list.row([
        &run.run,
        &when::ago(&run.started),
        run.client.as_ref().unwrap_or(&run.door),
        first.trim_end(),
        &run.calls.to_string(),
        &outcome(run),
        &took.unwrap_or_default(),
        run.workspace.as_deref().unwrap_or_default(),
    ]);
}

/// Describes the state or end of a run in a few words.
fn outcome(run: &RunListItem) -> String {
    let failed: u64 = FAILED
        .iter()
        .filter_map(|status| run.statuses.get(status.as_str()))
        .sum();
    match (run.state, run.outcome) {
        (RunState::Suspended, _) => "pending".to_owned(),
        (_, Some(outcome)) if run.calls <= 1 => outcome.as_str().to_owned(),
        (RunState::Open, _) => "open".to_owned(),
        (RunState::Closed, _) if failed > 0 => format!("{failed} of {} failed", run.calls),
        (RunState::Closed, _) => "ok".to_owned(),
    }
}

async fn check(at: &Invocation, app: &App, run: &str) -> ExitResult {
    let report = verify(app.runs(), run).await?;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        at.screen.out(&render_report(&report))?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

/// Checks every run, and names the broken ones.
async fn check_all(at: &Invocation, app: &App) -> ExitResult {
    let mut reports = Vec::new();
    for run in runs::list(app).await? {
        reports.push(verify(app.runs(), &run.run).await?);
    }
    let broken: Vec<&VerifyReport> = reports.iter().filter(|report| !report.ok).collect();
    let exit = if broken.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    };
    if at.screen.json {
        at.screen.document(&reports)?;
        return Ok(exit);
    }
    for report in &broken {
        at.screen.out(&render_report(report))?;
    }
    let sound = reports.len() - broken.len();
    let all = counted(reports.len(), "run");
    let mut line = format!("{} {sound} of {all}", styled(GREEN, "ok"));
    if !broken.is_empty() {
        let _ = write!(line, ", {} {}", styled(RED, "broken"), broken.len());
    }
    at.screen.out(&format!("{line}\n"))?;
    Ok(exit)
}

fn render_report(report: &VerifyReport) -> String {
    let run = visible::line(&report.run);
    let head = match (report.ok, report.first_bad) {
        (true, _) => styled(GREEN, "ok"),
        (false, Some(line)) => format!("{} at line {line}", styled(RED, "broken")),
        (false, None) => styled(RED, "broken"),
    };
    let mut out = format!(
        "{head} {run}, {}, {}\n",
        report.state.as_str(),
        counted(usize::try_from(report.lines).unwrap_or(usize::MAX), "line")
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
