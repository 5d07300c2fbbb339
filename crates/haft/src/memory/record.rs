//! `MemoryRecord`: one memory, the checks before it is stored, and the shelf it belongs to.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::call::{CallId, RunId};
use crate::error::HostFailure;
use crate::memory::MemoryError;
use crate::text::hex;

/// Maximum length of a memory's text, in bytes.
pub const MAX_CONTENT: usize = 16 << 10;
/// Maximum number of tags of a memory.
pub const MAX_TAGS: usize = 16;
/// Maximum length of a tag, in characters.
pub const MAX_TAG: usize = 64;
/// Maximum length of a memory's path as a file, in bytes.
pub const MAX_PATH: usize = 512;
/// Maximum time to live: ten years.
pub const MAX_TTL: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The id of a memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct MemoryId(String);

impl MemoryId {
    /// Creates an id from a text.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Generates a new id: `mem-` and sixteen random hex digits.
    ///
    /// # Errors
    /// [`MemoryError::Store`] if the operating system provides no random bytes.
    pub fn generate() -> Result<Self, MemoryError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|e| MemoryError::Store(HostFailure::of(e)))?;
        Ok(Self(format!("mem-{}", hex(&random))))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// For whom a memory is: what its shelf's key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// For the principal, wherever they work.
    User,
    /// For one agent, by its name.
    Agent,
    /// For one project, by its workspace's root.
    Project,
    /// For one run. Nothing is written here: the run's own record is what is searched.
    Session,
}

impl MemoryScope {
    /// Returns the name used in arguments, in the database and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::Project => "project",
            Self::Session => "session",
        }
    }

    /// Parses the name of a scope.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::User, Self::Agent, Self::Project, Self::Session];
        all.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A place for memories within a principal's: a scope and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shelf {
    /// The scope.
    pub scope: MemoryScope,
    /// The agent's name, the workspace's root, or the run; empty for the user.
    pub key: String,
}

impl Shelf {
    /// Returns the principal's own shelf.
    pub fn user() -> Self {
        Self {
            scope: MemoryScope::User,
            key: String::new(),
        }
    }

    /// Returns an agent's shelf.
    pub fn agent(name: impl Into<String>) -> Self {
        Self {
            scope: MemoryScope::Agent,
            key: name.into(),
        }
    }

    /// Returns a project's shelf.
    pub fn project(root: impl Into<String>) -> Self {
        Self {
            scope: MemoryScope::Project,
            key: root.into(),
        }
    }
}

/// Whether a memory is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// Pending approval; not recalled.
    Candidate,
    /// Recalled.
    Accepted,
    /// Rejected by the user.
    Rejected,
}

impl MemoryState {
    /// Returns the name used in the database and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
        }
    }
}

/// The origin of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The run that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The call within the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Who made the call: `model`, `mcp`, `chain`, `host`.
    pub author: String,
}

/// The accepted record that a candidate would replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplacedRecord {
    /// The record.
    pub id: MemoryId,
    /// The revision that the candidate's writer saw.
    pub revision: u64,
}

/// A memory to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryDraft {
    /// Its id.
    pub id: MemoryId,
    /// The shelf it belongs to.
    pub shelf: Shelf,
    /// Its path as a file; unique among such records.
    pub path: Option<String>,
    /// Its text.
    pub content: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Its origin.
    pub provenance: Provenance,
    /// Candidate or accepted.
    pub state: MemoryState,
    /// Its time to live; `None` for unlimited.
    pub ttl: Option<Duration>,
    /// The file that it would replace or delete.
    pub replaces: Option<ReplacedRecord>,
    /// Whether it proposes to delete the file, and has no text.
    pub deletes: bool,
}

impl MemoryDraft {
    /// Creates a candidate with only a text.
    ///
    /// # Errors
    /// [`MemoryError::Store`] if no id can be generated.
    pub fn new(
        shelf: Shelf,
        content: impl Into<String>,
        provenance: Provenance,
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            id: MemoryId::generate()?,
            shelf,
            path: None,
            content: content.into(),
            tags: Vec::new(),
            provenance,
            state: MemoryState::Candidate,
            ttl: None,
            replaces: None,
            deletes: false,
        })
    }

    /// Checks every limit. A store calls this before it stores anything.
    ///
    /// # Errors
    /// [`MemoryError::Invalid`] names the limit that is exceeded.
    pub fn check(&self) -> Result<(), MemoryError> {
        if self.shelf.scope == MemoryScope::Session {
            return Err(MemoryError::Invalid(
                "session memory is the record of the run and cannot be written".into(),
            ));
        }
        if self.content.is_empty() && !self.deletes && self.path.is_none() {
            return Err(MemoryError::Invalid("the memory has no content".into()));
        }
        check_content(&self.content)?;
        check_tags(&self.tags)?;
        if let Some(path) = &self.path {
            check_path(path)?;
        }
        match self.ttl {
            Some(ttl) if ttl.is_zero() || ttl > MAX_TTL => Err(MemoryError::Invalid(format!(
                "the time to live must be above 0 and at most {} seconds",
                MAX_TTL.as_secs()
            ))),
            _ => Ok(()),
        }
    }
}

