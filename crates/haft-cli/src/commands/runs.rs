//! `haft runs`: the archives of what ran: listed, shown, verified.

use std::fmt::Write as _;

use haft::audit::verify::Report;
use haft_app::app::App;
use haft_app::view::{runs, when};
use serde_json::{Value, json};

use crate::args::RunsAction;
use crate::commands::{Done, changes, resume};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::list::{Cut, List};
use crate::screen::{DIM, GREEN, RED, styled, visible};

/// Lists, shows or verifies.
pub(crate) async fn run(at: &Invocation, app: &App, action: Option<&RunsAction>) -> Done {
    match action {
        None | Some(RunsAction::List) => list(at, app).await,
        Some(RunsAction::Show { run }) => show(at, app, run).await,
        Some(RunsAction::Verify { run: Some(run), .. }) => check(at, app, run).await,
        Some(RunsAction::Verify { run: None, .. }) => check_all(at, app).await,
        Some(RunsAction::Resume { run }) => resume::run(at, app, run).await,
        Some(RunsAction::Diff(of)) => changes::diff(at, app, of),
        Some(RunsAction::Undo { of, yes, force }) => {
            let how = changes::How {
                yes: *yes,
                force: *force,
            };
            changes::undo(at, app, of, how).await
        }
    }
}

async fn list(at: &Invocation, app: &App) -> Done {
    let all = runs::list(app).await?;
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

async fn show(at: &Invocation, app: &App, run: &str) -> Done {
    let events = runs::events(app, run).await?;
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

async fn check(at: &Invocation, app: &App, run: &str) -> Done {
    let report = runs::verify(app, run).await?;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        at.screen.out(&render_report(&report))?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

/// Checks every run, and names those that are broken.
async fn check_all(at: &Invocation, app: &App) -> Done {
    let mut reports = Vec::new();
    for run in runs::list(app).await? {
        reports.push(runs::verify(app, &run.run).await?);
    }
    let broken: Vec<&Report> = reports.iter().filter(|report| !report.ok).collect();
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
    let mut line = format!("{} {sound} of {} runs", styled(GREEN, "ok"), reports.len());
    if !broken.is_empty() {
        let _ = write!(line, ", {} {}", styled(RED, "broken"), broken.len());
    }
    at.screen.out(&format!("{line}\n"))?;
    Ok(exit)
}

fn render_report(report: &Report) -> String {
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
