//! Lists of what a server has besides tools: page by page, limited in length, each entry byte for byte.

use std::collections::HashSet;

use haft::json::members::members;
use serde_json::value::RawValue;

use crate::client::{Client, ClientError, ClientRequest, ListCursor, PageEnd};
use crate::wire::params::text;

/// An entry of a server's list.
#[derive(Debug, Clone)]
pub struct ListedEntry {
    /// Its key on the server: a URI, a template, or a prompt's name.
    pub key: String,
    /// The server's whole description of it: one JSON object, byte for byte.
    pub raw: Box<RawValue>,
}

/// A kind of list other than tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    fn member(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// Returns the member that identifies an entry.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
            Self::Prompts => "name",
        }
    }
}

impl ListedEntry {
    /// Reads an entry of a list or a file.
    pub(crate) fn read(kind: ListKind, raw: &RawValue) -> Option<Self> {
        let found = members(raw.get()).ok()?;
        let key = found.iter().find(|member| member.is(kind.key()))?;
        Some(Self {
            key: text(key.value())?.into_owned(),
            raw: raw.to_owned(),
        })
    }
}

/// Returns a whole list, in the server's order; a repeated key counts once, an entry without a key not at all. Of a list without an end,
/// what was listed is kept.
///
/// # Errors
/// The server does not respond, or has too many entries.
pub(crate) async fn list(client: &Client, kind: ListKind) -> Result<Vec<ListedEntry>, ClientError> {
    let limits = client.limits();
    let malformed = |why: &str| ClientError::Malformed(format!("its {}: {why}", kind.method()));
    let (mut found, mut keys) = (Vec::new(), HashSet::new());
    let mut cursor = ListCursor::default();
    loop {
        let params = cursor.params();
        let raw = client
            .ask(ClientRequest::new(kind.method(), &params, limits.list))
            .await?;
        let page = members(raw.get()).map_err(|e| malformed(&e.to_string()))?;
        let entries = page.iter().find(|member| member.is(kind.member()));
        let entries = entries.map_or("[]", |entries| entries.value().get());
        let entries: Vec<&RawValue> =
            serde_json::from_str(entries).map_err(|e| malformed(&e.to_string()))?;
        let before = found.len();
        for entry in entries {
            if let Some(entry) = ListedEntry::read(kind, entry)
                && keys.insert(entry.key.clone())
            {
                found.push(entry);
            }
        }
        if found.len() > limits.tools {
            return Err(malformed(&format!("over {} entries", limits.tools)));
        }
        match cursor.follow(&raw, found.len() - before) {
            PageEnd::More => {}
            PageEnd::End => return Ok(found),
            PageEnd::Odd(why) => {
                let (server, list) = (&client.server().name, kind.method());
                tracing::warn!(server, list, why, "the rest of a server's list is left out");
                return Ok(found);
            }
        }
    }
}
