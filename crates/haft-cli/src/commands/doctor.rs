//! `haft doctor`: tries what works here; each line says what to do if something does not.

use std::fmt::Write as _;

use haft_app::app::App;
use haft_app::config::program::ProgramSettings;
use haft_app::problem::Problem;
use haft_app::view::health::{self, HealthCheck, HealthReport, SandboxStatus};

use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, GREEN, YELLOW, styled, visible};

/// Tries everything and reports; the exit code is 1 if something does not work. Settings that cannot be loaded are one line of the
/// report: the rest is tried with the built-in ones.
pub(crate) async fn run(at: &Invocation) -> ExitResult {
    let (app, wrong) = match assembled(at) {
        Ok(app) => (app, None),
        Err(problem) => {
            let built_in = at.site.settings_of(&ProgramSettings::default(), false)?;
            (
                App::build(&at.site, &built_in, at.host(false))?,
                Some(problem),
            )
        }
    };
    let _ = app.sweep();
    let mut report = health::report(&app).await;
    let agents = health::agents(&at.site, &app.sandbox().config().places);
    report.checks.extend(agents);
    if let Some(problem) = &wrong {
        report.note_settings(problem);
    }
    let printed = if at.screen.json {
        at.screen.document(&report)
    } else {
        at.screen.out(&render(&report))
    };
    app.shut_down().await;
    printed?;
    Ok(if report.is_broken() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn assembled(at: &Invocation) -> Result<App, Problem> {
    let settings = at.settings()?;
    let app = App::build(&at.site, &settings, at.host(false));
    app.map_err(|problem| problem.redacted(&settings.redactor))
}

/// Renders the checks; those that fail come first where haft depends on them.
fn render(report: &HealthReport) -> String {
    let mut out = String::new();
    let (broken, others): (Vec<&HealthCheck>, Vec<&HealthCheck>) =
        report.checks.iter().partition(|check| check.is_broken());
    for check in broken.into_iter().chain(others) {
        let mark = if check.ok {
            styled(GREEN, "ok     ")
        } else {
            styled(YELLOW, "missing")
        };
        let _ = writeln!(
            out,
            "{mark} {:<10} {}",
            check.name,
            visible::line(&check.detail)
        );
        // A recipe has a line for each of its steps.
        for line in check.advice.lines() {
            let _ = writeln!(out, "        {}", styled(DIM, &visible::line(line)));
        }
    }
    let SandboxStatus { backend, strength } = report.sandbox;
    let _ = writeln!(out, "sandbox {backend}, strength {strength}");
    out
}
