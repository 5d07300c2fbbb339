//! Claude Code: servers in `.mcp.json` and `~/.claude.json`, hooks in `settings.json`.

use std::path::Path;

use haft_hook::Agent;
use serde_json::json;

use crate::program::{
    ClientFileFormat, ClientProgram, HookProgram, HooksOff, InstallScope, SettingsProgram, Switch,
    moved_by, with_type,
};
use crate::registration::{
    AgentFile, HookEntry, REPORT_SECONDS, RegistrationPlace, RegistrationScope, SettingsFormat,
    Setup, command_line, group,
};
use crate::site::SetupSite;

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "claude-code",
        paste: ".mcp.json in the project",
        starts_in_project: true,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: with_type,
        project: Some(".mcp.json"),
        user: Some(|env| Some(moved_by(env, "CLAUDE_CONFIG_DIR", "")?.join(".claude.json"))),
        other_extension: None,
        default: InstallScope::Project,
    }),
    hooks: Some(HookProgram {
        switch: Some(Switch {
            text: "onFailure: \"block\"",
            since: Some("2.1.295"),
        }),
        off,
        ..HookProgram::new(
            Agent::Claude,
            &["claude"],
            |env| moved_by(env, "CLAUDE_CONFIG_DIR", ".claude"),
            setup,
        )
    }),
};

/// Where haft is registered. The command is a shell line instead of a list of words, because older versions, and other agents that run
/// these hooks, do not know `args`. `PermissionRequest` is not registered: it comes after `PreToolUse` for the same call, without the
/// call's id.
fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Claude);
    let decides = json!({
        "type": "command",
        "command": command,
        "timeout": Agent::Claude.limits().wait.as_secs(),
        "onFailure": "block",
    });
    let reports = json!({"type": "command", "command": command, "timeout": REPORT_SECONDS});
    let mut entries = vec![HookEntry::new("PreToolUse", group(&decides))];
    for event in [
        "PostToolUse",
        "PostToolUseFailure",
        "SessionStart",
        "SessionEnd",
    ] {
        entries.push(HookEntry::new(event, group(&reports)));
    }
    let file = |path| AgentFile::shared(path, SettingsFormat::Json, entries.clone());
    let user = file(".claude/settings.json").moved_by("CLAUDE_CONFIG_DIR", ".claude");
    Setup::new(
        vec![
            RegistrationPlace::new(RegistrationScope::User, vec![user]),
            RegistrationPlace::new(
                RegistrationScope::Project,
                vec![file(".claude/settings.json")],
            ),
            RegistrationPlace::new(
                RegistrationScope::Private,
                vec![file(".claude/settings.local.json")],
            ),
        ],
        &["sessions that run already read the settings when they are started again"],
    )
}

fn off(folder: &Path, site: SetupSite<'_>) -> Vec<HooksOff> {
    let project = site.workspace.join(".claude");
    let files = [
        folder.join("settings.json"),
        project.join("settings.json"),
        project.join("settings.local.json"),
    ];
    HooksOff::by_member(files, "disableAllHooks")
}
