//! Keys: where in the bucket an artifact of a run is, and what its key tells.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::artifact::{ArtifactInfo, ArtifactRef, Owner};
use haft::call::{Principal, RunId};
use haft::clock;
use object_store::ObjectMeta;
use object_store::path::Path;

/// The layout's version.
const VERSION: &str = "v1";

/// Says whose run a folder belongs to; written anew, it holds the run.
const RUN: &str = "run.json";

/// Longest media type that is kept: what base64 makes of it fits a file name.
const MEDIA_TYPE: usize = 128;

/// The place of everything.
#[derive(Debug)]
pub(super) struct Keys {
    root: String,
}

/// What a key names.
#[derive(Debug)]
pub(super) enum Entry {
    /// The file of a run.
    Run(String),
    /// An artifact.
    Kept(StoredObject),
}

/// An artifact as a listing tells it.
#[derive(Debug, Clone)]
pub(super) struct StoredObject {
    pub(super) path: Path,
    /// The folder of its run.
    pub(super) folder: String,
    pub(super) reference: ArtifactRef,
    /// Nanoseconds since 1970.
    pub(super) created: i64,
    /// Its size when it was stored.
    pub(super) bytes: u64,
    /// Its size now.
    pub(super) found: u64,
    pub(super) media_type: String,
    pub(super) tag: Option<String>,
}

impl StoredObject {
    pub(super) fn info(&self, run: RunId) -> ArtifactInfo {
        ArtifactInfo {
            reference: self.reference.clone(),
            media_type: self.media_type.clone(),
            bytes: self.bytes,
            run,
            created: clock::rfc3339(self.created.into()),
        }
    }
}

impl Keys {
    pub(super) fn below(prefix: &str) -> Self {
        let prefix = prefix.trim_matches('/');
        let root = match prefix {
            "" => VERSION.to_owned(),
            prefix => format!("{prefix}/{VERSION}"),
        };
        Self { root }
    }

    /// Everything there is.
    pub(super) fn all(&self) -> Path {
        Path::from(self.root.as_str())
    }

    /// A note for all who share the bucket.
    pub(super) fn note(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.root))
    }

    /// The folder of a tenant.
    pub(super) fn tenant(&self, principal: &Principal) -> String {
        format!("{}/{}", self.root, short(&principal.tenant))
    }

    /// The folder of a principal.
    pub(super) fn principal(&self, principal: &Principal) -> String {
        format!("{}/{}", self.tenant(principal), short(&principal.subject))
    }

    /// The folder of a run.
    pub(super) fn run(&self, owner: &Owner) -> String {
        let run = short(owner.run.as_str());
        format!("{}/{run}", self.principal(&owner.principal))
    }

    /// Where an artifact is stored that is new.
    pub(super) fn fresh(
        folder: &str,
        reference: &ArtifactRef,
        created: i64,
        bytes: u64,
        media_type: &str,
    ) -> Path {
        let cut = media_type.floor_char_boundary(MEDIA_TYPE);
        let media = URL_SAFE_NO_PAD.encode(&media_type[..cut]);
        let digits = digits(reference);
        Path::from(format!("{folder}/{digits}/{created:019}-{bytes}-{media}"))
    }

    /// What an object is; `None` when it is none of ours.
    pub(super) fn entry(&self, meta: &ObjectMeta) -> Option<Entry> {
        let key = meta.location.as_ref();
        let below = key.strip_prefix(&self.root)?.strip_prefix('/')?;
        let parts: Vec<&str> = below.split('/').collect();
        let (owners, rest) = parts.split_at_checked(3)?;
        if !owners.iter().all(|part| is_hex(part, 32)) {
            return None;
        }
        let folder = format!("{}/{}", self.root, owners.join("/"));
        match rest {
            [RUN] => Some(Entry::Run(folder)),
            [digits, name] => parse_object(folder, digits, name, meta).map(Entry::Kept),
            _ => None,
        }
    }
}

/// The file of a run.
pub(super) fn run_file(folder: &str) -> Path {
    Path::from(format!("{folder}/{RUN}"))
}

/// The folder of the artifacts of a run under one ref: one object, or several of the same bytes stored at once.
pub(super) fn place(folder: &str, reference: &ArtifactRef) -> Path {
    Path::from(format!("{folder}/{}", digits(reference)))
}

fn parse_object(
    folder: String,
    digits: &str,
    name: &str,
    meta: &ObjectMeta,
) -> Option<StoredObject> {
    let mut told = name.splitn(3, '-');
    let created = told.next()?.parse().ok()?;
    let bytes = told.next()?.parse().ok()?;
    let media_type = URL_SAFE_NO_PAD.decode(told.next()?).ok()?;
    Some(StoredObject {
        path: meta.location.clone(),
        folder,
        reference: ArtifactRef::parse(&format!("sha256-{digits}"))?,
        created,
        bytes,
        found: meta.size,
        media_type: String::from_utf8(media_type).ok()?,
        tag: meta.e_tag.clone(),
    })
}

/// Thirty-two hex digits of the hash of a name.
fn short(name: &str) -> String {
    digits(&ArtifactRef::of(name.as_bytes()))[..32].to_owned()
}

/// The hex digits of a ref.
fn digits(reference: &ArtifactRef) -> &str {
    let text = reference.as_str();
    text.strip_prefix("sha256-").unwrap_or(text)
}

fn is_hex(text: &str, length: usize) -> bool {
    let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    text.len() == length && text.bytes().all(digit)
}
