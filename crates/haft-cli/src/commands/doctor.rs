//! `haft doctor`: what works here, found by trying; each line says what to do if not.

use std::fmt::Write as _;

use haft_app::app::App;
use haft_app::view::health::{self, Report, Strength};

use crate::commands::Done;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, GREEN, YELLOW, styled, visible};

/// Tries everything and reports; 1 when something does not work.
pub(crate) async fn run(at: &Invocation, app: &App) -> Done {
    let report = health::report(app).await;
    if at.screen.json {
        at.screen.document(&report)?;
    } else {
        at.screen.out(&render(&report))?;
    }
    Ok(if report.is_broken() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn render(report: &Report) -> String {
    let mut out = String::new();
    for check in &report.checks {
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
        if !check.advice.is_empty() {
            let _ = writeln!(
                out,
                "        {}",
                styled(DIM, &visible::line(&check.advice))
            );
        }
    }
    let Strength { backend, strength } = report.sandbox;
    let _ = writeln!(out, "sandbox {backend}, strength {strength}");
    out
}
