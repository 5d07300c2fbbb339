//! haft's entry in a client's settings: how it is found, added and removed.

use std::ffi::OsStr;
use std::path::Path;

use crate::edit::{EditError, jsonc, toml};
use serde_json::Value;

use crate::clients::install::record::InstalledPart;
use crate::clients::install::target::{ContentRole, InstallContent, InstalledEntry};
use crate::clients::{ClientProgram, Launch, SERVER};
use crate::program::ClientFileFormat;

/// haft as a server of this client.
#[derive(Debug)]
pub(super) struct ClientEntry(pub(super) &'static ClientProgram);

/// The members of an entry that say how haft is started. Others may be the user's: haft only adds those that are missing.
const LAUNCH: [&str; 3] = ["type", "command", "args"];

impl InstallContent for ClientEntry {
    fn role(&self) -> ContentRole {
        let name = self.0.name;
        ContentRole {
            part: format!("server of {name}"),
            owner: name,
            by_hand: format!(
                "nothing was changed; correct the file, or paste the settings yourself: haft mcp snippet {name}"
            ),
        }
    }

    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError> {
        entry(self.0, text)
    }

    fn missing(&self, text: &str) -> Vec<String> {
        let servers = self.0.servers;
        // In TOML the table has no header of its own.
        let is_missing = !is_toml(self.0) && !jsonc::has(text, servers);
        is_missing.then(|| servers.to_owned()).into_iter().collect()
    }

    fn without(
        &self,
        text: &str,
        known: Option<&InstalledPart>,
    ) -> Result<Option<String>, EditError> {
        remove_entry(self.0, text, known)
    }
}

fn is_toml(client: &ClientProgram) -> bool {
    matches!(client.format, ClientFileFormat::Toml)
}

/// Returns the entry with haft's name: its value, and its text.
fn find(client: &ClientProgram, text: &str) -> Result<Option<(Value, String)>, EditError> {
    if is_toml(client) {
        toml::entry(text, client.servers, SERVER)
    } else {
        jsonc::entry(text, client.servers, SERVER)
    }
}

fn entry(client: &ClientProgram, text: &str) -> Result<Option<InstalledEntry>, EditError> {
    let found = find(client, text)?;
    Ok(found.map(|(value, text)| InstalledEntry {
        text,
        is_ours: starts_haft(&value),
    }))
}

/// Returns whether an entry starts `haft serve`, wherever the program is and however the client spells it.
fn starts_haft(entry: &Value) -> bool {
    let words = ["command", "args"]
        .into_iter()
        .flat_map(|key| match &entry[key] {
            Value::Array(words) => words.iter().collect(),
            word => vec![word],
        });
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let program = words.first().and_then(|word| Path::new(word).file_name());
    let program = program.and_then(OsStr::to_str).unwrap_or_default();
    program.starts_with(SERVER) && words.get(1) == Some(&"serve")
}

/// Returns the text without haft's entry, with the one that it replaced; `None` if haft is not in it. An entry with haft's name that starts
/// something else, and that no record mentions, is not haft's.
fn remove_entry(
    client: &ClientProgram,
    text: &str,
    known: Option<&InstalledPart>,
) -> Result<Option<String>, EditError> {
    let Some(entry) = entry(client, text)? else {
        return Ok(None);
    };
    if known.is_none() && !entry.is_ours {
        return Ok(None);
    }
    let Some(replaced) = known.and_then(|known| known.replaced.as_deref()) else {
        let with_parent = known.is_some_and(|known| known.has_made(client.servers));
        return take(client, text, with_parent);
    };
    if !entry.is_ours {
        // The user has replaced haft's entry with another since: it stays.
        return Ok(None);
    }
    let restored = if is_toml(client) {
        toml::put_table(text, client.servers, SERVER, replaced)
    } else {
        jsonc::put_text(text, client.servers, SERVER, replaced)
    };
    restored.map(Some)
}

/// Adds haft. Of an entry that is haft's, only the members that say how haft is started change, each where it stands.
pub(super) fn put(
    client: &ClientProgram,
    text: &str,
    launch: &Launch,
) -> Result<String, EditError> {
    let old = find(client, text)?.map(|(value, _)| value);
    let own = old.filter(starts_haft);
    if is_toml(client) {
        let values = launch.to_toml_values();
        let table = launch.to_toml(client.servers, SERVER);
        return match own {
            Some(_) => toml::put_values(text, client.servers, SERVER, &values),
            None => toml::put_table(text, client.servers, SERVER, &table),
        };
    }
    let new = (client.entry)(launch);
    let (Some(Value::Object(old)), Value::Object(new)) = (own, &new) else {
        return jsonc::put(text, client.servers, SERVER, &new);
    };
    let is_set = |key: &&String| LAUNCH.contains(&key.as_str()) || !old.contains_key(*key);
    let mut out = text.to_owned();
    for key in new.keys().filter(is_set) {
        out = jsonc::put_member(&out, &[client.servers, SERVER, key], &new[key])?;
    }
    Ok(out)
}

fn take(
    client: &ClientProgram,
    text: &str,
    with_parent: bool,
) -> Result<Option<String>, EditError> {
    if is_toml(client) {
        return toml::remove(text, client.servers, SERVER);
    }
    let removed = jsonc::remove(text, client.servers, SERVER)?;
    match removed {
        Some(text) if with_parent => jsonc::remove_empty(&text, client.servers).map(Some),
        removed => Ok(removed),
    }
}
