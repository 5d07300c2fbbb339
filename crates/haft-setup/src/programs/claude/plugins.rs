//! The plugins installed in Claude Code: packages below `~/.claude/plugins`, some of which its settings turn on.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::parse::parse;
use crate::plain_file;
use crate::site::SetupSite;

/// The files that list the plugins and turn them on, below the user's folder.
const INSTALLED: &str = ".claude/plugins/installed_plugins.json";
const SETTINGS: &str = ".claude/settings.json";
/// Maximum size of these files, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of plugins that are read.
const MAX_PLUGINS: usize = 256;

/// Returns the folders of the packages that are turned on, and among them what was not read and why.
pub(crate) fn installed(at: SetupSite<'_>) -> Vec<Result<PathBuf, String>> {
    let mut found = Vec::new();
    let Some(home) = at.environment.folder("HOME") else {
        return found;
    };
    let file = home.join(INSTALLED);
    let Some(installed) = object(&file, &mut found) else {
        return found;
    };
    let settings = object(&home.join(SETTINGS), &mut found).unwrap_or_default();
    let enabled = settings.get("enabledPlugins").and_then(Value::as_object);
    // The first version of the file has no member for them.
    let plugins = installed.get("plugins").and_then(Value::as_object);
    for (name, entries) in plugins.unwrap_or(&installed).iter().take(MAX_PLUGINS) {
        let Some(folder) = folder(entries, at.workspace) else {
            continue;
        };
        let is_on = enabled.is_some_and(|on| on.get(name) == Some(&Value::Bool(true)));
        found.push(if is_on {
            Ok(folder)
        } else {
            Err(format!(
                "not read, as Claude Code has it turned off: the plugin {name}"
            ))
        });
    }
    found
}

fn object(file: &Path, into: &mut Vec<Result<PathBuf, String>>) -> Option<Map<String, Value>> {
    if !file.exists() {
        return None;
    }
    let text = plain_file::read(file, MAX_FILE_BYTES).map_err(|e| e.to_string());
    let parsed = text.and_then(|text| parse(file, &text).map_err(|e| e.to_string()));
    match parsed {
        Ok(object) => Some(object),
        Err(why) => {
            let note = format!("not read: {}: {why}", file.display());
            into.push(Err(note));
            None
        }
    }
}

/// Returns the folder of a plugin: the one installed for this workspace, or else for the user everywhere.
fn folder(entries: &Value, workspace: &Path) -> Option<PathBuf> {
    let entries = match entries {
        Value::Array(entries) => &entries[..],
        one => std::slice::from_ref(one),
    };
    let of = |entry: &Value, project: Option<&Path>| {
        let own = entry.get("projectPath").and_then(Value::as_str);
        (own.map(Path::new) == project)
            .then(|| entry.get("installPath")?.as_str().map(PathBuf::from))?
    };
    let here = entries.iter().find_map(|entry| of(entry, Some(workspace)));
    here.or_else(|| entries.iter().find_map(|entry| of(entry, None)))
}
