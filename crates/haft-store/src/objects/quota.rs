//! Quotas: what each tenant has in the bucket, counted by listing it and remembered for a minute.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use haft::artifact::{ArtifactError, Owner};
use object_store::path::Path;
use tokio::sync::Mutex;

use super::keys::Entry;
use super::{Bucket, REMEMBERED};

/// How long a count holds, with what this process stores added to it.
const FRESH: Duration = Duration::from_secs(60);

/// What tenants have, as far as it was counted.
#[derive(Debug, Default)]
pub(super) struct Quotas(Mutex<HashMap<String, Count>>);

#[derive(Debug, Clone, Copy)]
struct Count {
    used: u64,
    at: Instant,
}

impl Bucket {
    /// Counts the bytes for the tenant, or says how many are left.
    pub(super) async fn charge(&self, owner: &Owner, size: u64) -> Result<(), ArtifactError> {
        let tenant = self.keys.tenant(&owner.principal);
        // One at a time: two who store at once share what is left.
        let mut counts = self.quotas.0.lock().await;
        let known = counts.get(&tenant).copied();
        let known = known.filter(|count| count.at.elapsed() < FRESH);
        let mut count = match known {
            Some(count) => count,
            None => self.count(&tenant).await?,
        };
        if count.used.saturating_add(size) > self.terms.quota {
            self.sweep_below(&Path::from(tenant.as_str())).await?;
            count = self.count(&tenant).await?;
        }
        let left = self.terms.quota.saturating_sub(count.used);
        if size <= left {
            count.used += size;
        }
        if counts.len() >= REMEMBERED {
            counts.clear();
        }
        counts.insert(tenant, count);
        if size > left {
            return Err(ArtifactError::Quota { bytes: size, left });
        }
        Ok(())
    }

    async fn count(&self, tenant: &str) -> Result<Count, ArtifactError> {
        let at = Instant::now();
        let mut used = 0u64;
        let mut listed = self.store.list(Some(&Path::from(tenant)));
        while let Some(meta) = listed.try_next().await.map_err(|e| self.told(&e))? {
            if let Some(Entry::Kept(kept)) = self.keys.entry(&meta) {
                used = used.saturating_add(kept.found);
            }
        }
        Ok(Count { used, at })
    }
}
