//! Reports what a dry run would have done: files, questions, calls that it refused.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use haft::call::RunId;
use haft_app::app::App;
use haft_app::dry_run::DryRun;
use haft_app::problem::Problem;
use haft_app::run::selection::RunSelection;
use haft_app::view::changes::{FileReport, ReportLimits, report as changes_of};
use serde_json::json;

use super::view::RunView;
use crate::commands::changes;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, styled, visible};

/// Prints the report, or adds it to the run's last line.
pub(super) fn report(
    at: &Invocation,
    app: &App,
    dry: &DryRun,
    run: &RunId,
    view: &dyn RunView,
) -> Result<(), Problem> {
    let of = RunSelection::find(app.runs(), run.as_str(), None)?;
    let changes = changes_of(app, &of, &ReportLimits::NONE)?.changes;
    let notes = dry.notes();
    let whole = json!({
        "changes": changes, "asked": notes.asked, "refused": notes.refused, "left_out": dry.left_out(),
    });
    if view.accept_dry_run_report(whole) {
        return Ok(());
    }
    at.screen.out(&files(&changes))?;
    for (head, lines) in [
        ("you would have been asked about", &notes.asked),
        ("refused, as nothing leaves a dry run", &notes.refused),
    ] {
        at.screen.out(&list(head, lines))?;
    }
    if let Some(first) = dry.left_out().first() {
        let (first, count) = (visible::line(first), dry.left_out().len());
        let line = match count {
            1 => format!("{first}, a socket, device or mount, was not in the copy"),
            _ => format!("{count} sockets, devices or mounts were not in the copy, {first} first"),
        };
        at.screen.say(&styled(DIM, &line));
    }
    Ok(())
}

fn files(changes: &[FileReport]) -> String {
    let head = match changes.len() {
        0 => "a dry run: no file would have been changed".to_owned(),
        1 => "a dry run: one file would have been changed".to_owned(),
        count => format!("a dry run: {count} files would have been changed"),
    };
    let mut out = format!("\n{}\n", styled(BOLD, &head));
    for one in changes {
        out.push_str(&changes::render(one));
    }
    out
}

fn list(head: &str, lines: &BTreeSet<String>) -> String {
    let mut out = String::new();
    if !lines.is_empty() {
        let _ = writeln!(out, "{}", styled(BOLD, head));
    }
    for line in lines {
        let _ = writeln!(out, "  {}", visible::line(line));
    }
    out
}
