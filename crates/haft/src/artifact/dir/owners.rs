//! Ownership of artifacts: one small file per artifact and owner, and each tenant's usage.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::disk::{self, UncommittedFile};
use super::{DirArtifacts, digits};
use crate::artifact::{ArtifactError, ArtifactInfo, ArtifactOwner, ArtifactRef};
use crate::call::{Principal, RunId};
use crate::clock;
use crate::text::hex;

/// The version of the records.
pub(super) const VERSION: u32 = 1;

/// Maximum length of a record, in bytes.
const MAX_RECORD: u64 = 16 << 10;

/// The file that names the owner of a folder of records.
const OWNER_FILE: &str = "owner.json";
/// The file with the end of the owner's last run, in nanoseconds since 1970.
const RELEASED_FILE: &str = "released";
/// The file with the number of bytes in a tenant's records.
const USAGE_FILE: &str = "usage";

/// An artifact as recorded for one owner.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ArtifactRecord {
    pub(super) v: u32,
    pub(super) media_type: String,
    pub(super) bytes: u64,
    /// Nanoseconds since 1970.
    pub(super) created: i64,
}

impl ArtifactRecord {
    pub(super) fn info(&self, reference: ArtifactRef, run: RunId) -> ArtifactInfo {
        ArtifactInfo {
            reference,
            media_type: self.media_type.clone(),
            bytes: self.bytes,
            run,
            created: clock::rfc3339(self.created.into()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct OwnerFile {
    tenant: String,
    subject: String,
    run: String,
}

impl DirArtifacts {
    pub(super) fn tenant_dir(&self, principal: &Principal) -> PathBuf {
        self.root
            .join("owners")
            .join(short_hash(&[&principal.tenant]))
    }

    pub(super) fn owner_dir(&self, owner: &ArtifactOwner) -> PathBuf {
        let name = short_hash(&[&owner.principal.subject, owner.run.as_str()]);
        self.tenant_dir(&owner.principal).join(name)
    }

    /// Returns the owner's name for pins.
    pub(super) fn owner_name(&self, owner: &ArtifactOwner) -> String {
        pin_name(&self.owner_dir(owner))
    }

    pub(super) fn make_owner(&self, owner: &ArtifactOwner) -> io::Result<()> {
        let dir = self.owner_dir(owner);
        let file = dir.join(OWNER_FILE);
        if file.exists() {
            return Ok(());
        }
        let named = OwnerFile {
            tenant: owner.principal.tenant.to_string(),
            subject: owner.principal.subject.to_string(),
            run: owner.run.to_string(),
        };
        self.write(&file, serde_json::to_vec(&named)?)
    }

    /// Returns this owner's record for this ref.
    pub(super) fn record(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
    ) -> Result<ArtifactRecord, ArtifactError> {
        let path = record_path(&self.owner_dir(owner), reference);
        match read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(ArtifactError::NotFound(reference.as_str().to_owned()))
            }
            text => Ok(serde_json::from_slice(&text?).map_err(io::Error::from)?),
        }
    }

    pub(super) fn keep_record(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
        record: &ArtifactRecord,
    ) -> io::Result<()> {
        let path = record_path(&self.owner_dir(owner), reference);
        self.write(&path, serde_json::to_vec(record)?)
    }

    fn write(&self, path: &Path, text: Vec<u8>) -> io::Result<()> {
        UncommittedFile::write(&self.root.join("tmp"), &Bytes::from(text))?.keep(path)
    }
}

/// Returns 32 hex digits of a hash over texts, each prefixed with its length so that different lists never collide.
fn short_hash(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hex(&hasher.finalize()[..16])
}

/// Returns the name of the pin for an owner's folder.
pub(super) fn pin_name(owner_dir: &Path) -> String {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let tenant = owner_dir.parent().map(name).unwrap_or_default();
    format!("{tenant}-{}", name(owner_dir))
}

/// Returns the folder of the owner that a pin names, if the name is valid.
pub(super) fn pinned_dir(root: &Path, pin: &str) -> Option<PathBuf> {
    let (tenant, owner) = pin.split_once('-')?;
    Some(root.join("owners").join(tenant).join(owner))
}

fn record_path(dir: &Path, reference: &ArtifactRef) -> PathBuf {
    dir.join(format!("{}.json", digits(reference)))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    disk::open(path)?.take(MAX_RECORD).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the owner of this folder; `None` if the folder does not say.
pub(super) fn owner_of(dir: &Path) -> Option<ArtifactOwner> {
    let named: OwnerFile = serde_json::from_slice(&read(&dir.join(OWNER_FILE)).ok()?).ok()?;
    Some(ArtifactOwner {
        principal: Principal::new(named.tenant, named.subject),
        run: RunId::new(named.run),
    })
}

/// Returns all records in an owner's folder. A record that cannot be read is an error, so that none is silently lost.
pub(super) fn records(dir: &Path) -> io::Result<Vec<(ArtifactRef, ArtifactRecord)>> {
    let mut found = Vec::new();
    for path in disk::entries(dir)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let digits = name.strip_suffix(".json").unwrap_or_default();
        let Some(reference) = ArtifactRef::parse(&format!("sha256-{digits}")) else {
            continue;
        };
        match read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            text => found.push((reference, serde_json::from_slice(&text?)?)),
        }
    }
    Ok(found)
}

/// Removes one record.
pub(super) fn forget(dir: &Path, reference: &ArtifactRef) -> io::Result<()> {
    super::remove(&record_path(dir, reference))
}

/// Records that an owner's run ended; does nothing if the run stored nothing.
pub(super) fn release(dir: &Path, now: i64) -> io::Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    disk::write_private(&dir.join(RELEASED_FILE), &now.to_string())
}

/// Returns when an owner's run ended, if it did.
pub(super) fn released(dir: &Path) -> Option<i64> {
    let text = read(&dir.join(RELEASED_FILE)).ok()?;
    str::from_utf8(&text).ok()?.trim().parse().ok()
}

/// Returns the number of bytes charged to a tenant.
pub(super) fn usage(tenant: &Path) -> io::Result<u64> {
    let noted = read(&tenant.join(USAGE_FILE)).ok();
    let noted = noted.and_then(|text| str::from_utf8(&text).ok()?.parse().ok());
    match noted {
        Some(used) => Ok(used),
        None => counted(tenant),
    }
}

/// Counts the bytes of a tenant's records.
pub(super) fn counted(tenant: &Path) -> io::Result<u64> {
    let mut used = 0;
    for dir in disk::folders(tenant)? {
        used += records(&dir)?
            .iter()
            .map(|(_, record)| record.bytes)
            .sum::<u64>();
    }
    Ok(used)
}

/// Records the number of bytes charged to a tenant.
pub(super) fn set_usage(tenant: &Path, used: u64) -> io::Result<()> {
    disk::make_dir(tenant)?;
    disk::write_private(&tenant.join(USAGE_FILE), &used.to_string())
}
