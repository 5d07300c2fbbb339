//! haft's own plugins, for agents that have plugins instead of hooks.

use haft_hook::Agent;

use crate::registration::{
    AgentFile, AgentFileContent, OWN_FILE, RegistrationPlace, RegistrationScope, Setup,
};

/// The part that both plugins share: it runs `haft` and reads the answer.
const DECIDE: &str = include_str!("../plugins/decide.js");

/// Returns a plugin's file: the version, the shared part and the agent's own part.
///
/// Comments at the beginning of `own` stay at the top, since an agent may look for one there.
pub(super) fn file(agent: Agent, own: &str, program: &str) -> AgentFileContent {
    let top: usize = own
        .split_inclusive('\n')
        .take_while(|line| line.starts_with("//"))
        .map(str::len)
        .sum();
    let (top, own) = own.split_at(top);
    // A JSON string is also a JavaScript string.
    let program = serde_json::Value::from(program).to_string();
    let shared = DECIDE
        .replace("\"@PROGRAM@\"", &program)
        .replace("@AGENT@", agent.name());
    let note = "written by `haft hook install`, which writes it anew: change nothing here";
    AgentFileContent::Own {
        text: format!("{top}// {OWN_FILE}: {note}.\n{shared}{}", own.trim_start()),
        executable: false,
    }
}

/// Where the file is installed: for the user, below a folder that `XDG_CONFIG_HOME` moves, and for a project.
pub(super) fn setup(
    content: AgentFileContent,
    user: &'static str,
    project: &'static str,
    steps: &'static [&'static str],
) -> Setup {
    let moved = AgentFile::new(user, content.clone()).moved_by("XDG_CONFIG_HOME", ".config");
    let here = AgentFile::new(project, content);
    let places = vec![
        RegistrationPlace::new(RegistrationScope::User, vec![moved]),
        RegistrationPlace::new(RegistrationScope::Project, vec![here]),
    ];
    Setup::new(places, steps)
}
