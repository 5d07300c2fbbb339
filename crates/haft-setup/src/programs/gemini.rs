//! The Gemini CLI: servers and hooks in `settings.json`.

use std::path::{Path, PathBuf};

use haft_hook::Agent;
use serde_json::json;

use crate::environment::Environment;
use crate::program::{
    ClientFileFormat, ClientProgram, HookProgram, HooksOff, ImportQuirks, InstallScope,
    SettingsProgram, is_variable, moved_by, plain, read_json,
};
use crate::registration::{
    AgentFile, HookEntry, REPORT_SECONDS, RegistrationPlace, RegistrationScope, SettingsFormat,
    Setup, command_line, group,
};
use crate::site::SetupSite;

/// The name of haft's hooks.
const NAME: &str = "haft";

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "gemini",
        paste: ".gemini/settings.json in the project, or ~/.gemini/settings.json",
        starts_in_project: true,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: plain,
        project: Some(".gemini/settings.json"),
        user: Some(|env| Some(folder(env)?.join("settings.json"))),
        other_extension: None,
        default: InstallScope::Project,
    }),
    hooks: Some(HookProgram {
        since: |_| Some("0.26.0"),
        off,
        ..HookProgram::new(Agent::Gemini, &["gemini"], folder, setup)
    }),
    imports: Some(ImportQuirks {
        package_names: &["extensionPath"],
        convert: Some(to_braced),
        in_milliseconds: true,
        url_is_sse: true,
        ..ImportQuirks::new("gemini", &["/.gemini/settings.json"])
    }),
};

/// Returns the folder of Gemini's settings.
fn folder(environment: &Environment) -> Option<PathBuf> {
    Some(moved_by(environment, "GEMINI_CLI_HOME", "")?.join(".gemini"))
}

/// Where haft is registered. Gemini's timeouts are in milliseconds.
fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Gemini);
    let handler = |seconds: u64| {
        group(
            &json!({"name": "haft", "type": "command", "command": command, "timeout": seconds * 1000}),
        )
    };
    let mut entries = vec![HookEntry::new(
        "BeforeTool",
        handler(Agent::Gemini.limits().wait.as_secs()),
    )];
    for event in ["AfterTool", "SessionStart", "SessionEnd"] {
        entries.push(HookEntry::new(event, handler(REPORT_SECONDS)));
    }
    let file = AgentFile::shared(".gemini/settings.json", SettingsFormat::Jsonc, entries);
    Setup::new(
        vec![
            RegistrationPlace::new(
                RegistrationScope::User,
                vec![file.clone().moved_by("GEMINI_CLI_HOME", "")],
            ),
            RegistrationPlace::new(RegistrationScope::Project, vec![file]),
        ],
        &["hooks of a project run only in a trusted folder"],
    )
}

fn off(folder: &Path, site: SetupSite<'_>) -> Vec<HooksOff> {
    let mut all = Vec::new();
    for file in [
        folder.join("settings.json"),
        site.workspace.join(".gemini/settings.json"),
    ] {
        let config = &read_json(&file)["hooksConfig"];
        let mut say = |setting| {
            let file = file.clone();
            all.push(HooksOff { file, setting });
        };
        if config["enabled"] == false {
            say("hooksConfig.enabled is false");
        }
        let disabled = config["disabled"].as_array();
        if disabled.is_some_and(|names| names.iter().any(|name| name == NAME)) {
            say("hooksConfig.disabled names haft");
        }
    }
    all
}

/// Converts `$NAME` to `${NAME}`.
fn to_braced(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, tail) = after.split_at(end.unwrap_or(after.len()));
        if is_variable(name) {
            out.extend(["${", name, "}"]);
        } else {
            out.push('$');
            out.push_str(name);
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}
