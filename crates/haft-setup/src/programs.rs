//! The programs whose settings haft knows, one file each. A new one is a file here, its `mod` and its line in the list below.

use haft_hook::Agent;

use crate::program::{ClientProgram, HookProgram, SettingsProgram};
use crate::registration::Setup;

mod amp;
mod claude;
mod claude_desktop;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod devin;
mod droid;
mod gemini;
mod goose;
mod opencode;
mod plugin;
mod vscode;
mod windsurf;
mod zed;

/// All programs. Lists of clients have this order; lists of agents have that of [`Agent::ALL`].
static ALL: [&SettingsProgram; 15] = [
    &claude::PROGRAM,
    &claude_desktop::PROGRAM,
    &cursor::PROGRAM,
    &vscode::PROGRAM,
    &codex::PROGRAM,
    &gemini::PROGRAM,
    &zed::PROGRAM,
    &opencode::PROGRAM,
    &goose::PROGRAM,
    &copilot::PROGRAM,
    &cline::PROGRAM,
    &windsurf::PROGRAM,
    &devin::PROGRAM,
    &droid::PROGRAM,
    &amp::PROGRAM,
];

/// An agent of which haft knows no settings.
static UNKNOWN: HookProgram = HookProgram::new(
    Agent::Claude,
    &[],
    |_| None,
    |_| Setup::new(Vec::new(), &[]),
);

/// Returns all MCP clients.
pub(crate) fn clients() -> impl Iterator<Item = &'static ClientProgram> {
    ALL.iter().filter_map(|program| program.client.as_ref())
}

/// Returns what haft knows about an agent's hooks.
pub(crate) fn hooks(agent: Agent) -> &'static HookProgram {
    let mut all = ALL.iter().filter_map(|program| program.hooks.as_ref());
    all.find(|hooks| hooks.agent == agent).unwrap_or(&UNKNOWN)
}

/// Returns how haft is registered with an agent. `program` is the full path of haft's program: with just a name, an agent with another
/// `PATH` would let all calls run, or deny them all.
pub fn registrations(agent: Agent, program: &str) -> Setup {
    (hooks(agent).setup)(program)
}

#[cfg(test)]
mod tests {
    use haft_hook::Agent;

    use super::{ALL, hooks};

    #[test]
    fn every_agent_and_every_program_has_its_settings() {
        for agent in Agent::ALL {
            assert_eq!(hooks(agent).agent, agent);
            assert!(!hooks(agent).programs.is_empty(), "{agent}");
        }
        for program in ALL {
            assert!(
                program.client.is_some() || program.hooks.is_some(),
                "{program:?}"
            );
        }
    }
}
