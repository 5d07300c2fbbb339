//! goose: servers in `config.yaml`, which haft only prints; hooks in a plugin of haft's own.

use haft_hook::Agent;
use serde_json::json;

use crate::launch::Launch;
use crate::program::{
    ClientFileFormat, ClientProgram, HookProgram, ImportQuirks, InstallScope, SettingsProgram,
    Switch, in_config, plain,
};
use crate::registration::{
    AgentFile, AgentFileContent, OWN_FILE, REPORT_SECONDS, RegistrationPlace, RegistrationScope,
    Setup, command_line, group,
};

/// The file of goose's servers, below the folder of the user's settings.
const SERVERS: &str = "goose/config.yaml";

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "goose",
        paste: "~/.config/goose/config.yaml",
        starts_in_project: false,
        format: ClientFileFormat::Printed(snippet),
        servers: "extensions",
        entry: plain,
        project: None,
        user: None,
        other_extension: None,
        default: InstallScope::User,
    }),
    hooks: Some(HookProgram {
        switch: Some(Switch {
            text: "on_failure: \"block\"",
            since: Some("1.48"),
        }),
        since: |_| Some("1.38"),
        ..HookProgram::new(
            Agent::Goose,
            &["goose"],
            |env| in_config(env, "goose"),
            setup,
        )
    }),
    imports: Some(ImportQuirks {
        extensions: &[".yaml", ".yml"],
        server_files: |at, level| match level {
            InstallScope::User => in_config(at.environment, SERVERS).into_iter().collect(),
            InstallScope::Project => Vec::new(),
        },
        ..ImportQuirks::new("goose", &[SERVERS])
    }),
};

/// Where haft is registered: a plugin in a folder of its own.
fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Goose);
    let decides = json!({
        "type": "command",
        "command": command,
        "timeout": Agent::Goose.limits().wait.as_secs(),
        "on_failure": "block",
    });
    let reports = json!({"type": "command", "command": command, "timeout": REPORT_SECONDS});
    let hooks = json!({"hooks": {
        "PreToolUse": [group(&decides)],
        "PostToolUse": [group(&reports)],
        "PostToolUseFailure": [group(&reports)],
        "SessionStart": [group(&reports)],
        "SessionEnd": [group(&reports)],
    }});
    let plugin = json!({"name": "haft", "version": "1.0.0", "description": OWN_FILE});
    let file = |path, text: &serde_json::Value| {
        let content = AgentFileContent::Own {
            text: format!("{text:#}\n"),
            executable: false,
        };
        AgentFile::new(path, content)
    };
    let files = vec![
        file(".agents/plugins/haft/plugin.json", &plugin),
        file(".agents/plugins/haft/hooks/hooks.json", &hooks),
    ];
    Setup::new(
        vec![
            RegistrationPlace::new(RegistrationScope::User, files.clone()),
            RegistrationPlace::new(RegistrationScope::Project, files),
        ],
        &[
            "another agent that reads `.agents/plugins` may run these hooks, too; haft reads its events as goose's then",
        ],
    )
}

/// Returns the settings to paste. Every JSON string is a YAML string.
fn snippet(launch: &Launch) -> String {
    let args: Vec<String> = launch
        .args
        .iter()
        .map(|arg| format!("      - {}\n", json!(arg)))
        .collect();
    format!(
        "extensions:\n  haft:\n    type: stdio\n    name: haft\n    enabled: true\n    timeout: 600\n    cmd: {}\n    args:\n{}",
        json!(launch.command),
        args.concat()
    )
}
