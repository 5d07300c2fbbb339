//! Coding agents on this machine: whether haft governs their calls, and what bypasses it.

use std::fmt::Write as _;

use haft_sandbox::Places;

use super::{HealthCheck, check};
use crate::hook_settings::status::{self, AgentStatus, HookCoverage};
use crate::site::Site;

/// Returns a line for each installed agent. Runs their programs to get their versions. Blocks.
pub fn agents(site: &Site, places: &Places) -> Vec<HealthCheck> {
    let here = status::all(site.setup(), places).into_iter();
    here.filter(AgentStatus::is_here)
        .flat_map(|one| [Some(line(&one)), gaps(&one)])
        .flatten()
        .collect()
}

fn line(status: &AgentStatus) -> HealthCheck {
    let name = status.agent;
    let mut detail = status.title.to_owned();
    if let Some(version) = &status.version {
        let _ = write!(detail, " {version}");
    }
    let word = match status.governed {
        HookCoverage::Yes => "governed",
        HookCoverage::Partly => "partly governed",
        HookCoverage::No => "not governed",
    };
    let _ = write!(detail, ": {word}");
    let is_installed = !status.files.is_empty();
    if is_installed {
        describe(status, &mut detail);
    }
    let advice = if is_installed {
        format!("`haft hook status {name}` says more")
    } else {
        format!("`haft hook install {name}` puts its calls under the same rules")
    };
    check(
        "agent",
        status.governed == HookCoverage::Yes,
        detail,
        &advice,
    )
}

fn describe(status: &AgentStatus, detail: &mut String) {
    for warning in &status.warnings {
        let _ = write!(detail, "; {warning}");
    }
    if !status.missing.is_empty() {
        let _ = write!(detail, "; not registered: {}", status.missing.join(", "));
    }
    for lacking in &status.unsupported {
        let _ = write!(detail, "; {} comes with {}", lacking.event, lacking.since);
    }
    match status.fails_closed {
        Some(true) => {}
        _ => {
            let _ = write!(detail, "; {}", status.failure);
        }
    }
}

/// Returns what bypasses haft, if the agent's hooks are installed.
fn gaps(status: &AgentStatus) -> Option<HealthCheck> {
    let is_said = !status.files.is_empty() && !status.gaps.is_empty();
    let detail = format!(
        "{} passes hooks by: {}",
        status.title,
        status.gaps.join("; ")
    );
    is_said.then(|| check("agent gaps", true, detail, ""))
}
