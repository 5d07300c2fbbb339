//! The Codex CLI: servers and hooks in `config.toml`, or hooks in `hooks.json`; it runs only the hooks that its user has reviewed.

use std::path::{Path, PathBuf};

use haft_hook::Agent;
use serde_json::json;

use crate::environment::Environment;
use crate::program::{
    ClientFileFormat, ClientProgram, HookPosition, HookProgram, HookReview, HooksOff, ImportQuirks,
    InstallScope, SettingsProgram, moved_by, plain, read_toml,
};
use crate::registration::{
    AgentFile, HookEntry, PlaceCondition, REPORT_SECONDS, RegistrationPlace, RegistrationScope,
    SettingsFormat, Setup, command_line, group,
};
use crate::site::SetupSite;

pub(super) static PROGRAM: SettingsProgram = SettingsProgram {
    client: Some(ClientProgram {
        name: "codex",
        paste: "~/.codex/config.toml",
        starts_in_project: true,
        format: ClientFileFormat::Toml,
        servers: "mcp_servers",
        entry: plain,
        project: Some(".codex/config.toml"),
        user: Some(|env| Some(folder(env)?.join("config.toml"))),
        other_extension: None,
        // Codex ignores a project's own file until the user trusts the project.
        default: InstallScope::User,
    }),
    hooks: Some(HookProgram {
        since: |event| (event == "PermissionRequest").then_some("0.122.0"),
        off,
        makes_first_file: true,
        review: Some(HookReview {
            count: count_reviewed,
            not_reviewed: "Codex skips them: open Codex and type /hooks",
            moved: "review them in Codex with /hooks, it skips them until then",
        }),
        ..HookProgram::new(Agent::Codex, &["codex"], folder, setup)
    }),
    imports: Some(ImportQuirks {
        extensions: &[".toml"],
        manifest: Some(".codex-plugin/plugin.json"),
        ..ImportQuirks::new("codex", &["/.codex/config.toml"])
    }),
};

/// Returns the folder of Codex's settings.
fn folder(environment: &Environment) -> Option<PathBuf> {
    moved_by(environment, "CODEX_HOME", ".codex")
}

/// Where haft is registered. Codex trusts a hook by its text and position, so the entries go after all others, and their text must not
/// change between versions of haft.
fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Codex);
    let decides = json!({"type": "command", "command": command, "timeout": Agent::Codex.limits().wait.as_secs()});
    let reports = json!({"type": "command", "command": command, "timeout": REPORT_SECONDS});
    let mut entries = vec![
        HookEntry::new("PreToolUse", group(&decides)),
        HookEntry::new("PermissionRequest", group(&decides)),
    ];
    for event in ["PostToolUse", "SessionStart"] {
        entries.push(HookEntry::new(event, group(&reports)));
    }
    // Codex cuts a longer time to this one, with a warning.
    let ends = json!({"type": "command", "command": command, "timeout": 3});
    entries.push(HookEntry::new("SessionEnd", group(&ends)));
    let file = |path, format| AgentFile::shared(path, format, entries.clone());
    let json = || file(".codex/hooks.json", SettingsFormat::Json);
    let toml = || file(".codex/config.toml", SettingsFormat::Toml);
    let moved = |file: AgentFile| file.moved_by("CODEX_HOME", ".codex");
    Setup::new(
        vec![
            RegistrationPlace::new(RegistrationScope::User, vec![moved(json())])
                .when(PlaceCondition::FileExists),
            RegistrationPlace::new(RegistrationScope::User, vec![moved(toml())])
                .when(PlaceCondition::HasHooks),
            RegistrationPlace::new(RegistrationScope::User, vec![moved(json())]),
            RegistrationPlace::new(RegistrationScope::Project, vec![json()])
                .when(PlaceCondition::FileExists),
            RegistrationPlace::new(RegistrationScope::Project, vec![toml()])
                .when(PlaceCondition::HasHooks),
            RegistrationPlace::new(RegistrationScope::Project, vec![json()]),
        ],
        &[
            "start Codex, enter `/hooks` and trust haft's hooks: until then Codex skips them without a word",
        ],
    )
}

fn off(folder: &Path, site: SetupSite<'_>) -> Vec<HooksOff> {
    let files = [
        folder.join("config.toml"),
        site.workspace.join(".codex/config.toml"),
    ];
    let is_off = |file: &PathBuf| {
        let features = &read_toml(file)["features"];
        features["hooks"] == false || features["codex_hooks"] == false
    };
    let files = files.into_iter().filter(is_off);
    files
        .map(|file| HooksOff {
            file,
            setting: "features.hooks is false",
        })
        .collect()
}

/// Counts the entries that Codex's user has reviewed. Codex remembers each by its file, event and position, with a hash of its text, which
/// haft does not compare.
fn count_reviewed(site: SetupSite<'_>, file: &Path, positions: &[HookPosition]) -> usize {
    let Some(folder) = folder(site.environment) else {
        return 0;
    };
    let settings = read_toml(&folder.join("config.toml"));
    let state = &settings["hooks"]["state"];
    let real: PathBuf = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let names = [file.display().to_string(), real.display().to_string()];
    let is_reviewed = |position: &&HookPosition| {
        let event = snake(&position.event);
        let handler = position.handler.unwrap_or_default();
        let key = |name: &String| format!("{name}:{event}:{}:{handler}", position.item);
        let mut found = names.iter().map(|name| &state[key(name)]);
        found.any(|known| known["trusted_hash"].is_string() && known["enabled"] != false)
    };
    positions.iter().filter(is_reviewed).count()
}

/// Turns `PreToolUse` into `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut out = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
