//! `DirArtifacts`: artifacts on disk. Blobs are shared and named by their hash; records of who may read them are separate.
//!
//! Below the root: `blobs/` holds the bytes, `owners/<tenant>/<owner>/` a record for each artifact of a run, `pins/` the owners in
//! use, `tmp/` files being written, and `lock` is held by the process that changes any of it. Names of tenants and owners are
//! hashes, so none of them is a path.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use crate::artifact::quota::{MAX_BYTES, Quota, QuotaExceeded, QuotaUsage};
use crate::artifact::source::ByteSource;
use crate::artifact::{
    ArtifactError, ArtifactFuture, ArtifactInfo, ArtifactOwner, ArtifactRef, ArtifactStore,
};
use crate::call::{Principal, RunId};
use crate::clock;
use crate::future::run_blocking;
use crate::text::hex;

mod disk;
mod owners;
mod pins;
mod sweep;
#[cfg(test)]
mod tests;

pub use sweep::SweepReport;

use disk::UncommittedFile;
use owners::ArtifactRecord;
use pins::ArtifactPins;
use sweep::SpaceRequest;

/// Lifetime of an artifact that no run in use holds (contract §3).
const TTL: Duration = Duration::from_hours(7 * 24);

/// Maximum number of blobs remembered as verified; the list is cleared when full.
const MAX_VERIFIED: usize = 4096;

/// Maximum length of a stored media type, in bytes.
const MAX_MEDIA_TYPE: usize = 128;

/// Artifacts in a folder that several processes may share.
///
/// When a process first opens a blob, and again when its file has changed, it reads the blob completely and checks its hash.
/// Files are read and written on threads for blocking work. Clones share the store.
#[derive(Debug, Clone)]
pub struct DirArtifacts {
    root: Arc<Path>,
    quota: Quota,
    ttl: Duration,
    pins: Arc<Mutex<ArtifactPins>>,
    verified: Arc<Mutex<HashMap<ArtifactRef, HashedStamp>>>,
    now: fn() -> i128,
}

/// The state of a file when its hash was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HashedStamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl DirArtifacts {
    /// Creates a store below `root`; creates nothing on disk until needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into().into(),
            quota: Quota(MAX_BYTES),
            ttl: TTL,
            pins: Arc::default(),
            verified: Arc::default(),
            now: clock::now,
        }
    }

    /// Sets the maximum number of bytes per tenant.
    pub fn with_quota(mut self, bytes: u64) -> Self {
        self.quota = Quota(bytes);
        self
    }

    /// Sets the time to live, counted from the end of the run that holds an artifact.
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    fn pins(&self) -> MutexGuard<'_, ArtifactPins> {
        self.pins.lock()
    }

    fn verified(&self) -> MutexGuard<'_, HashMap<ArtifactRef, HashedStamp>> {
        self.verified.lock()
    }

    fn blob(&self, reference: &ArtifactRef) -> PathBuf {
        let digits = digits(reference);
        self.root.join("blobs").join(&digits[..2]).join(digits)
    }

    /// Opens a blob after verifying that its bytes match its name.
    fn open_sound(&self, reference: &ArtifactRef) -> Result<File, ArtifactError> {
        let path = self.blob(reference);
        let unreadable = |e: io::Error| {
            io::Error::new(
                e.kind(),
                format!("artifact {} cannot be read: {e}", reference.as_str()),
            )
        };
        let mut file = disk::open(&path).map_err(unreadable)?;
        let stamp = HashedStamp::of(&file).map_err(unreadable)?;
        if self.verified().get(reference) == Some(&stamp) {
            return Ok(file);
        }
        if hash(&mut file).map_err(unreadable)? != digits(reference) {
            return Err(ArtifactError::Damaged(reference.as_str().to_owned()));
        }
        let mut verified = self.verified();
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(reference.clone(), stamp);
        Ok(file)
    }

    /// Writes the bytes to a staging file, unless the store has them.
    fn stage(
        &self,
        reference: &ArtifactRef,
        bytes: &dyn ByteSource,
    ) -> io::Result<Option<UncommittedFile>> {
        if self.open_sound(reference).is_ok() {
            return Ok(None);
        }
        UncommittedFile::write(&self.root.join("tmp"), bytes).map(Some)
    }

    /// Charges the bytes to the tenant's quota, or says how many are left. Requires the lock.
    fn charge(&self, owner: &ArtifactOwner, size: u64) -> Result<(), ArtifactError> {
        let tenant = self.tenant_dir(&owner.principal);
        let mut used = owners::usage(&tenant)?;
        if !self.quota.has_room(used, size) {
            let wanted = SpaceRequest {
                tenant: &tenant,
                bytes: size,
            };
            if let Some(left) = self.sweep_locked(Some(&wanted))?.left {
                return Err(QuotaExceeded { bytes: size, left }.into());
            }
            used = owners::usage(&tenant)?;
        }
        // Charge before storing: a crash in between counts too much, which the next sweep corrects.
        Ok(owners::set_usage(&tenant, used + size)?)
    }

    /// Does disk work on a thread for blocking work.
    fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ArtifactError> + Send + 'static,
    ) -> ArtifactFuture<'static, T> {
        let store = self.clone();
        let working = run_blocking(move || work(&store));
        Box::pin(async move { working.await? })
    }

    fn store(
        &self,
        owner: &ArtifactOwner,
        media_type: &str,
        source: &dyn ByteSource,
    ) -> Result<ArtifactRef, ArtifactError> {
        let reference = ArtifactRef::of_source(source)?;
        let size = source.size();
        self.quota.admit(size)?;
        let mut staged = self.stage(&reference, source)?;
        let _lock = disk::lock(&self.root)?;
        let known = self.record(owner, &reference).is_ok();
        if !known {
            self.charge(owner, size)?;
            // After the charge, since its sweep removes folders of owners that have nothing.
            self.make_owner(owner)?;
        }
        // A sweep may have removed what was there before the lock was taken.
        if staged.is_none() && !self.blob(&reference).exists() {
            staged = Some(UncommittedFile::write(&self.root.join("tmp"), source)?);
        }
        if let Some(staged) = staged {
            staged.keep(&self.blob(&reference))?;
        }
        if !known {
            let cut = media_type.floor_char_boundary(MAX_MEDIA_TYPE);
            let record = ArtifactRecord {
                v: owners::VERSION,
                media_type: media_type[..cut].to_owned(),
                bytes: size,
                created: nanoseconds((self.now)()),
            };
            self.keep_record(owner, &reference, &record)?;
        }
        Ok(reference)
    }

    fn load(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        self.record(owner, reference)?;
        let file = self.open_sound(reference)?;
        let end = range.end.min(file.metadata()?.len());
        let length = usize::try_from(end.saturating_sub(range.start)).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, range.start.min(end))?;
        Ok(bytes.into())
    }

    fn list_all(
        &self,
        principal: &Principal,
        run: Option<&RunId>,
    ) -> Result<Vec<ArtifactInfo>, ArtifactError> {
        let mut found = Vec::new();
        for dir in disk::folders(&self.tenant_dir(principal))? {
            let Some(owner) = owners::owner_of(&dir) else {
                continue;
            };
            if owner.principal == *principal && run.is_none_or(|run| owner.run == *run) {
                let all = owners::records(&dir)?.into_iter();
                found.extend(all.map(|(reference, record)| {
                    (record.created, record.info(reference, owner.run.clone()))
                }));
            }
        }
        found.sort_by(|(a, x), (b, y)| (b, &y.reference).cmp(&(a, &x.reference)));
        Ok(found.into_iter().map(|(_, info)| info).collect())
    }
}

