//! Artifacts in memory: for libraries without a disk, and for tests. Bounded by a quota.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::artifact::{ArtifactError, ArtifactInfo, ArtifactRef, ArtifactStore, Owner};
use crate::call::{Principal, RunId};
use crate::clock;

/// Most bytes kept for one tenant: 64 MiB.
const QUOTA: u64 = 64 << 20;

/// Artifacts in memory; gone with the process, and with the last pin of their run.
#[derive(Debug)]
pub struct MemoryArtifacts {
    quota: u64,
    kept: Mutex<HashMap<Owner, Vec<(ArtifactInfo, Bytes)>>>,
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
        self.quota = bytes;
        self
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Owner, Vec<(ArtifactInfo, Bytes)>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(
        &self,
        owner: &Owner,
        reference: &ArtifactRef,
    ) -> Result<(ArtifactInfo, Bytes), ArtifactError> {
        let kept = self.kept();
        let mine = kept.get(owner).map(Vec::as_slice).unwrap_or_default();
        let found = mine.iter().find(|(info, _)| info.reference == *reference);
        found
            .cloned()
            .ok_or_else(|| ArtifactError::NotFound(reference.as_str().into()))
    }
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new()
    }
}

impl ArtifactStore for MemoryArtifacts {
    fn put(
        &self,
        owner: &Owner,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<ArtifactRef, ArtifactError> {
        let reference = ArtifactRef::of(&bytes);
        let mut kept = self.kept();
        let tenant = &owner.principal.tenant;
        let mine = kept
            .iter()
            .filter(|(other, _)| other.principal.tenant == *tenant);
        let used: u64 = mine
            .flat_map(|(_, all)| all)
            .map(|(info, _)| info.bytes)
            .sum();
        let all = kept.entry(owner.clone()).or_default();
        if all.iter().any(|(info, _)| info.reference == reference) {
            return Ok(reference);
        }
        let left = self.quota.saturating_sub(used);
        let size = bytes.len() as u64;
        if size > left {
            return Err(ArtifactError::Quota { bytes: size, left });
        }
        let info = ArtifactInfo {
            reference: reference.clone(),
            media_type: media_type.to_owned(),
            bytes: size,
            run: owner.run.clone(),
            created: clock::rfc3339(clock::now()),
        };
        all.push((info, bytes));
        Ok(reference)
    }

    fn info(&self, owner: &Owner, reference: &ArtifactRef) -> Result<ArtifactInfo, ArtifactError> {
        Ok(self.find(owner, reference)?.0)
    }

    fn read(
        &self,
        owner: &Owner,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        let (info, bytes) = self.find(owner, reference)?;
        let clip = |n: u64| usize::try_from(n.min(info.bytes)).unwrap_or(bytes.len());
        let (start, end) = (clip(range.start), clip(range.end));
        Ok(bytes.slice(start..end.max(start)))
    }

    fn pin(&self, _owner: &Owner) {}

    fn unpin(&self, owner: &Owner) {
        self.kept().remove(owner);
    }

    fn list(
        &self,
        principal: &Principal,
        run: Option<&RunId>,
    ) -> Result<Vec<ArtifactInfo>, ArtifactError> {
        let kept = self.kept();
        let wanted = |owner: &&Owner| {
            owner.principal == *principal && run.is_none_or(|run| owner.run == *run)
        };
        let mut found: Vec<_> = kept
            .iter()
            .filter(|(owner, _)| wanted(owner))
            .flat_map(|(_, all)| all.iter().map(|(info, _)| info.clone()))
            .collect();
        found.sort_by(|a, b| b.created.cmp(&a.created));
        Ok(found)
    }
}
