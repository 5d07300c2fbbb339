//! Cursor, the editor's agent and `cursor-agent`: servers in `mcp.json`, hooks in `hooks.json`.

use haft_hook::Agent;
use serde_json::json;

use crate::program::{
    ClientFileFormat, ClientProgram, HookProgram, ImportQuirks, InstallScope, SettingsProgram,
    Switch, in_home, plain,
};
use crate::registration::{
    AgentFile, AgentFileContent, HookEntry, REPORT_SECONDS, RegistrationPlace, RegistrationScope,
    SettingsFormat, Setup, command_line,
};

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "cursor",
        paste: ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: plain,
        project: Some(".cursor/mcp.json"),
        user: Some(|env| in_home(env, ".cursor/mcp.json")),
        other_extension: None,
        default: InstallScope::Project,
    }),
    hooks: Some(HookProgram {
        starts_by_path: true,
        switch: Some(Switch {
            text: "failClosed: true",
            since: None,
        }),
        since: |_| Some("1.7"),
        ..HookProgram::new(
            Agent::Cursor,
            &["cursor-agent", "cursor"],
            |env| in_home(env, ".cursor"),
            setup,
        )
    }),
    imports: Some(ImportQuirks {
        manifest: Some(".cursor-plugin/plugin.json"),
        package_names: &["CURSOR_PLUGIN_ROOT"],
        ..ImportQuirks::new("cursor", &["/.cursor/mcp.json"])
    }),
};

/// Where haft is registered: only at the events for all tools. Those for one kind of tool fire once more for the same calls.
fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Cursor);
    let decides = json!({"command": command, "timeout": Agent::Cursor.limits().wait.as_secs(), "failClosed": true});
    let reports = json!({"command": command, "timeout": REPORT_SECONDS});
    let mut entries = vec![HookEntry::new("preToolUse", decides)];
    for event in [
        "postToolUse",
        "postToolUseFailure",
        "sessionStart",
        "sessionEnd",
    ] {
        entries.push(HookEntry::new(event, reports.clone()));
    }
    let content = AgentFileContent::Shared {
        format: SettingsFormat::Json,
        root: vec![("version", json!(1))],
        entries,
    };
    let file = AgentFile::new(".cursor/hooks.json", content);
    Setup::new(
        vec![
            RegistrationPlace::new(RegistrationScope::User, vec![file.clone()]),
            RegistrationPlace::new(RegistrationScope::Project, vec![file]),
        ],
        &["start Cursor again: it may not read the file before"],
    )
}
