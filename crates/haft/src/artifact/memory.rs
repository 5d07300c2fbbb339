//! Artifacts in memory: for libraries without a disk, and for tests. Bounded by a quota.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::artifact::quota::{Quota, StoredArtifact, Usage};
use crate::artifact::source::Source;
use crate::artifact::{ArtifactError, ArtifactInfo, ArtifactRef, ArtifactStore, Owner};
use crate::call::{Principal, RunId};
use crate::clock;

/// Most bytes kept for one tenant: 64 MiB.
const QUOTA: Quota = Quota(64 << 20);

/// Artifacts in memory; gone with the process, and with the last pin of their run.
#[derive(Debug)]
pub struct MemoryArtifacts {
    quota: Quota,
    kept: Mutex<HashMap<Owner, OfRun>>,
}

/// What a run has, the oldest first.
#[derive(Debug, Default)]
struct OfRun {
    /// How many sessions hold it.
    pins: usize,
    all: Vec<Stored>,
}

#[derive(Debug, Clone)]
struct Stored {
    info: ArtifactInfo,
    bytes: Bytes,
    created: i64,
}

impl MemoryArtifacts {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            quota: QUOTA,
            kept: Mutex::default(),
        }
    }

    /// With at most so many bytes for one tenant.
    pub fn with_quota(mut self, bytes: u64) -> Self {
        self.quota = Quota(bytes);
        self
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, OfRun>> {
        self.kept.lock()
    }

    fn find(&self, owner: &Owner, reference: &ArtifactRef) -> Result<Stored, ArtifactError> {
        let kept = self.lock();
        let mine = kept.get(owner).map(|run| run.all.as_slice());
        let mut mine = mine.unwrap_or_default().iter();
        let found = mine.find(|one| one.info.reference == *reference);
        found
            .cloned()
            .ok_or_else(|| ArtifactError::NotFound(reference.as_str().into()))
    }

    /// Makes room for so many bytes of a tenant.
    fn make_room(
        &self,
        kept: &mut HashMap<Owner, OfRun>,
        principal: &Principal,
        bytes: u64,
    ) -> Result<(), ArtifactError> {
        let of_tenant = of_tenant(kept, principal).flat_map(|(owner, run)| {
            run.all.iter().map(move |one| StoredArtifact {
                id: (owner.clone(), one.info.reference.clone()),
                bytes: one.info.bytes,
                created: one.created,
                held: run.pins > 0,
            })
        });
        for (owner, reference) in self.quota.make_room(bytes, of_tenant.collect())? {
            if let Some(run) = kept.get_mut(&owner) {
                run.all.retain(|one| one.info.reference != reference);
            }
        }
        Ok(())
    }
}

fn of_tenant<'a>(
    kept: &'a HashMap<Owner, OfRun>,
    principal: &'a Principal,
) -> impl Iterator<Item = (&'a Owner, &'a OfRun)> {
    kept.iter()
        .filter(|(owner, _)| owner.principal.tenant == principal.tenant)
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new()
    }
}

impl ArtifactStore for MemoryArtifacts {
    fn put_from(
        &self,
        owner: &Owner,
        media_type: &str,
        source: Arc<dyn Source>,
    ) -> Result<ArtifactRef, ArtifactError> {
        let size = source.size();
        self.quota.admit(size)?;
        let bytes = source.whole()?;
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
        kept.entry(owner.clone()).or_default().all.push(Stored {
            info,
            bytes,
            created: i64::try_from(now).unwrap_or(i64::MAX),
        });
        Ok(reference)
    }

    fn usage(&self, principal: &Principal) -> Result<Usage, ArtifactError> {
        let kept = self.lock();
        let all = of_tenant(&kept, principal).flat_map(|(_, run)| &run.all);
        Ok(self.quota.usage(all.map(|one| one.info.bytes).sum()))
    }

    fn info(&self, owner: &Owner, reference: &ArtifactRef) -> Result<ArtifactInfo, ArtifactError> {
        Ok(self.find(owner, reference)?.info)
    }

    fn read(
        &self,
        owner: &Owner,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        let Stored { info, bytes, .. } = self.find(owner, reference)?;
        let clip = |n: u64| usize::try_from(n.min(info.bytes)).unwrap_or(bytes.len());
        let (start, end) = (clip(range.start), clip(range.end));
        Ok(bytes.slice(start..end.max(start)))
    }

    fn pin(&self, owner: &Owner) {
        self.lock().entry(owner.clone()).or_default().pins += 1;
    }

    fn unpin(&self, owner: &Owner) {
        let mut kept = self.lock();
        let Some(run) = kept.get_mut(owner) else {
            return;
        };
        run.pins = run.pins.saturating_sub(1);
        if run.pins == 0 {
            kept.remove(owner);
        }
    }

    fn list(
        &self,
        principal: &Principal,
        run: Option<&RunId>,
    ) -> Result<Vec<ArtifactInfo>, ArtifactError> {
        let kept = self.lock();
        let wanted = |owner: &&Owner| {
            owner.principal == *principal && run.is_none_or(|run| owner.run == *run)
        };
        let mut found: Vec<_> = kept
            .iter()
            .filter(|(owner, _)| wanted(owner))
            .flat_map(|(_, run)| run.all.iter().map(|one| one.info.clone()))
            .collect();
        found.sort_by(|a, b| b.created.cmp(&a.created));
        Ok(found)
    }
}
