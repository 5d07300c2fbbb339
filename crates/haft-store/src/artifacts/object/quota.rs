//! `Quotas`: the bytes that each tenant stores in the bucket, counted by a listing and remembered for a minute.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use haft::artifact::quota::{Quota, StoredArtifact};
use haft::artifact::{ArtifactError, ArtifactOwner};
use haft::call::Principal;
use object_store::path::Path;
use tokio::sync::Mutex;

use super::keys::KeyTarget;
use super::sweep::seconds;
use super::{Bucket, MAX_REMEMBERED};

/// How long a count stays valid; this process adds what it stores to it.
const COUNT_TTL: Duration = Duration::from_secs(60);

/// Known byte counts by tenant.
#[derive(Debug, Default)]
pub(super) struct Quotas(Mutex<HashMap<String, QuotaCount>>);

#[derive(Debug, Clone, Copy)]
struct QuotaCount {
    used: u64,
    at: Instant,
}

impl Bucket {
    /// Returns the limit per tenant.
    pub(super) fn quota(&self) -> Quota {
        Quota(self.terms.quota)
    }

    /// Charges the bytes to the tenant, or returns an error that says how many would fit.
    pub(super) async fn charge(
        &self,
        owner: &ArtifactOwner,
        size: u64,
    ) -> Result<(), ArtifactError> {
        let tenant = self.keys.tenant(&owner.principal);
        // One at a time: concurrent puts share what is left.
        let mut counts = self.quotas.0.lock().await;
        let mut count = self.known(&counts, &tenant).await?;
        if !self.quota().has_room(count.used, size) {
            self.sweep_below(&Path::from(tenant.as_str())).await?;
            let made = self.evict(&tenant, size).await;
            count = self.count(&tenant).await?;
            remember(&mut counts, tenant.clone(), count);
            made?;
        }
        count.used += size;
        remember(&mut counts, tenant, count);
        Ok(())
    }

    /// Returns the bytes that a principal's tenant uses.
    pub(super) async fn used(&self, principal: &Principal) -> Result<u64, ArtifactError> {
        let tenant = self.keys.tenant(principal);
        let mut counts = self.quotas.0.lock().await;
        let count = self.known(&counts, &tenant).await?;
        remember(&mut counts, tenant, count);
        Ok(count.used)
    }

    async fn known(
        &self,
        counts: &HashMap<String, QuotaCount>,
        tenant: &str,
    ) -> Result<QuotaCount, ArtifactError> {
        let known = counts.get(tenant).copied();
        match known.filter(|count| count.at.elapsed() < COUNT_TTL) {
            Some(count) => Ok(count),
            None => self.count(tenant).await,
        }
    }

    async fn count(&self, tenant: &str) -> Result<QuotaCount, ArtifactError> {
        let at = Instant::now();
        let mut used = 0u64;
        let mut listed = self.store.list(Some(&Path::from(tenant)));
        while let Some(meta) = listed
            .try_next()
            .await
            .map_err(|e| self.to_artifact_error(&e))?
        {
            if let Some(KeyTarget::Kept(kept)) = self.keys.entry(&meta) {
                used = used.saturating_add(kept.found);
            }
        }
        Ok(QuotaCount { used, at })
    }

    /// Removes a tenant's oldest artifacts, except those of active runs, until `size` more bytes fit. A run is active if its
    /// file was written within the interval at which every process with a session of it rewrites that file.
    async fn evict(&self, tenant: &str, size: u64) -> Result<(), ArtifactError> {
        let in_use = self.server_clock().await? - seconds(self.max_hold_age());
        let (mut artifacts, mut held) = (Vec::new(), HashSet::new());
        let mut listed = self.store.list(Some(&Path::from(tenant)));
        while let Some(meta) = listed
            .try_next()
            .await
            .map_err(|e| self.to_artifact_error(&e))?
        {
            match self.keys.entry(&meta) {
                Some(KeyTarget::Kept(one)) => artifacts.push(one),
                Some(KeyTarget::Run(folder)) if meta.last_modified.timestamp() >= in_use => {
                    held.insert(folder);
                }
                Some(KeyTarget::Run(_)) | None => {}
            }
        }
        let artifacts = artifacts.into_iter().map(|one| StoredArtifact {
            held: held.contains(&one.folder) || self.pins().holds(&one.folder),
            bytes: one.found,
            created: one.created,
            id: one.path,
        });
        for path in self.quota().make_room(size, artifacts.collect())? {
            self.remove(&path).await?;
            self.forget_verified(&path);
        }
        Ok(())
    }
}

fn remember(counts: &mut HashMap<String, QuotaCount>, tenant: String, count: QuotaCount) {
    if counts.len() >= MAX_REMEMBERED {
        counts.clear();
    }
    counts.insert(tenant, count);
}
