//! `haft runs verify --log` and `haft runs log-key`: the signed log of all finished runs.

use std::fmt::Write as _;

use haft::plural::counted;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::record_log::VerifierKey;
use haft_app::record_log::verify::{LogChecks, LogFinding, LogReport};
use haft_app::view::run_log;
use serde_json::json;

use crate::args::VerifyRuns;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, GREEN, RED, styled, visible};

/// Verifies the log and says what does not fit.
pub(super) async fn verify(at: &Invocation, app: &App, which: &VerifyRuns) -> ExitResult {
    let key = which.key.as_deref().map(VerifierKey::parse).transpose();
    let checks = LogChecks {
        checkpoints: which.checkpoints.clone(),
        key: key.map_err(|e| Problem::usage(e.to_string()))?,
        kept_since: which
            .kept_since
            .as_deref()
            .map(run_log::kept_since)
            .transpose()?,
    };
    let report = run_log::verify(app, checks).await?;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        at.screen.out(&render(&report))?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

/// Prints the verifier key.
pub(super) async fn key(at: &Invocation, app: &App) -> ExitResult {
    let key = run_log::key(app).await?.to_string();
    if at.screen.json {
        at.screen.document(&json!({"key": key}))?;
    } else {
        at.screen.out(&format!("{key}\n"))?;
    }
    Ok(Exit::Done)
}

fn count(number: u64, noun: &str) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

fn render(report: &LogReport) -> String {
    let mut out = String::new();
    for finding in &report.faults {
        out.push_str(&render_finding(finding));
    }
    if report.more_faults > 0 {
        let _ = writeln!(out, "  {} more findings", report.more_faults);
    }
    let head = if report.ok {
        styled(GREEN, "ok")
    } else {
        let number = report.faults.len() as u64 + report.more_faults;
        styled(RED, &count(number, "finding"))
    };
    let Some(origin) = &report.origin else {
        let none = "there is no log yet: it begins with the next run that finishes";
        let _ = writeln!(out, "{head} {none}");
        return out;
    };
    let leaves = match report.size {
        1 => "1 leaf".to_owned(),
        size => format!("{size} leaves"),
    };
    let fitting = report.checkpoints.iter().filter(|one| one.ok).count();
    let _ = writeln!(
        out,
        "{head} {}: {} with the records that the log holds, {leaves}; {fitting} of {} fit it",
        visible::line(origin),
        count(report.runs, "run"),
        counted(report.checkpoints.len(), "checkpoint"),
    );
    for (number, what) in [
        (report.retired, "deleted before the time that was given"),
        (
            report.pending.len() as u64,
            "not in the log yet: the next haft process adds it",
        ),
    ] {
        if number > 0 {
            out.push_str(&styled(
                DIM,
                &format!("  {}: {what}\n", count(number, "run")),
            ));
        }
    }
    out
}

fn render_finding(finding: &LogFinding) -> String {
    let kind = styled(RED, finding.kind.as_str());
    let problem = visible::line(&finding.problem);
    match &finding.run {
        Some(run) => format!("{kind} run {}: {problem}\n", visible::line(run)),
        None => format!("{kind} {problem}\n"),
    }
}
