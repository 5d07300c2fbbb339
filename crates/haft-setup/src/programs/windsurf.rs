//! Windsurf, since renamed Devin Desktop: hooks in `hooks.json`.

use haft_hook::Agent;
use serde_json::json;

use crate::program::{HookProgram, ImportQuirks, InstallScope, SettingsProgram, in_home};
use crate::registration::{
    AgentFile, HookEntry, RegistrationPlace, RegistrationScope, SettingsFormat, Setup, command_line,
};

/// The file of Windsurf's servers, below the user's home folder.
const SERVERS: &str = ".codeium/windsurf/mcp_config.json";

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: None,
    hooks: Some(HookProgram {
        starts_by_path: true,
        ..HookProgram::new(
            Agent::Windsurf,
            &["windsurf"],
            |env| in_home(env, ".codeium/windsurf"),
            setup,
        )
    }),
    imports: Some(ImportQuirks {
        server_files: |at, level| match level {
            InstallScope::User => in_home(at.environment, SERVERS).into_iter().collect(),
            InstallScope::Project => Vec::new(),
        },
        ..ImportQuirks::new("windsurf", &[SERVERS])
    }),
};

/// Where haft is registered.
fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Windsurf);
    let events = [
        "pre_run_command",
        "pre_read_code",
        "pre_write_code",
        "pre_mcp_tool_use",
        "post_run_command",
        "post_read_code",
        "post_write_code",
        "post_mcp_tool_use",
    ];
    let entry = |event| HookEntry::new(event, json!({"command": command, "show_output": false}));
    let file = |path| AgentFile::shared(path, SettingsFormat::Json, events.map(entry).to_vec());
    Setup::new(
        vec![
            RegistrationPlace::new(
                RegistrationScope::User,
                vec![file(".codeium/windsurf/hooks.json")],
            ),
            RegistrationPlace::new(
                RegistrationScope::Project,
                vec![file(".windsurf/hooks.json")],
            ),
        ],
        &["start Windsurf again: it may not read the file before"],
    )
}
