//! haft's entry in a client's settings: how it is found, added and removed.

use std::ffi::OsStr;
use std::path::Path;

use crate::edit::{EditError, jsonc, toml};
use serde_json::Value;

use crate::clients::install::record::InstallRecord;
use crate::clients::install::target::{InstallContent, InstalledEntry};
use crate::clients::{ClientProgram, Launch, SERVER};
use crate::program::ClientFileFormat;

/// haft as a server of this client.
#[derive(Debug)]
pub(super) struct ClientEntry(pub(super) &'static ClientProgram);

impl InstallContent for ClientEntry {
    fn owner(&self) -> &'static str {
        self.0.name
    }

    fn by_hand(&self) -> String {
        format!(
            "nothing was changed; correct the file, or paste the settings yourself: haft mcp snippet {}",
            self.0.name
        )
    }

    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError> {
        entry(self.0, text)
    }

    fn has_parent(&self, text: &str) -> bool {
        matches!(self.0.format, ClientFileFormat::Json) && jsonc::has(text, self.0.servers)
    }

    fn without(
        &self,
        text: &str,
        record: Option<&InstallRecord>,
    ) -> Result<Option<String>, EditError> {
        remove_entry(self.0, text, record)
    }
}

fn entry(client: &ClientProgram, text: &str) -> Result<Option<InstalledEntry>, EditError> {
    let (value, text) = if matches!(client.format, ClientFileFormat::Toml) {
        let Some(found) = toml::entry(text, client.servers, SERVER)? else {
            return Ok(None);
        };
        found
    } else {
        let Some(value) = jsonc::entry(text, client.servers, SERVER)? else {
            return Ok(None);
        };
        let text = value.to_string();
        (value, text)
    };
    Ok(Some(InstalledEntry {
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
    record: Option<&InstallRecord>,
) -> Result<Option<String>, EditError> {
    let known = record.filter(|record| !record.written.is_empty());
    let Some(entry) = entry(client, text)? else {
        return Ok(None);
    };
    if known.is_none() && !entry.is_ours {
        return Ok(None);
    }
    let Some(replaced) = known.and_then(|known| known.replaced.as_deref()) else {
        let with_parent = known.is_some_and(|known| known.made_servers);
        return take(client, text, with_parent);
    };
    if !entry.is_ours {
        // The user has replaced haft's entry with another since: it stays.
        return Ok(None);
    }
    if matches!(client.format, ClientFileFormat::Toml) {
        return toml::put_table(text, client.servers, SERVER, replaced).map(Some);
    }
    let value = serde_json::from_str(replaced).map_err(|e| EditError {
        what: format!("the entry that haft replaced cannot be read: {e}"),
        at: 0..0,
    })?;
    jsonc::put(text, client.servers, SERVER, &value).map(Some)
}

pub(super) fn put(
    client: &ClientProgram,
    text: &str,
    launch: &Launch,
) -> Result<String, EditError> {
    match client.format {
        ClientFileFormat::Toml => toml::put_table(
            text,
            client.servers,
            SERVER,
            &launch.to_toml(client.servers, SERVER),
        ),
        _ => jsonc::put(text, client.servers, SERVER, &(client.entry)(launch)),
    }
}

fn take(
    client: &ClientProgram,
    text: &str,
    with_parent: bool,
) -> Result<Option<String>, EditError> {
    if matches!(client.format, ClientFileFormat::Toml) {
        return toml::remove(text, client.servers, SERVER);
    }
    let removed = jsonc::remove(text, client.servers, SERVER)?;
    match removed {
        Some(text) if with_parent => jsonc::remove_empty(&text, client.servers).map(Some),
        removed => Ok(removed),
    }
}
