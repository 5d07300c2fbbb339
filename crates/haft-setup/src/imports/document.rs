//! Reads a client's settings file: the entries of its servers, the inputs that they ask for, and rules about their tools.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::imported_rules::ImportedRules;
use crate::imports::{ImportRequest, ImportSource};
use crate::parse::parse;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::programs::{self, claude};

/// Maximum size of a file, in bytes: Claude Code stores much more in its own than settings.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum number of servers in a file.
const MAX_SERVERS: usize = 1000;

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
            programs::server_keys().join(", ")
        )))
    }
}

/// Reads a file as JSON with comments, TOML or YAML, by its extension.
pub(super) fn read(
    source: &ImportSource<'_>,
    request: ImportRequest<'_>,
) -> Result<ImportDocument, Problem> {
    let file = source.file;
    let text = plain_file::read(file, MAX_FILE_BYTES).map_err(|e| {
        let problem = Problem::usage(format!("cannot read {}: {e}", file.display()));
        problem.advise("name a client's settings file, or the folder of a plugin")
    })?;
    let root = parse(file, &text)?;
    let mut entries = read_root(root, file, request);
    if entries.servers.len() > MAX_SERVERS {
        entries.servers.truncate(MAX_SERVERS);
        entries.notes.push(format!(
            "only the first {MAX_SERVERS} servers of {} were read",
            file.display()
        ));
    }
    Ok(entries)
}

/// Reads a whole document; one that only has servers by name is accepted as such.
fn read_root(
    mut root: Map<String, Value>,
    file: &Path,
    request: ImportRequest<'_>,
) -> ImportDocument {
    let mut entries = ImportDocument::default();
    let project = claude::take_project(&mut root, request.at.workspace);
    let is_settings = claude::is_settings(&root);
    let mut found = is_settings;
    for mut level in [Some(root.clone()), project].into_iter().flatten() {
        for holder in programs::server_keys() {
            found |= entries.take_servers(level.remove(holder));
        }
        entries.turned_off.extend(claude::turned_off(&level));
        if let Some(rules) = level.get("permissions") {
            let rules = claude::permissions::read(rules, file, request.to_name);
            entries.rules.add(rules);
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
