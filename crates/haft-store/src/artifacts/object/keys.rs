//! `ObjectKeys`: where a run's artifact is in the bucket, and what its key says.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::artifact::{ArtifactInfo, ArtifactOwner, ArtifactRef};
use haft::call::{Principal, RunId};
use haft::clock;
use object_store::ObjectMeta;
use object_store::path::Path;

/// Version of the layout.
const LAYOUT_VERSION: &str = "v1";

/// File that says whose run a folder belongs to; rewriting it holds the run.
const RUN_FILE: &str = "run.json";

/// Maximum length of a stored media type: its base64 form still fits in a file name.
const MAX_MEDIA_TYPE: usize = 128;

/// The root of the layout.
#[derive(Debug)]
pub(super) struct ObjectKeys {
    root: String,
}

/// What a key refers to.
#[derive(Debug)]
pub(super) enum KeyTarget {
    /// The `run.json` of the run in this folder.
    Run(String),
    Kept(StoredObject),
}

/// An artifact as listed.
#[derive(Debug, Clone)]
pub(super) struct StoredObject {
    pub(super) path: Path,
    /// Folder of its run.
    pub(super) folder: String,
    pub(super) reference: ArtifactRef,
    /// Nanoseconds since 1970.
    pub(super) created: i64,
    /// Size when it was stored.
    pub(super) bytes: u64,
    /// Size now.
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

impl ObjectKeys {
    pub(super) fn below(prefix: &str) -> Self {
        let prefix = prefix.trim_matches('/');
        let root = match prefix {
            "" => LAYOUT_VERSION.to_owned(),
            prefix => format!("{prefix}/{LAYOUT_VERSION}"),
        };
        Self { root }
    }

    /// Returns the path above everything that is stored.
    pub(super) fn all(&self) -> Path {
        Path::from(self.root.as_str())
    }

    /// Returns the path of a note for all processes that share the bucket.
    pub(super) fn note(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.root))
    }

    /// Returns a tenant's folder.
    pub(super) fn tenant(&self, principal: &Principal) -> String {
        format!("{}/{}", self.root, short_hash(&principal.tenant))
    }

    /// Returns a principal's folder.
    pub(super) fn principal(&self, principal: &Principal) -> String {
        format!(
            "{}/{}",
            self.tenant(principal),
            short_hash(&principal.subject)
        )
    }

    /// Returns a run's folder.
    pub(super) fn run(&self, owner: &ArtifactOwner) -> String {
        let run = short_hash(owner.run.as_str());
        format!("{}/{run}", self.principal(&owner.principal))
    }

    /// Returns the path for a new artifact.
    pub(super) fn fresh(
        folder: &str,
        reference: &ArtifactRef,
        created: i64,
        bytes: u64,
        media_type: &str,
    ) -> Path {
        let cut = media_type.floor_char_boundary(MAX_MEDIA_TYPE);
        let media = URL_SAFE_NO_PAD.encode(&media_type[..cut]);
        let digits = digits(reference);
        Path::from(format!("{folder}/{digits}/{created:019}-{bytes}-{media}"))
    }

    /// Parses what an object is; `None` if haft did not write it.
    pub(super) fn entry(&self, meta: &ObjectMeta) -> Option<KeyTarget> {
        let key = meta.location.as_ref();
        let below = key.strip_prefix(&self.root)?.strip_prefix('/')?;
        let parts: Vec<&str> = below.split('/').collect();
        let (owners, rest) = parts.split_at_checked(3)?;
        if !owners.iter().all(|part| is_hex(part, 32)) {
            return None;
        }
        let folder = format!("{}/{}", self.root, owners.join("/"));
        match rest {
            [RUN_FILE] => Some(KeyTarget::Run(folder)),
            [digits, name] => parse_object(folder, digits, name, meta).map(KeyTarget::Kept),
            _ => None,
        }
    }
}

/// Returns the path of a run's file.
pub(super) fn run_file(folder: &str) -> Path {
    Path::from(format!("{folder}/{RUN_FILE}"))
}

/// Returns the folder of a run's artifacts with this ref: one object, or several if the same bytes were stored concurrently.
pub(super) fn place(folder: &str, reference: &ArtifactRef) -> Path {
    Path::from(format!("{folder}/{}", digits(reference)))
}

fn parse_object(
    folder: String,
    digits: &str,
    name: &str,
    meta: &ObjectMeta,
) -> Option<StoredObject> {
    let mut parts = name.splitn(3, '-');
    let created = parts.next()?.parse().ok()?;
    let bytes = parts.next()?.parse().ok()?;
    let media_type = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
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

/// Returns the first 32 hex digits of a name's hash.
fn short_hash(name: &str) -> String {
    digits(&ArtifactRef::of(name.as_bytes()))[..32].to_owned()
}

/// Returns the hex digits of a ref.
fn digits(reference: &ArtifactRef) -> &str {
    let text = reference.as_str();
    text.strip_prefix("sha256-").unwrap_or(text)
}

fn is_hex(text: &str, length: usize) -> bool {
    let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    text.len() == length && text.bytes().all(digit)
}
