//! `Manifest`: what a user pinned of a server: how it is reached, its description of itself, and its tools byte for byte.

use std::collections::BTreeMap;

use haft::json::canonical::canonical;
use haft::text::hex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::client::{Client, ToolRecord};
use crate::upstream::pages::{ListKind, ListedEntry};
use crate::wire::optional::without_nulls;

/// Version of the file format.
const VERSION: u32 = 1;
/// Maximum size of a file, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 64 << 20;

/// The members that decide whether a tool still matches its pin. Icons and `_meta` do not count, since no model reads them.
const PINNED_MEMBERS: [&str; 5] = [
    "annotations",
    "description",
    "inputSchema",
    "outputSchema",
    "title",
];

/// What was pinned of a server.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// How it was reached: the command line or the URL, as in the settings.
    pub place: String,
    /// Its name for itself.
    pub server: String,
    /// Its version.
    pub version: String,
    /// What it tells its clients and their models about its use (`instructions`).
    pub instructions: Option<String>,
    /// The protocol revision that it spoke.
    pub revision: String,
    /// Its transport, if known: `stdio`, `http` or `sse`.
    pub transport: Option<String>,
    /// Its tools.
    pub tools: Vec<PinnedTool>,
    /// Tools that it lists but that are left out, each with the reason. They are not pinned.
    pub left_out: Vec<String>,
    /// What it has besides tools.
    pub beside: PinnedExtras,
}

/// What a server has besides tools, as of the pin: lists show this while it is not connected. It is not compared with anything:
/// the server supplies the content of a resource or a prompt each time.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each capability")]
pub struct PinnedExtras {
    /// Whether it has resources.
    pub has_resources: bool,
    /// Whether it has prompts.
    pub has_prompts: bool,
    /// Whether it completes arguments.
    pub has_completions: bool,
    /// Whether it reports changes of single resources.
    pub has_subscriptions: bool,
    /// Its resources.
    pub resources: Vec<ListedEntry>,
    /// Its URI templates.
    pub templates: Vec<ListedEntry>,
    /// Its prompts.
    pub prompts: Vec<ListedEntry>,
}

/// A pinned tool.
#[derive(Debug, Clone)]
pub struct PinnedTool {
    /// Its name on the server.
    pub name: String,
    /// The server's whole description of it: one JSON object, byte for byte.
    pub raw: Box<RawValue>,
    /// The SHA-256 of its meaning, in hex: description, title, schemas and annotations in canonical form.
    pub digest: String,
}

/// Why a file is not a valid manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is not JSON in this format.
    #[error("it is not a manifest: {0}")]
    Form(#[from] serde_json::Error),
    /// A newer haft wrote it.
    #[error("it has the form {0}, which this haft does not know")]
    Version(u32),
    /// It is too large.
    #[error("it is over {MAX_FILE_BYTES} bytes")]
    TooLarge,
}

/// What has changed since a server was pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// New tools.
    pub added: Vec<String>,
    /// Tools with a different meaning.
    pub changed: Vec<String>,
    /// Tools that no longer exist.
    pub removed: Vec<String>,
    /// Tools with a different name but the same meaning: the old name and the new one.
    pub renamed: Vec<(String, String)>,
}

