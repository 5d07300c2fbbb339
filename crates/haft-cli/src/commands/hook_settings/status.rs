//! `haft hook status`: shows which agents are governed, and which calls haft does not see.

use std::fmt::Write as _;

use haft::plural::counted;
use haft_app::hook_settings::status::{self, AgentStatus, HookCoverage};

use crate::commands::ExitResult;
use crate::commands::hook_settings::agent;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, GREEN, YELLOW, styled, visible};

/// Prints the status of one agent, or of all.
pub(super) fn run(at: &Invocation, name: Option<&str>) -> ExitResult {
    let places = at.places();
    let all = match name {
        Some(name) => vec![status::status(agent(name)?, at.site.setup(), &places)],
        None => status::all(at.site.setup(), &places),
    };
    if at.screen.json {
        at.screen.document(&all)?;
        return Ok(Exit::Done);
    }
    let is_listed = |one: &&AgentStatus| name.is_some() || one.is_here();
    for one in all.iter().filter(is_listed) {
        at.screen.out(&describe(one, name.is_some()))?;
    }
    let others: Vec<&str> = all
        .iter()
        .filter(|one| !is_listed(one))
        .map(|one| one.agent)
        .collect();
    if !others.is_empty() {
        at.screen.say(&styled(
            DIM,
            &format!("not found here: {}", others.join(", ")),
        ));
    }
    Ok(Exit::Done)
}

/// Returns what to do about an agent that haft is not registered with.
fn first_step(status: &AgentStatus) -> String {
    let install = format!("haft hook install {}", status.agent);
    if status.unreadable.is_empty() {
        install
    } else {
        format!("correct that file, then: {install}")
    }
}

/// Describes one agent; `is_whole` tells whether to list what its hooks do not see, or only to count it.
fn describe(status: &AgentStatus, is_whole: bool) -> String {
    let mut out = String::new();
    let mark = match status.governed {
        HookCoverage::Yes => styled(GREEN, "governed"),
        HookCoverage::Partly => styled(YELLOW, "partly governed"),
        HookCoverage::No => styled(YELLOW, "not governed"),
    };
    let version = status.version.as_deref().unwrap_or_default();
    let name = format!("{} {version}", status.title);
    let name = styled(BOLD, &visible::line(name.trim_end()));
    let _ = writeln!(out, "{name} ({}): {mark}", status.agent);
    let mut line = |word: &str, text: &str| {
        let _ = writeln!(out, "  {word:<14} {}", visible::line(text));
    };
    for file in &status.files {
        let events = file.events.join(", ");
        line(file.level, &format!("{}: {events}", file.file.display()));
    }
    for warning in &status.warnings {
        line("look", warning);
    }
    if status.files.is_empty() {
        line("to do", &first_step(status));
        return out;
    }
    if !status.missing.is_empty() {
        line("not registered", &status.missing.join(", "));
    }
    for lacking in &status.unsupported {
        line(
            "too old for",
            &format!("{}: comes with {}", lacking.event, lacking.since),
        );
    }
    let switch = status.switch.map(|switch| switch.text);
    match (status.fails_closed, switch) {
        (Some(true), Some(switch)) => line("fails closed", switch),
        (Some(true), None) => line("fails closed", status.failure),
        _ => line("fails open", status.failure),
    }
    match status.gaps.as_slice() {
        [] => {}
        gaps if is_whole => {
            for (at, gap) in gaps.iter().enumerate() {
                line(if at == 0 { "not seen" } else { "" }, gap);
            }
        }
        gaps => {
            let limits = counted(gaps.len(), "limit");
            let all = format!("{limits} of its hooks: haft hook status {}", status.agent);
            line("not seen", &all);
        }
    }
    if status.governed != HookCoverage::Yes {
        for step in status.steps {
            line("to do", step);
        }
    }
    out
}