impl ArtifactStore for DirArtifacts {
    fn put_from<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        source: Arc<dyn ByteSource>,
    ) -> ArtifactFuture<'a, ArtifactRef> {
        let (owner, media_type) = (owner.clone(), media_type.to_owned());
        self.work(move |store| store.store(&owner, &media_type, &*source))
    }

    fn usage<'a>(&'a self, principal: &'a Principal) -> ArtifactFuture<'a, QuotaUsage> {
        let tenant = self.tenant_dir(principal);
        self.work(move |store| Ok(store.quota.usage(owners::usage(&tenant)?)))
    }

    fn info<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
    ) -> ArtifactFuture<'a, ArtifactInfo> {
        let (owner, reference) = (owner.clone(), reference.clone());
        self.work(move |store| {
            let record = store.record(&owner, &reference)?;
            Ok(record.info(reference, owner.run))
        })
    }

    fn read<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> ArtifactFuture<'a, Bytes> {
        let (owner, reference) = (owner.clone(), reference.clone());
        self.work(move |store| store.load(&owner, &reference, range))
    }

    fn pin(&self, owner: &ArtifactOwner) {
        let name = self.owner_name(owner);
        let pinned = disk::lock(&self.root).and_then(|_lock| self.pins().pin(&self.root, &name));
        if let Err(error) = pinned {
            // The run's artifacts then expire counted from when they were stored.
            tracing::error!("pin the artifacts of run {}: {error}", owner.run);
        }
    }

    fn unpin(&self, owner: &ArtifactOwner) {
        let name = self.owner_name(owner);
        let now = (self.now)();
        let released = disk::lock(&self.root).and_then(|_lock| {
            if self.pins().unpin(&name)? {
                owners::release(&self.owner_dir(owner), nanoseconds(now))?;
            }
            Ok(())
        });
        if let Err(error) = released {
            tracing::error!("release the artifacts of run {}: {error}", owner.run);
        }
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> ArtifactFuture<'a, Vec<ArtifactInfo>> {
        let (principal, run) = (principal.clone(), run.cloned());
        self.work(move |store| store.list_all(&principal, run.as_ref()))
    }
}

impl HashedStamp {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            inode: found.ino(),
            bytes: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
        })
    }
}

/// Returns the hex digits of a ref.
fn digits(reference: &ArtifactRef) -> &str {
    let text = reference.as_str();
    text.strip_prefix("sha256-").unwrap_or(text)
}

fn hash(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// Converts to the 64-bit times in records, which last until 2262.
fn nanoseconds(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// Removes a file if it exists.
fn remove(path: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
