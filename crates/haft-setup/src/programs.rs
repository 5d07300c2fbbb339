//! The programs whose settings haft knows, one file each. A new one is a file here, its `mod` and its line in the list below.

use haft_hook::Agent;

use crate::program::{ClientProgram, HookProgram, ImportQuirks, SettingsProgram};
use crate::registration::Setup;

mod amp;
pub(crate) mod claude;
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

/// A client of which haft knows nothing special.
static UNKNOWN_CLIENT: ImportQuirks = ImportQuirks::new("a client", &[]);

/// Returns all MCP clients.
pub(crate) fn clients() -> impl Iterator<Item = &'static ClientProgram> {
    ALL.iter().filter_map(|program| program.client.as_ref())
}

/// Returns what haft knows about an agent's hooks.
pub(crate) fn hooks(agent: Agent) -> &'static HookProgram {
    let mut all = ALL.iter().filter_map(|program| program.hooks.as_ref());
    all.find(|hooks| hooks.agent == agent).unwrap_or(&UNKNOWN)
}

/// Returns the agent that an MCP client is, if it has tools of its own that ask hooks.
pub fn agent_of(client: &str) -> Option<Agent> {
    let is_client = |program: &&&SettingsProgram| {
        let own = program.client.as_ref();
        own.is_some_and(|own| own.name == client)
    };
    let program = ALL.iter().find(is_client)?;
    program.hooks.as_ref().map(|hooks| hooks.agent)
}

/// Returns the agent of this name, or the one that the MCP client of this name is.
pub fn agent_named(name: &str) -> Option<Agent> {
    Agent::from_name(name).or_else(|| agent_of(client_named(name)?.name))
}

/// Returns the MCP client of this name, or the one that the agent of this name is. `gemini-cli` is another name of `gemini`.
pub(crate) fn client_named(name: &str) -> Option<&'static ClientProgram> {
    let name = if name == "gemini-cli" { "gemini" } else { name };
    let is_named = |program: &&&SettingsProgram| {
        let client = program.client.as_ref();
        let hooks = program.hooks.as_ref();
        client.is_some_and(|client| client.name == name)
            || hooks.is_some_and(|hooks| hooks.agent.name() == name)
    };
    ALL.iter().find(is_named)?.client.as_ref()
}

/// Returns what an import must know, for each program with servers.
pub(crate) fn all_imports() -> impl Iterator<Item = &'static ImportQuirks> {
    ALL.iter().filter_map(|program| program.imports.as_ref())
}

/// Returns what an import of this client's servers must know.
pub(crate) fn imports(client: &str) -> &'static ImportQuirks {
    let found = all_imports().find(|one| one.client == client);
    found.unwrap_or(&UNKNOWN_CLIENT)
}

/// Returns the keys that hold servers, in any client.
pub(crate) fn server_keys() -> Vec<&'static str> {
    let mut keys = Vec::new();
    for client in clients() {
        if !keys.contains(&client.servers) {
            keys.push(client.servers);
        }
    }
    keys
}

/// Whether a client has this variable for the workspace.
pub(crate) fn is_workspace_name(name: &str) -> bool {
    all_imports().any(|one| one.workspace_names.contains(&name))
}

/// Whether a client has this variable for the folder of a plugin package.
pub(crate) fn is_package_name(name: &str) -> bool {
    all_imports().any(|one| one.package_names.contains(&name))
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
            let client = program.client.as_ref().map(|client| client.name);
            let imports = program.imports.as_ref().map(|imports| imports.client);
            assert!(client.is_none() || imports == client, "{program:?}");
        }
    }
}
