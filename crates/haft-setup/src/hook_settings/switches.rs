//! The settings of agents that switch hooks off, and Codex's list of the hooks that its user has reviewed.

use std::path::{Path, PathBuf};

use haft_hook::Agent;
use serde_json::Value;

use crate::edit::jsonc;
use crate::hook_settings::MAX_BYTES;
use crate::hook_settings::json_hooks::HookPosition;
use crate::hook_settings::places;
use crate::plain_file;
use crate::site::SetupSite;

/// The name of haft's entries, if an agent has names for them.
const NAME: &str = "haft";

/// Returns what switches an agent's hooks off: the file, and the setting in it.
pub(crate) fn off(agent: Agent, site: SetupSite<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let Some(folder) = places::folder(agent, site.environment) else {
        return all;
    };
    let mut say = |file: &Path, what: &str| {
        all.push(format!("{} switches hooks off: {what}", file.display()));
    };
    match agent {
        Agent::Claude => {
            let project = site.workspace.join(".claude");
            for file in [
                folder.join("settings.json"),
                project.join("settings.json"),
                project.join("settings.local.json"),
            ] {
                if json(&file)["disableAllHooks"] == true {
                    say(&file, "disableAllHooks");
                }
            }
        }
        Agent::Copilot => {
            for file in [folder.join("settings.json"), folder.join("config.json")] {
                if json(&file)["disableAllHooks"] == true {
                    say(&file, "disableAllHooks");
                }
            }
        }
        Agent::Gemini => {
            for file in [
                folder.join("settings.json"),
                site.workspace.join(".gemini/settings.json"),
            ] {
                let config = &json(&file)["hooksConfig"];
                if config["enabled"] == false {
                    say(&file, "hooksConfig.enabled is false");
                }
                let disabled = config["disabled"].as_array();
                if disabled.is_some_and(|names| names.iter().any(|name| name == NAME)) {
                    say(&file, "hooksConfig.disabled names haft");
                }
            }
        }
        Agent::Codex => {
            for file in [
                folder.join("config.toml"),
                site.workspace.join(".codex/config.toml"),
            ] {
                let features = &toml(&file)["features"];
                if features["hooks"] == false || features["codex_hooks"] == false {
                    say(&file, "features.hooks is false");
                }
            }
        }
        _ => {}
    }
    all
}

/// Counts the entries that Codex's user has reviewed. Codex remembers each by its file, event and position, with a hash of its text, which
/// haft does not compare.
pub(crate) fn count_reviewed(site: SetupSite<'_>, file: &Path, spots: &[HookPosition]) -> usize {
    let Some(folder) = places::folder(Agent::Codex, site.environment) else {
        return 0;
    };
    let settings = toml(&folder.join("config.toml"));
    let state = &settings["hooks"]["state"];
    let real: PathBuf = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let names = [file.display().to_string(), real.display().to_string()];
    let is_reviewed = |spot: &&HookPosition| {
        let event = snake(&spot.event);
        let handler = spot.handler.unwrap_or_default();
        let key = |name: &String| format!("{name}:{event}:{}:{handler}", spot.item);
        let mut found = names.iter().map(|name| &state[key(name)]);
        found.any(|known| known["trusted_hash"].is_string() && known["enabled"] != false)
    };
    spots.iter().filter(is_reviewed).count()
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

/// Reads a JSON file; `null` if that fails.
fn json(file: &Path) -> Value {
    let text = plain_file::read(file, MAX_BYTES).unwrap_or_default();
    jsonc::read(&text).unwrap_or_default()
}

/// Reads a TOML file; an empty table if that fails.
fn toml(file: &Path) -> Value {
    let text = plain_file::read(file, MAX_BYTES).unwrap_or_default();
    let table = toml::from_str::<toml::Table>(&text).unwrap_or_default();
    serde_json::to_value(table).unwrap_or_default()
}
