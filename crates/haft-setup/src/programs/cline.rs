//! Cline, the extension and the CLI: each hook is a program named after its event.

use haft_hook::Agent;

use crate::program::{HookProgram, SettingsProgram, in_home};
use crate::registration::{
    AgentFile, AgentFileContent, OWN_FILE, RegistrationPlace, RegistrationScope, Setup,
    command_line,
};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: None,
    hooks: Some(HookProgram {
        starts_by_path: true,
        ..HookProgram::new(
            Agent::Cline,
            &["cline"],
            |env| in_home(env, "Documents/Cline"),
            setup,
        )
    }),
    imports: None,
};

/// Where haft is registered: scripts named after the event. An existing file that haft did not write is the user's own hook.
fn setup(program: &str) -> Setup {
    let script = |path| {
        let command = command_line(program, Agent::Cline);
        let content = AgentFileContent::Own {
            text: format!("#!/bin/sh\n# {OWN_FILE}\nexec {command}\n"),
            executable: true,
        };
        AgentFile::new(path, content)
    };
    Setup::new(
        vec![
            RegistrationPlace::new(
                RegistrationScope::User,
                vec![
                    script("Documents/Cline/Hooks/PreToolUse"),
                    script("Documents/Cline/Hooks/PostToolUse"),
                ],
            ),
            RegistrationPlace::new(
                RegistrationScope::Project,
                vec![
                    script(".clinerules/hooks/PreToolUse"),
                    script(".clinerules/hooks/PostToolUse"),
                ],
            ),
        ],
        &["hooks are scripts of a shell here, so on Windows haft is not registered with Cline"],
    )
}
