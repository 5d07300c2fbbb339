//! Claude Code: servers in `.mcp.json` and `~/.claude.json`, hooks and permissions in `settings.json`, plugins with servers of their own.

use std::path::{Path, PathBuf};

use haft_hook::Agent;
use serde_json::{Map, Value, json};

use crate::program::{
    ClientFileFormat, ClientProgram, HookProgram, HooksOff, ImportQuirks, InstallScope,
    SettingsProgram, Switch, in_home, moved_by, with_type,
};
use crate::registration::{
    AgentFile, HookEntry, REPORT_SECONDS, RegistrationPlace, RegistrationScope, SettingsFormat,
    Setup, command_line, group,
};
use crate::site::SetupSite;

pub(crate) mod permissions;
pub(crate) mod plugins;

/// The name of the client.
pub(crate) const CLIENT: &str = "claude-code";

/// The keys under which Claude Code stores which servers are turned off.
const TURNED_OFF: [&str; 2] = ["disabledMcpServers", "disabledMcpjsonServers"];

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: CLIENT,
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
    imports: Some(ImportQuirks {
        rule_files,
        manifest: Some(".claude-plugin/plugin.json"),
        workspace_names: &["CLAUDE_PROJECT_DIR"],
        package_names: &["CLAUDE_PLUGIN_ROOT"],
        in_milliseconds: true,
        ..ImportQuirks::new(
            CLIENT,
            &[
                "/.mcp.json",
                "/.claude.json",
                "/.claude/settings.json",
                "/.claude/settings.local.json",
            ],
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

/// Returns the files with permissions.
fn rule_files(at: SetupSite<'_>, level: InstallScope) -> Vec<PathBuf> {
    match level {
        InstallScope::User => in_home(at.environment, ".claude/settings.json")
            .into_iter()
            .collect(),
        InstallScope::Project => [".claude/settings.json", ".claude/settings.local.json"]
            .map(|name| at.workspace.join(name))
            .to_vec(),
    }
}

/// Takes the settings of a folder, which Claude Code stores under that folder's path.
pub(crate) fn take_project(
    root: &mut Map<String, Value>,
    workspace: &Path,
) -> Option<Map<String, Value>> {
    let own = workspace.to_string_lossy().into_owned();
    let project = root.get_mut("projects")?.get_mut(&own)?;
    project.as_object_mut().map(std::mem::take)
}

/// Whether a file is one of Claude Code's, also if it has no servers.
pub(crate) fn is_settings(root: &Map<String, Value>) -> bool {
    let mut known = ["projects", "permissions"].into_iter().chain(TURNED_OFF);
    known.any(|key| root.contains_key(key))
}

/// Returns the servers that are turned off.
pub(crate) fn turned_off(settings: &Map<String, Value>) -> Vec<String> {
    let lists = TURNED_OFF
        .into_iter()
        .filter_map(|key| settings.get(key)?.as_array());
    let names = lists.flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}
