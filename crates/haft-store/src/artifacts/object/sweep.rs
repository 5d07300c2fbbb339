//! Sweeping: removes expired artifacts that no run holds.
//!
//! Every deletion is safe by itself, so a sweep may stop at any point, and two may run concurrently.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use haft::artifact::ArtifactError;
use haft::clock;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};

use super::keys::{self, KeyTarget};
use super::{Bucket, ObjectArtifacts, SWEEP_TIMEOUT};

/// Note written at the end of a complete sweep.
const SWEEP_MARK: &str = "swept";

/// Note written to read the server's clock.
const CLOCK: &str = "clock";

/// Maximum number of expired objects per sweep; the next sweep handles the rest.
const MAX_REMOVED: usize = 100_000;

impl ObjectArtifacts {
    /// Removes expired artifacts unless the last sweep by any process is more recent than `every`; returns how many were removed.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] if the bucket does not respond or refuses the request.
    pub async fn sweep_if_due(&self, every: Duration) -> Result<Option<u64>, ArtifactError> {
        let swept = self.run(SWEEP_TIMEOUT, |bucket| async move {
            bucket.sweep_if_due(every).await
        });
        swept.await
    }

    /// Removes expired artifacts and returns how many. A put that exceeds the quota does this for its tenant.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] if the bucket does not respond or refuses the request.
    pub async fn sweep(&self) -> Result<u64, ArtifactError> {
        let swept = self.run(SWEEP_TIMEOUT, |bucket| async move { bucket.sweep().await });
        swept.await
    }
}

impl Bucket {
    pub(super) async fn sweep_if_due(&self, every: Duration) -> Result<Option<u64>, ArtifactError> {
        let last = match self.store.head(&self.keys.note(SWEEP_MARK)).await {
            Ok(mark) => Some(mark.last_modified.timestamp()),
            Err(object_store::Error::NotFound { .. }) => None,
            Err(error) => return Err(self.to_artifact_error(&error)),
        };
        // The local clock is good enough here: if it is wrong, sweeps are more or less frequent but never remove what is held.
        let now = i64::try_from(clock::now() / 1_000_000_000).unwrap_or(i64::MAX);
        let due = last.is_none_or(|last| last > now || now - last >= seconds(every));
        if !due {
            return Ok(None);
        }
        self.sweep().await.map(Some)
    }

    pub(super) async fn sweep(&self) -> Result<u64, ArtifactError> {
        let removed = self.sweep_below(&self.keys.all()).await?;
        self.write_note(SWEEP_MARK).await?;
        Ok(removed)
    }

    /// Removes what has expired below a folder.
    pub(super) async fn sweep_below(&self, folder: &Path) -> Result<u64, ArtifactError> {
        let end =
            self.server_clock().await? - seconds(self.terms.ttl) - seconds(self.max_hold_age());
        let mut old: HashMap<String, Vec<Path>> = HashMap::new();
        let mut count = 0;
        let mut listed = self.store.list(Some(folder));
        while let Some(meta) = listed
            .try_next()
            .await
            .map_err(|e| self.to_artifact_error(&e))?
        {
            if meta.last_modified.timestamp() >= end {
                continue;
            }
            match self.keys.entry(&meta) {
                Some(KeyTarget::Kept(kept)) => old.entry(kept.folder).or_default().push(kept.path),
                Some(KeyTarget::Run(folder)) => drop(old.entry(folder).or_default()),
                None => continue,
            }
            count += 1;
            if count >= MAX_REMOVED {
                break;
            }
        }
        let mut removed = 0;
        for (folder, expired) in old {
            removed += self.sweep_run(&folder, expired, end).await?;
        }
        Ok(removed)
    }

    /// Removes a run's expired artifacts unless a process holds the run, and its file along with the last one.
    async fn sweep_run(
        &self,
        folder: &str,
        expired: Vec<Path>,
        end: i64,
    ) -> Result<u64, ArtifactError> {
        let file = keys::run_file(folder);
        let held = match self.store.head(&file).await {
            Ok(meta) => meta.last_modified.timestamp() >= end,
            Err(object_store::Error::NotFound { .. }) => false,
            Err(error) => return Err(self.to_artifact_error(&error)),
        };
        if held || self.pins().holds(folder) {
            return Ok(0);
        }
        let mut removed = 0;
        for path in expired {
            self.remove(&path).await?;
            self.forget_verified(&path);
            removed += 1;
        }
        let folder = Path::from(folder);
        let mut listed = self.store.list(Some(&folder));
        while let Some(meta) = listed
            .try_next()
            .await
            .map_err(|e| self.to_artifact_error(&e))?
        {
            if meta.location != file {
                return Ok(removed);
            }
        }
        self.remove(&file).await?;
        Ok(removed)
    }

    pub(super) async fn remove(&self, path: &Path) -> Result<(), ArtifactError> {
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.to_artifact_error(&error)),
        }
    }

    /// Returns the seconds since 1970 by the clock that stamps objects.
    pub(super) async fn server_clock(&self) -> Result<i64, ArtifactError> {
        self.write_note(CLOCK).await?;
        let stamped = self.store.head(&self.keys.note(CLOCK)).await;
        let stamped = stamped.map_err(|e| self.to_artifact_error(&e))?;
        Ok(stamped.last_modified.timestamp())
    }

    async fn write_note(&self, name: &str) -> Result<(), ArtifactError> {
        let note = PutPayload::from_static(b"haft");
        let written = self.store.put(&self.keys.note(name), note).await;
        written.map(drop).map_err(|e| self.to_artifact_error(&e))
    }
}

pub(super) fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
