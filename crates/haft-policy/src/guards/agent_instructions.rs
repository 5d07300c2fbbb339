//! The guard of instructions to agents: whoever changes them tells later runs what to do.

use crate::guards::{Guard, MinimumVerdict, both_paths, is_of_command};
use crate::judged_call::JudgedCall;
use crate::protected::{agent_instructions, protected_from_commands};
use haft_types::permission::{Effect, Permission};
use haft_types::text::visible;

/// Requires approval of every change to a file that coding agents obey (`AGENTS.md`, `CLAUDE.md`, …), in every profile: what a page made a
/// model write there would tell every later run what to do.
#[derive(Debug, Clone, Copy)]
pub struct AgentInstructions;

impl Guard for AgentInstructions {
    fn name(&self) -> &'static str {
        "agent-instructions"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        effect.changed_path().is_some()
    }

    fn floor(
        &self,
        call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let Some(claim) = permission.effect.changed_path() else {
            return Ok(MinimumVerdict::NONE);
        };
        let by_command = is_of_command(call);
        let mut paths = both_paths(claim).filter_map(|path| {
            let entry = agent_instructions(path)?;
            // A package that a command installs may bring such files.
            (!by_command || protected_from_commands(path).is_some()).then_some((path, entry))
        });
        let Some((path, entry)) = paths.next() else {
            return Ok(MinimumVerdict::NONE);
        };
        let shown = visible::path(path);
        let is_itself = path.rsplit('/').next() == entry.rsplit('/').next();
        let of = if is_itself {
            String::new()
        } else {
            format!(" ({entry})")
        };
        Ok(MinimumVerdict::ask(format!(
            "coding agents obey {shown}{of}: what it says holds for later runs, too"
        )))
    }
}