impl Drift {
    /// Returns whether nothing has changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Serialize, Deserialize)]
struct ManifestFile {
    version: u32,
    place: String,
    server: FileServer,
    revision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    tools: Vec<FileTool>,
    #[serde(default)]
    beside: FileExtras,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each capability")]
struct FileExtras {
    has_resources: bool,
    has_prompts: bool,
    has_completions: bool,
    has_subscriptions: bool,
    resources: Vec<Box<RawValue>>,
    templates: Vec<Box<RawValue>>,
    prompts: Vec<Box<RawValue>>,
}

impl From<&PinnedExtras> for FileExtras {
    fn from(beside: &PinnedExtras) -> Self {
        let raw = |entries: &[ListedEntry]| entries.iter().map(|e| e.raw.clone()).collect();
        Self {
            has_resources: beside.has_resources,
            has_prompts: beside.has_prompts,
            has_completions: beside.has_completions,
            has_subscriptions: beside.has_subscriptions,
            resources: raw(&beside.resources),
            templates: raw(&beside.templates),
            prompts: raw(&beside.prompts),
        }
    }
}

impl From<FileExtras> for PinnedExtras {
    fn from(file: FileExtras) -> Self {
        let entries = |kind, raws: &[Box<RawValue>]| {
            let read = raws.iter().filter_map(|raw| ListedEntry::read(kind, raw));
            read.collect()
        };
        Self {
            has_resources: file.has_resources,
            has_prompts: file.has_prompts,
            has_completions: file.has_completions,
            has_subscriptions: file.has_subscriptions,
            resources: entries(ListKind::Resources, &file.resources),
            templates: entries(ListKind::Templates, &file.templates),
            prompts: entries(ListKind::Prompts, &file.prompts),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct FileServer {
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct FileTool {
    name: String,
    raw: Box<RawValue>,
}

impl From<ToolRecord> for PinnedTool {
    fn from(tool: ToolRecord) -> Self {
        Self {
            digest: digest(&tool.raw),
            name: tool.name,
            raw: tool.raw,
        }
    }
}

impl Manifest {
    /// Creates a manifest from a server's description of itself over this connection and these of its tools.
    pub(crate) fn new(place: String, client: &Client, tools: Vec<ToolRecord>) -> Self {
        let server = client.server();
        Self {
            place,
            server: server.name.clone(),
            version: server.version.clone(),
            instructions: server.instructions.clone(),
            revision: client.era().as_str().to_owned(),
            transport: Some(client.transport().to_owned()),
            tools: tools.into_iter().map(PinnedTool::from).collect(),
            left_out: client.left_out(),
            beside: PinnedExtras::default(),
        }
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let tool = |tool: &PinnedTool| FileTool {
            name: tool.name.clone(),
            raw: tool.raw.clone(),
        };
        let file = ManifestFile {
            version: VERSION,
            place: self.place.clone(),
            server: FileServer {
                name: self.server.clone(),
                version: self.version.clone(),
                instructions: self.instructions.clone(),
            },
            revision: self.revision.clone(),
            transport: self.transport.clone(),
            tools: self.tools.iter().map(tool).collect(),
            beside: FileExtras::from(&self.beside),
        };
        // Strings, and JSON that was parsed before.
        serde_json::to_string(&file).unwrap_or_default()
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The text is too large, not a manifest, or in a newer format.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(ManifestError::TooLarge);
        }
        let file: ManifestFile = serde_json::from_str(text)?;
        if file.version != VERSION {
            return Err(ManifestError::Version(file.version));
        }
        let tools = file.tools.into_iter().map(|tool| {
            PinnedTool::from(ToolRecord {
                name: tool.name,
                raw: without_nulls(&tool.raw).unwrap_or(tool.raw),
            })
        });
        Ok(Self {
            place: file.place,
            server: file.server.name,
            version: file.server.version,
            instructions: file.server.instructions,
            revision: file.revision,
            transport: file.transport,
            tools: tools.collect(),
            left_out: Vec::new(),
            beside: file.beside.into(),
        })
    }

    /// Returns what has changed from this manifest to `now`.
    pub fn drift(&self, now: &Self) -> Drift {
        let names = |of: &Self| -> BTreeMap<String, String> {
            let pair = |tool: &PinnedTool| (tool.name.clone(), tool.digest.clone());
            of.tools.iter().map(pair).collect()
        };
        let (before, mut after) = (names(self), names(now));
        let mut drift = Drift::default();
        let mut removed = Vec::new();
        for (name, digest) in before {
            match after.remove(&name) {
                Some(now) if now == digest => {}
                Some(_) => drift.changed.push(name),
                None => removed.push((name, digest)),
            }
        }
        for (name, digest) in removed {
            let same = after.iter().find(|(_, now)| **now == digest);
            match same.map(|(new, _)| new.clone()) {
                Some(new) => {
                    after.remove(&new);
                    drift.renamed.push((name, new));
                }
                None => drift.removed.push(name),
            }
        }
        drift.added = after.into_keys().collect();
        drift
    }
}

/// Returns the digest of a tool's meaning. The exact text of its description counts; the order of members and white space do not.
pub(crate) fn digest(raw: &RawValue) -> String {
    // What was pinned before haft dropped members that are null has the digest of the same tool without them.
    let tidy = without_nulls(raw);
    let raw = tidy.as_deref().unwrap_or(raw);
    let members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(raw.get()).unwrap_or_default();
    let mut hasher = Sha256::new();
    for name in PINNED_MEMBERS {
        let text = members.get(name).map_or("", |value| value.get());
        // A number that only its exact text distinguishes from another has no canonical form, so the text counts.
        let text = canonical(text).unwrap_or_else(|_| text.to_owned());
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{Manifest, PinnedExtras, PinnedTool, digest};
    use crate::client::ToolRecord;
    use crate::upstream::pages::{ListKind, ListedEntry};

    fn tool(name: &str, raw: &str) -> PinnedTool {
        PinnedTool::from(ToolRecord {
            name: name.to_owned(),
            raw: RawValue::from_string(raw.to_owned()).unwrap(),
        })
    }

    fn manifest(tools: &[(&str, &str)]) -> Manifest {
        Manifest {
            place: "npx server".to_owned(),
            server: "s".to_owned(),
            version: "1".to_owned(),
            instructions: None,
            revision: "2025-11-25".to_owned(),
            transport: Some("http".to_owned()),
            tools: tools.iter().map(|(name, raw)| tool(name, raw)).collect(),
            left_out: Vec::new(),
            beside: PinnedExtras::default(),
        }
    }

    #[test]
    fn a_tool_is_the_same_while_it_means_the_same() {
        let raw = |text: &str| digest(&RawValue::from_string(text.to_owned()).unwrap());
        let base = raw(r#"{"name":"a","description":"x","inputSchema":{"type":"object","a":1}}"#);
        for same in [
            r#"{"inputSchema":{"a":1, "type":"object"},"description":"x","name":"a"}"#,
            r#"{"name":"b","description":"x","inputSchema":{"type":"object","a":1},"_meta":{"v":2},"icons":[]}"#,
        ] {
            assert_eq!(raw(same), base, "{same}");
        }
        for other in [
            r#"{"name":"a","description":"x ","inputSchema":{"type":"object","a":1}}"#,
            r#"{"name":"a","description":"x","inputSchema":{"type":"object","a":2}}"#,
            r#"{"name":"a","description":"x","inputSchema":{"type":"object","a":1},"annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"a","title":"x","description":"","inputSchema":{"type":"object","a":1}}"#,
        ] {
            assert_ne!(raw(other), base, "{other}");
        }
    }

    #[test]
    fn a_manifest_comes_back_from_its_text_byte_for_byte() {
        let odd = r#"{"z":12345678901234567890123,"name":"a","a":[ 1 ]}"#;
        let mut pinned = manifest(&[("a", odd)]);
        let resource = r#"{"z":1.0,"uri":"x:y","a":12345678901234567890123}"#;
        let raw = RawValue::from_string(resource.to_owned()).unwrap();
        pinned
            .beside
            .resources
            .extend(ListedEntry::read(ListKind::Resources, &raw));
        pinned.beside.has_resources = true;
        let text = pinned.to_text();
        let again = Manifest::parse(&text).unwrap();
        assert_eq!(again.beside.resources[0].raw.get(), resource);
        assert_eq!(again.beside.resources[0].key, "x:y");
        assert!(again.beside.has_resources && !again.beside.has_prompts);
        // A manifest from an older haft.
        let (older, _) = text.split_once(",\"beside\"").unwrap();
        assert!(Manifest::parse(&format!("{older}}}")).is_ok());
        assert_eq!(again.tools[0].raw.get(), odd);
        assert_eq!(again.to_text(), text);
        for wrong in [
            "",
            "{}",
            "[]",
            &text.replace("\"version\":1,\"place", "\"version\":2,\"place"),
        ] {
            assert!(Manifest::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_has_changed_is_named_and_a_renamed_tool_is_the_same_one() {
        let (a, b, c) = (
            r#"{"description":"a"}"#,
            r#"{"description":"b"}"#,
            r#"{"description":"c"}"#,
        );
        let before = manifest(&[("one", a), ("two", b), ("three", c)]);
        let after = manifest(&[("one", b), ("zwei", b), ("four", r#"{"description":"d"}"#)]);
        let drift = before.drift(&after);
        assert_eq!(drift.changed, ["one"]);
        assert_eq!(drift.renamed, [("two".to_owned(), "zwei".to_owned())]);
        assert_eq!(drift.removed, ["three"]);
        assert_eq!(drift.added, ["four"]);
        assert!(before.drift(&before).is_none());
    }
}