/// A stored memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryRecord {
    /// Its id.
    pub id: MemoryId,
    /// The shelf it belongs to.
    #[serde(flatten, serialize_with = "flat_shelf")]
    pub shelf: Shelf,
    /// Its path as a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its text.
    pub content: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whether it is in use.
    pub state: MemoryState,
    /// Its origin.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// When it was created, RFC 3339 UTC.
    pub created: String,
    /// When it was last changed, RFC 3339 UTC.
    pub updated: String,
    /// When it expires, RFC 3339 UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Number of times it was written or decided on, from 1.
    pub revision: u64,
    /// The file that it would replace or delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ReplacedRecord>,
    /// Whether it proposes to delete the file.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deletes: bool,
    /// Who accepted or rejected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

fn flat_shelf<S: serde::Serializer>(shelf: &Shelf, to: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap as _;
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("scope", &shelf.scope)?;
    if !shelf.key.is_empty() {
        map.serialize_entry("key", &shelf.key)?;
    }
    map.end()
}

/// Returns the digest of a text as the archive and the store compare it: SHA-256 in hex.
pub fn digest(content: &str) -> String {
    hex(&Sha256::digest(content.as_bytes()))
}

/// Checks that a text is within its limit and has no invisible characters.
pub(crate) fn check_content(content: &str) -> Result<(), MemoryError> {
    if content.len() > MAX_CONTENT {
        return Err(MemoryError::Invalid(format!(
            "the memory has {} bytes; the limit is {MAX_CONTENT}",
            content.len()
        )));
    }
    check_visible("the memory", content, &['\n', '\t'])
}

/// Checks that tags are within their limits.
pub(crate) fn check_tags(tags: &[String]) -> Result<(), MemoryError> {
    if tags.len() > MAX_TAGS {
        return Err(MemoryError::Invalid(format!(
            "{} tags; a memory has at most {MAX_TAGS}",
            tags.len()
        )));
    }
    for tag in tags {
        if tag.trim().is_empty() || tag.chars().count() > MAX_TAG {
            return Err(MemoryError::Invalid(format!(
                "a tag must have 1 to {MAX_TAG} characters"
            )));
        }
        check_visible("a tag", tag, &[])?;
    }
    Ok(())
}

/// Checks that a path is within its limit. The `memory` tool checks its meaning.
pub(crate) fn check_path(path: &str) -> Result<(), MemoryError> {
    if path.is_empty() || path.len() > MAX_PATH {
        return Err(MemoryError::Invalid(format!(
            "a path has 1 to {MAX_PATH} bytes"
        )));
    }
    check_visible("a path", path, &[])
}

/// Refuses characters that a reviewer would not see: control characters, direction overrides, invisible tags.
fn check_visible(what: &str, text: &str, but: &[char]) -> Result<(), MemoryError> {
    let hidden = |c: char| {
        let turns = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        c.is_control() || turns || matches!(c, '\u{E0000}'..='\u{E007F}' | '\u{FEFF}')
    };
    match text.chars().find(|c| hidden(*c) && !but.contains(c)) {
        None => Ok(()),
        Some(c) => Err(MemoryError::Invalid(format!(
            "{what} holds the control character U+{:04X}",
            u32::from(c)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut MemoryDraft), refused: Option<&str>) {
        let provenance = Provenance {
            run: None,
            call: None,
            agent: None,
            author: "host".into(),
        };
        let mut draft = MemoryDraft::new(Shelf::user(), "text", provenance).unwrap();
        change(&mut draft);
        let checked = draft.check().map_err(|e| e.to_string());
        match refused {
            None => assert_eq!(checked, Ok(()), "{draft:?}"),
            Some(words) => {
                let error = checked.unwrap_err();
                assert!(error.contains(words), "{error}");
            }
        }
    }

    #[test]
    fn every_bound_of_a_draft_is_checked() {
        check(|_| {}, None);
        check(|d| d.content = "tab\tand\nline".into(), None);
        check(|d| d.content = "x".repeat(MAX_CONTENT), None);
        check(
            |d| d.content = "x".repeat(MAX_CONTENT + 1),
            Some("16385 bytes"),
        );
        check(|d| d.content = "x".repeat(1 << 20), Some("1048576 bytes"));
        check(|d| d.content = String::new(), Some("no content"));
        check(|d| d.content = "bell\u{7}".into(), Some("U+0007"));
        check(|d| d.content = "\u{1b}[2J".into(), Some("U+001B"));
        check(|d| d.content = "a\r\nb".into(), Some("U+000D"));
        check(|d| d.content = "a\0b".into(), Some("U+0000"));
        check(|d| d.content = "c1\u{9b}".into(), Some("U+009B"));
        check(|d| d.content = "\u{202e}gnp.exe".into(), Some("U+202E"));
        check(|d| d.content = "hi\u{e0041}".into(), Some("U+E0041"));
        check(|d| d.tags = vec!["t".into(); MAX_TAGS], None);
        check(|d| d.tags = vec!["t".into(); 1_000], Some("1000 tags"));
        check(|d| d.tags = vec!["é".repeat(MAX_TAG)], None);
        check(|d| d.tags = vec!["é".repeat(MAX_TAG + 1)], Some("1 to 64"));
        check(|d| d.tags = vec![" ".into()], Some("1 to 64"));
        check(|d| d.tags = vec!["a\nb".into()], Some("U+000A"));
        check(|d| d.path = Some("/memories/a".into()), None);
        check(|d| d.path = Some("x".repeat(MAX_PATH + 1)), Some("512"));
        check(|d| d.ttl = Some(Duration::ZERO), Some("above 0"));
        check(|d| d.ttl = Some(MAX_TTL), None);
        check(|d| d.ttl = Some(Duration::MAX), Some("above 0"));
        check(
            |d| d.shelf.scope = MemoryScope::Session,
            Some("record of the run"),
        );
    }
}
