//! Listing: one artifact of a run, or a principal's newest.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactOwner, ArtifactRef};
use haft::call::{Principal, RunId};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::keys::{self, KeyTarget, StoredObject};
use super::pins::RunFile;
use super::reading::not_found;
use super::{Bucket, MAX_REMEMBERED};

/// Maximum number of artifacts in a list: the newest 10,000.
const MAX_LISTED: usize = 10_000;

/// Maximum number of run files read concurrently.
const MAX_CONCURRENT: usize = 16;

/// Maximum size of a run file to read.
const MAX_RUN_FILE: u64 = 16 << 10;

impl Bucket {
    /// Finds an owner's artifact; the oldest if the same bytes were stored twice concurrently.
    pub(super) async fn find(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
    ) -> Result<StoredObject, ArtifactError> {
        let place = keys::place(&self.keys.run(owner), reference);
        let mut listed = self.store.list(Some(&place));
        let mut oldest: Option<StoredObject> = None;
        while let Some(meta) = listed
            .try_next()
            .await
            .map_err(|e| self.to_artifact_error(&e))?
        {
            if let Some(KeyTarget::Kept(kept)) = self.keys.entry(&meta)
                && oldest.as_ref().is_none_or(|old| kept.created < old.created)
            {
                oldest = Some(kept);
            }
        }
        oldest.ok_or_else(|| not_found(reference))
    }

    pub(super) async fn list(
        &self,
        principal: &Principal,
        run: Option<&RunId>,
    ) -> Result<Vec<ArtifactInfo>, ArtifactError> {
        let folder = match run {
            Some(run) => self.keys.run(&ArtifactOwner {
                principal: principal.clone(),
                run: run.clone(),
            }),
            None => self.keys.principal(principal),
        };
        let newest = self.newest(&Path::from(folder.as_str())).await?;
        let names = match run {
            Some(run) => HashMap::from([(folder, run.clone())]),
            None => self.run_ids(&newest).await?,
        };
        let named = newest.iter();
        let named = named.filter_map(|kept| Some(kept.info(names.get(&kept.folder)?.clone())));
        Ok(named.collect())
    }

    /// Returns the newest artifacts below a folder without duplicates, newest first.
    async fn newest(&self, folder: &Path) -> Result<Vec<StoredObject>, ArtifactError> {
        let mut listed = self.store.list(Some(folder));
        let mut found = Vec::new();
        while let Some(meta) = listed
            .try_next()
            .await
            .map_err(|e| self.to_artifact_error(&e))?
        {
            if let Some(KeyTarget::Kept(kept)) = self.keys.entry(&meta) {
                found.push(kept);
            }
            if found.len() >= 2 * MAX_LISTED {
                found = newest_objects(found);
            }
        }
        Ok(newest_objects(found))
    }

    /// Returns the runs that the artifacts' folders belong to, where their files say so.
    async fn run_ids(&self, all: &[StoredObject]) -> Result<HashMap<String, RunId>, ArtifactError> {
        let wanted: HashSet<&str> = all.iter().map(|kept| kept.folder.as_str()).collect();
        let mut named = HashMap::new();
        let mut asked = Vec::new();
        {
            let known = self.names.lock();
            for folder in wanted {
                match known.get(folder) {
                    Some(run) => drop(named.insert(folder.to_owned(), run.clone())),
                    None => asked.push(folder.to_owned()),
                }
            }
        }
        let mut answers = stream::iter(asked)
            .map(|folder| async { self.run_id(&folder).await.map(|run| (folder, run)) })
            .buffer_unordered(MAX_CONCURRENT);
        while let Some((folder, run)) = answers.try_next().await? {
            let Some(run) = run else { continue };
            let mut known = self.names.lock();
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
            known.insert(folder.clone(), run.clone());
            named.insert(folder, run);
        }
        Ok(named)
    }

    /// Returns a folder's run; `None` if its file is missing or not one that haft writes.
    async fn run_id(&self, folder: &str) -> Result<Option<RunId>, ArtifactError> {
        let found = match self.store.get(&keys::run_file(folder)).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|e| self.to_artifact_error(&e))?,
        };
        if found.meta.size > MAX_RUN_FILE {
            return Ok(None);
        }
        let text = found
            .bytes()
            .await
            .map_err(|e| self.to_artifact_error(&e))?;
        let Ok(file) = serde_json::from_slice::<RunFile>(&text) else {
            return Ok(None);
        };
        let owner = ArtifactOwner {
            principal: Principal::new(file.tenant, file.subject),
            run: RunId::new(file.run),
        };
        Ok((self.keys.run(&owner) == folder).then_some(owner.run))
    }
}

fn newest_objects(mut found: Vec<StoredObject>) -> Vec<StoredObject> {
    // If a run stored the same bytes twice, the oldest object counts.
    found.sort_by(|a, b| {
        let key = |kept: &StoredObject| (kept.folder.clone(), kept.reference.clone(), kept.created);
        key(a).cmp(&key(b))
    });
    found.dedup_by(|b, a| (&a.folder, &a.reference) == (&b.folder, &b.reference));
    found.sort_by_key(|kept| Reverse((kept.created, kept.reference.clone())));
    found.truncate(MAX_LISTED);
    found
}
