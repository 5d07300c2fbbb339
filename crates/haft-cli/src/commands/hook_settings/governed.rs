//! What an install ends with: how the agent's commands run, and in one line whether the agent is governed and what is not.

use haft::plural::counted;
use haft_app::hook::wrap_setting::{self, WrapSetting};
use haft_app::hook_settings::status::{AgentStatus, HookCoverage};
use haft_app::problem::Problem;
use haft_hook::Agent;

use crate::commands::runtime;
use crate::invocation::Invocation;
use crate::screen::{BOLD, GREEN, YELLOW, styled, visible};

/// What it costs if an agent's commands run without the jail.
const COST: &str = "haft asks about nearly every second harmless one";

/// Has the commands of these agents run in the jail; `None` if none of the agents lets a hook change its calls.
pub(super) fn wrap(
    at: &Invocation,
    agents: &[Agent],
    dry_run: bool,
) -> Result<Option<WrapSetting>, Problem> {
    if !agents.iter().any(|agent| agent.limits().can_rewrite) {
        return Ok(None);
    }
    // Settings that do not load deny every call; the hook's own answer says why.
    let settings = at.settings_with(&[])?;
    let runtime =
        runtime(false).map_err(|e| Problem::failed(format!("cannot start the runtime: {e}")))?;
    let wrapped = wrap_setting::wrap(&at.site, &settings, at.places(), dry_run);
    runtime.block_on(wrapped).map(Some)
}

/// Returns how an agent's commands run, and why.
pub(super) fn commands_of(agent: Agent, wrap: Option<&WrapSetting>) -> (bool, String) {
    let title = agent.title();
    let without = |why: &str| {
        let line = format!("{title}'s commands run without haft's jail, so {COST}: {why}");
        (false, line)
    };
    if !agent.limits().can_rewrite {
        return without("it lets no hook change a call");
    }
    let jailed = |place: &str| {
        let line = format!(
            "{title}'s commands run in haft's jail, on a copy of the folder: hook.wrap = \"jail\" in {place}"
        );
        (true, line)
    };
    match wrap {
        Some(WrapSetting::Written(edit)) => jailed(&edit.file.display().to_string()),
        Some(WrapSetting::Jail(place)) => jailed(place),
        Some(WrapSetting::Other { value, place }) => without(&format!(
            "your own hook.wrap = \"{value}\" in {place} stays"
        )),
        Some(WrapSetting::NoJail(why)) => without(&format!(
            "the jail is not full here ({why}): run `haft doctor`, then this again"
        )),
        None => without("hook.wrap is not set"),
    }
}

/// Returns in one line whether an agent is governed, and what is not.
pub(super) fn line(status: &AgentStatus) -> String {
    let title = styled(BOLD, status.title);
    let more = format!("haft hook status {}", status.agent);
    let all_folders = status.files.iter().any(|file| file.level == "user");
    let reach = if all_folders {
        "in all folders"
    } else {
        "in this folder"
    };
    match status.governed {
        HookCoverage::Yes => {
            let not = match status.gaps.as_slice() {
                [] => "nothing of it is known to pass haft by".to_owned(),
                [one] => format!("not governed: {one}"),
                [one, ..] => {
                    let gaps = counted(status.gaps.len(), "limit");
                    format!("not governed: {gaps} of its hooks, such as: {one} ({more})")
                }
            };
            let word = styled(GREEN, "governed");
            format!("{title} is {word} {reach}; {}", visible::line(&not))
        }
        HookCoverage::Partly | HookCoverage::No => {
            let word = match status.governed {
                HookCoverage::Partly => "only partly governed",
                _ => "not governed",
            };
            let missing = || format!("no hook for {}", status.missing.join(", "));
            let why = match (status.warnings.first(), status.missing.is_empty()) {
                (Some(warning), _) => warning.clone(),
                (None, false) => missing(),
                (None, true) => "its version has no hooks that decide".to_owned(),
            };
            let word = styled(YELLOW, word);
            format!("{title} is {word}: {} ({more})", visible::line(&why))
        }
    }
}
