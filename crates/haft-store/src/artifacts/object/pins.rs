//! Pins: the runs that this process has a session of, and when it last renewed its hold on each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use haft::artifact::{ArtifactError, ArtifactOwner};
use object_store::ObjectStoreExt as _;
use serde::{Deserialize, Serialize};

use super::{Bucket, MAX_REMEMBERED, keys};

/// The runs in use in this process.
#[derive(Debug, Default)]
pub(super) struct RunPins {
    /// Number of sessions that hold each run.
    held: HashMap<String, (ArtifactOwner, usize)>,
    /// When each run's file was last written.
    renewed: HashMap<String, Instant>,
}

/// Contents of `run.json`: the owner of a run's folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunFile {
    pub(super) tenant: String,
    pub(super) subject: String,
    pub(super) run: String,
}

impl RunPins {
    /// Counts one more session of this run; returns whether it is the first.
    pub(super) fn pin(&mut self, folder: &str, owner: &ArtifactOwner) -> bool {
        let (_, held) = self
            .held
            .entry(folder.to_owned())
            .or_insert_with(|| (owner.clone(), 0));
        *held += 1;
        *held == 1
    }

    /// Counts one session less.
    pub(super) fn unpin(&mut self, folder: &str) {
        if let Some((_, held)) = self.held.get_mut(folder) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(folder);
            }
        }
    }

    pub(super) fn holds(&self, folder: &str) -> bool {
        self.held.contains_key(folder)
    }

    /// Returns whether the run's file was not written within this time.
    fn is_due(&self, folder: &str, within: Duration) -> bool {
        let renewed = self.renewed.get(folder);
        renewed.is_none_or(|at| at.elapsed() >= within)
    }

    fn note_renewal(&mut self, folder: &str) {
        if self.renewed.len() >= MAX_REMEMBERED {
            let held = &self.held;
            self.renewed.retain(|folder, _| held.contains_key(folder));
        }
        self.renewed.insert(folder.to_owned(), Instant::now());
    }
}

impl Bucket {
    /// Marks the run as in use unless that was done recently. Creates its file if it is missing.
    pub(super) async fn hold(
        &self,
        owner: &ArtifactOwner,
        folder: &str,
    ) -> Result<(), ArtifactError> {
        if self.pins().is_due(folder, self.max_hold_age() / 2) {
            self.write_run(owner, folder).await?;
        }
        Ok(())
    }

    /// Renews the hold on a run, but only if it has stored something.
    pub(super) async fn renew_pin(&self, owner: &ArtifactOwner) -> Result<(), ArtifactError> {
        let folder = self.keys.run(owner);
        if !self.pins().is_due(&folder, self.max_hold_age() / 2) {
            return Ok(());
        }
        match self.store.head(&keys::run_file(&folder)).await {
            Ok(_) => self.write_run(owner, &folder).await,
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.to_artifact_error(&error)),
        }
    }

    /// Renews the hold on all runs in use that are due.
    pub(super) async fn renew_pins(&self) {
        let within = self.max_hold_age() / 2;
        let due: Vec<ArtifactOwner> = {
            let pins = self.pins();
            let held = pins.held.iter();
            held.filter(|(folder, _)| pins.is_due(folder, within))
                .map(|(_, (owner, _))| owner.clone())
                .collect()
        };
        for owner in due {
            if let Err(error) = self.renew_pin(&owner).await {
                // The next tick is soon enough: what is due was renewed half a day ago.
                tracing::warn!(%error, "hold the artifacts of run {}", owner.run);
                return;
            }
        }
    }

    async fn write_run(&self, owner: &ArtifactOwner, folder: &str) -> Result<(), ArtifactError> {
        let file = RunFile {
            tenant: owner.principal.tenant.to_string(),
            subject: owner.principal.subject.to_string(),
            run: owner.run.to_string(),
        };
        let text = serde_json::to_vec(&file).map_err(std::io::Error::from)?;
        let path = keys::run_file(folder);
        let written = self.store.put(&path, text.into()).await;
        written.map_err(|e| self.to_artifact_error(&e))?;
        self.pins().note_renewal(folder);
        Ok(())
    }
}
