//! Reads a client's settings file: the entries of its servers, the inputs that they ask for, and rules about their tools.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::imports::ImportSource;
use crate::imports::permissions::{self, ImportedRules};
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::site::Site;
use haft_setup::edit::jsonc;

/// Maximum size of a file, in bytes: Claude Code stores much more in its own than settings.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of servers in a file.
const MAX_SERVERS: usize = 1000;

/// The keys that hold servers, in any client.
const SERVER_KEYS: [&str; 6] = [
    "mcpServers",
    "servers",
    "context_servers",
    "mcp_servers",
    "extensions",
    "mcp",
];

/// The keys under which Claude Code stores which servers are turned off.
const TURNED_OFF: [&str; 2] = ["disabledMcpServers", "disabledMcpjsonServers"];

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct ImportDocument {
    /// Whether it has anything that could be imported.
    pub(super) is_known: bool,
    /// The servers by name.
    pub(super) servers: Vec<(String, Map<String, Value>)>,
    /// The inputs that VS Code asks for.
    pub(super) inputs: Vec<Map<String, Value>>,
    /// Servers of Claude Code that are turned off, in this file or another.
    pub(super) turned_off: BTreeSet<String>,
    pub(super) rules: ImportedRules,
    pub(super) notes: Vec<String>,
}

impl ImportDocument {
    /// Returns an error if nothing in the file is known.
    pub(super) fn known(self, file: &Path) -> Result<Self, Problem> {
        if self.is_known {
            return Ok(self);
        }
        let problem = Problem::usage(format!("{} names no MCP servers", file.display()));
        Err(problem.at(SourceLocation::file(file)).advise(format!(
            "a client's settings have them below one of {}",
            SERVER_KEYS.join(", ")
        )))
    }
}

/// Reads a file as JSON with comments, TOML or YAML, by its extension.
pub(super) fn read(source: &ImportSource<'_>, at: &Site) -> Result<ImportDocument, Problem> {
    let file = source.file;
    let text = plain_file::read(file, MAX_FILE_BYTES).map_err(|e| {
        let problem = Problem::usage(format!("cannot read {}: {e}", file.display()));
        problem.advise("name a client's settings file, or the folder of a plugin")
    })?;
    let root = parse(file, &text)?;
    let mut entries = read_root(root, file, at);
    if entries.servers.len() > MAX_SERVERS {
        entries.servers.truncate(MAX_SERVERS);
        entries.notes.push(format!(
            "only the first {MAX_SERVERS} servers of {} were read",
            file.display()
        ));
    }
    Ok(entries)
}

/// Parses a text as an object.
pub(super) fn parse(file: &Path, text: &str) -> Result<Map<String, Value>, Problem> {
    let wrong = |what: String| {
        Problem::usage(format!("cannot read {}: {what}", file.display()))
            .at(SourceLocation::file(file))
    };
    let ends = |ends: &[&str]| {
        let name = file.extension().and_then(std::ffi::OsStr::to_str);
        name.is_some_and(|name| ends.contains(&name))
    };
    let value = if ends(&["toml"]) {
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| wrong(e.message().to_owned()))?;
        serde_json::to_value(table).map_err(|e| wrong(e.to_string()))?
    } else if ends(&["yaml", "yml"]) {
        haft::skill::read_yaml(text).map_err(wrong)?
    } else {
        jsonc::read(text).map_err(|e| {
            let shown = file.display().to_string();
            Problem::usage(format!("cannot read {shown}: {}", e.what))
                .at(SourceLocation::in_text(&shown, text, e.at))
        })?
    };
    match value {
        Value::Object(root) => Ok(root),
        Value::Null => Ok(Map::new()),
        _ => Err(wrong("it does not hold named members".to_owned())),
    }
}

/// Reads a whole document; one that only has servers by name is accepted as such.
fn read_root(mut root: Map<String, Value>, file: &Path, at: &Site) -> ImportDocument {
    let mut entries = ImportDocument::default();
    // Claude Code stores the settings of a folder under that folder's path.
    let own = at.workspace.to_string_lossy().into_owned();
    let project = root.get_mut("projects").and_then(|all| all.get_mut(&own));
    let project = project.and_then(Value::as_object_mut).map(std::mem::take);
    let known = [&["projects", "permissions"], &TURNED_OFF[..]].concat();
    let is_settings = known.iter().any(|key| root.contains_key(*key));
    let mut found = is_settings;
    for mut level in [Some(root.clone()), project].into_iter().flatten() {
        for holder in SERVER_KEYS {
            found |= entries.take_servers(level.remove(holder));
        }
        for key in TURNED_OFF {
            let names = level.get(key).and_then(Value::as_array);
            let names = names.into_iter().flatten().filter_map(Value::as_str);
            entries.turned_off.extend(names.map(str::to_owned));
        }
        if let Some(rules) = level.get("permissions") {
            entries.rules.add(permissions::read(rules, file));
        }
    }
    if let Some(Value::Array(inputs)) = root.remove("inputs") {
        let inputs = inputs.into_iter().filter_map(|input| match input {
            Value::Object(input) => Some(input),
            _ => None,
        });
        entries.inputs = inputs.collect();
    }
    if !found && !root.is_empty() && root.values().all(is_server) {
        found = entries.take_servers(Some(Value::Object(root)));
    }
    entries.is_known = found;
    entries
}

impl ImportDocument {
    /// Takes the servers of a member; returns whether it is an object.
    fn take_servers(&mut self, held: Option<Value>) -> bool {
        let Some(Value::Object(mut held)) = held else {
            return false;
        };
        // In VS Code's settings.json, `mcp` contains `servers` and `inputs`.
        if let Some(Value::Object(inner)) = held.remove("servers") {
            held = inner;
        }
        for (name, entry) in held {
            match entry {
                Value::Object(entry) => self.servers.push((name, entry)),
                _ => self
                    .notes
                    .push(format!("not carried over: `{name}` is not a server")),
            }
        }
        true
    }
}

fn is_server(value: &Value) -> bool {
    let has = |key| value.get(key).is_some();
    has("command") || has("url") || has("cmd") || has("uri")
}
