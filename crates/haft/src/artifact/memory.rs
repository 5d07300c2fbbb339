//! Artifacts in memory: for libraries without a disk, and for tests. Bounded by a quota.

use std::collections::HashMap;
use std::future::ready;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::artifact::quota::{Quota, QuotaUsage, StoredArtifact};
use crate::artifact::source::ByteSource;
use crate::artifact::{
    ArtifactError, ArtifactFuture, ArtifactInfo, ArtifactOwner, ArtifactRef, ArtifactStore,
};
use crate::call::{Principal, RunId};
use crate::clock;
use crate::future::run_blocking;

/// Maximum number of bytes stored for one tenant: 64 MiB.
const DEFAULT_QUOTA: Quota = Quota(64 << 20);

/// Maximum size of an artifact hashed on the calling thread; larger ones use another thread.
const MAX_INLINE_HASH: usize = 1 << 20;

/// Artifacts in memory, dropped with the process and with the last pin of their run. Clones share the store.
#[derive(Debug, Clone)]
pub struct MemoryArtifacts {
    quota: Quota,
    runs: Arc<Mutex<HashMap<ArtifactOwner, RunArtifactList>>>,
}

/// The artifacts of a run, oldest first.
#[derive(Debug, Default)]
struct RunArtifactList {
    /// Number of sessions that hold it.
    pins: usize,
    all: Vec<MemoryArtifact>,
}

#[derive(Debug, Clone)]
struct MemoryArtifact {
    info: ArtifactInfo,
    bytes: Bytes,
    created: i64,
}

impl MemoryArtifacts {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self {
            quota: DEFAULT_QUOTA,
            runs: Arc::default(),
        }
    }

    /// Sets the maximum number of bytes per tenant.
    pub fn with_quota(mut self, bytes: u64) -> Self {
        self.quota = Quota(bytes);
        self
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ArtifactOwner, RunArtifactList>> {
        self.runs.lock()
    }

    fn find(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
    ) -> Result<MemoryArtifact, ArtifactError> {
        let kept = self.lock();
        let mine = kept.get(owner).map(|run| run.all.as_slice());
        let mut mine = mine.unwrap_or_default().iter();
        let found = mine.find(|one| one.info.reference == *reference);
        found
            .cloned()
            .ok_or_else(|| ArtifactError::NotFound(reference.as_str().into()))
    }

    /// Makes room for `bytes` more of a tenant.
    fn make_room(
        &self,
        runs: &mut HashMap<ArtifactOwner, RunArtifactList>,
        principal: &Principal,
        bytes: u64,
    ) -> Result<(), ArtifactError> {
        let of_tenant = of_tenant(runs, principal).flat_map(|(owner, run)| {
            run.all.iter().map(move |one| StoredArtifact {
                id: (owner.clone(), one.info.reference.clone()),
                bytes: one.info.bytes,
                created: one.created,
                held: run.pins > 0,
            })
        });
        for (owner, reference) in self.quota.make_room(bytes, of_tenant.collect())? {
            if let Some(run) = runs.get_mut(&owner) {
                run.all.retain(|one| one.info.reference != reference);
            }
        }
        Ok(())
    }

    /// Hashes bytes and stores them.
    fn store(
        &self,
        owner: &ArtifactOwner,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<ArtifactRef, ArtifactError> {
        let size = bytes.len() as u64;
        let reference = ArtifactRef::of(&bytes);
        let mut kept = self.lock();
        let mine = kept.get(owner).map(|run| run.all.as_slice());
        let mut mine = mine.unwrap_or_default().iter();
        if mine.any(|one| one.info.reference == reference) {
            return Ok(reference);
        }
        self.make_room(&mut kept, &owner.principal, size)?;
        let now = clock::now();
        let info = ArtifactInfo {
            reference: reference.clone(),
            media_type: media_type.to_owned(),
            bytes: size,
            run: owner.run.clone(),
            created: clock::rfc3339(now),
        };
        kept.entry(owner.clone())
            .or_default()
            .all
            .push(MemoryArtifact {
                info,
                bytes,
                created: i64::try_from(now).unwrap_or(i64::MAX),
            });
        Ok(reference)
    }

    fn list_all(&self, principal: &Principal, run: Option<&RunId>) -> Vec<ArtifactInfo> {
        let kept = self.lock();
        let wanted = |owner: &&ArtifactOwner| {
            owner.principal == *principal && run.is_none_or(|run| owner.run == *run)
        };
        let mut found: Vec<_> = kept
            .iter()
            .filter(|(owner, _)| wanted(owner))
            .flat_map(|(_, run)| run.all.iter().map(|one| one.info.clone()))
            .collect();
        found.sort_by(|a, b| b.created.cmp(&a.created));
        found
    }
}

fn of_tenant<'a>(
    runs: &'a HashMap<ArtifactOwner, RunArtifactList>,
    principal: &'a Principal,
) -> impl Iterator<Item = (&'a ArtifactOwner, &'a RunArtifactList)> {
    runs.iter()
        .filter(|(owner, _)| owner.principal.tenant == principal.tenant)
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns a future that is ready.
fn answer<'a, T: Send + 'a>(found: Result<T, ArtifactError>) -> ArtifactFuture<'a, T> {
    Box::pin(ready(found))
}

impl ArtifactStore for MemoryArtifacts {
    fn put<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        bytes: Bytes,
    ) -> ArtifactFuture<'a, ArtifactRef> {
        if let Err(full) = self.quota.admit(bytes.len() as u64) {
            return answer(Err(full.into()));
        }
        if bytes.len() > MAX_INLINE_HASH {
            return self.put_from(owner, media_type, Arc::new(bytes));
        }
        answer(self.store(owner, media_type, bytes))
    }

    fn put_from<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        source: Arc<dyn ByteSource>,
    ) -> ArtifactFuture<'a, ArtifactRef> {
        if let Err(full) = self.quota.admit(source.size()) {
            return answer(Err(full.into()));
        }
        let (store, owner, media_type) = (self.clone(), owner.clone(), media_type.to_owned());
        let stored = run_blocking(move || store.store(&owner, &media_type, source.whole()?));
        Box::pin(async move { stored.await? })
    }

    fn usage<'a>(&'a self, principal: &'a Principal) -> ArtifactFuture<'a, QuotaUsage> {
        let kept = self.lock();
        let all = of_tenant(&kept, principal).flat_map(|(_, run)| &run.all);
        answer(Ok(self.quota.usage(all.map(|one| one.info.bytes).sum())))
    }

    fn info<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
    ) -> ArtifactFuture<'a, ArtifactInfo> {
        answer(self.find(owner, reference).map(|found| found.info))
    }

    fn read<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> ArtifactFuture<'a, Bytes> {
        answer(
            self.find(owner, reference)
                .map(|MemoryArtifact { info, bytes, .. }| {
                    let clip = |n: u64| usize::try_from(n.min(info.bytes)).unwrap_or(bytes.len());
                    let (start, end) = (clip(range.start), clip(range.end));
                    bytes.slice(start..end.max(start))
                }),
        )
    }

    fn pin(&self, owner: &ArtifactOwner) {
        self.lock().entry(owner.clone()).or_default().pins += 1;
    }

    fn unpin(&self, owner: &ArtifactOwner) {
        let mut kept = self.lock();
        let Some(run) = kept.get_mut(owner) else {
            return;
        };
        run.pins = run.pins.saturating_sub(1);
        if run.pins == 0 {
            kept.remove(owner);
        }
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> ArtifactFuture<'a, Vec<ArtifactInfo>> {
        answer(Ok(self.list_all(principal, run)))
    }
}
