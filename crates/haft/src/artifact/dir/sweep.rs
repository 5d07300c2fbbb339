//! Sweeping: removes expired artifacts that no run in use holds, then blobs that no record names.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{DirArtifacts, digits, disk, nanoseconds, owners, pins};
use crate::artifact::quota::{Quota, QuotaExceeded, StoredArtifact};
use crate::artifact::{ArtifactError, ArtifactRef};
use crate::clock;

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Number of owners' artifacts removed.
    pub artifacts: u64,
    /// Number of blobs removed, which no owner had any more.
    pub blobs: u64,
    /// If room was needed but runs in use hold too much: the bytes that could be available.
    pub left: Option<u64>,
}

/// Room needed for a tenant.
pub(super) struct SpaceRequest<'a> {
    pub(super) tenant: &'a Path,
    pub(super) bytes: u64,
}

/// The location of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RecordLocation {
    dir: PathBuf,
    digits: String,
    reference: ArtifactRef,
}

/// The file with the time of the last sweep, in nanoseconds since 1970.
const SWEEP_MARK: &str = "swept";

impl DirArtifacts {
    /// Sweeps unless any process did so within `every`; a host calls it when a run starts.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] if the store cannot be read or written.
    pub async fn sweep_if_due(
        &self,
        every: Duration,
    ) -> Result<Option<SweepReport>, ArtifactError> {
        self.work(move |store| store.sweep_all_if_due(every)).await
    }

    /// Removes expired artifacts. A full quota triggers this automatically.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] if the store cannot be read or written.
    pub async fn sweep(&self) -> Result<SweepReport, ArtifactError> {
        self.work(Self::sweep_all).await
    }

    fn sweep_all_if_due(&self, every: Duration) -> Result<Option<SweepReport>, ArtifactError> {
        let mark = fs::read_to_string(self.root.join(SWEEP_MARK)).ok();
        let last = mark.and_then(|text| text.trim().parse::<i64>().ok());
        let due = last.map(|last| last.saturating_add(length(every)));
        let now = nanoseconds((self.now)());
        // A time in the future means that the clock was set back; it does not delay sweeping.
        if due.is_some_and(|due| now < due) && last.is_some_and(|last| last <= now) {
            return Ok(None);
        }
        self.sweep_all().map(Some)
    }

    fn sweep_all(&self) -> Result<SweepReport, ArtifactError> {
        if !self.root.exists() {
            return Ok(SweepReport::default());
        }
        let _lock = disk::lock(&self.root)?;
        let swept = self.sweep_locked(None)?;
        let mut mark = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.root.join(SWEEP_MARK))?;
        mark.write_all(nanoseconds((self.now)()).to_string().as_bytes())?;
        Ok(swept)
    }

    /// Removes expired artifacts and, for `wanted`, the oldest ones. Requires the store's lock.
    pub(super) fn sweep_locked(
        &self,
        wanted: Option<&SpaceRequest<'_>>,
    ) -> io::Result<SweepReport> {
        let now = nanoseconds((self.now)());
        let pinned = pins::live(&self.root, now)?;
        let mut swept = SweepReport::default();
        let mut named = HashSet::new();
        for tenant in disk::folders(&self.root.join("owners"))? {
            let mut kept = self.expire(&tenant, &pinned, now, &mut swept)?;
            if let Some(wanted) = wanted.filter(|wanted| wanted.tenant == tenant) {
                swept.left = evict_for(self.quota, wanted.bytes, &mut kept, &mut swept.artifacts)?;
            }
            named.extend(kept.into_iter().map(|one| one.id.digits));
            remove_empty(&tenant, &pinned)?;
            owners::set_usage(&tenant, owners::counted(&tenant)?)?;
        }
        swept.blobs = self.sweep_blobs(&named)?;
        Ok(swept)
    }

    /// Removes a tenant's expired artifacts; returns the remaining ones.
    fn expire(
        &self,
        tenant: &Path,
        pinned: &HashSet<String>,
        now: i64,
        swept: &mut SweepReport,
    ) -> io::Result<Vec<StoredArtifact<RecordLocation>>> {
        let ttl = length(self.ttl);
        let mut kept = Vec::new();
        for dir in disk::folders(tenant)? {
            let held = pinned.contains(&owners::pin_name(&dir));
            let released = owners::released(&dir).unwrap_or(i64::MIN);
            for (reference, record) in owners::records(&dir)? {
                let end = record.created.max(released).saturating_add(ttl);
                if !held && end <= now {
                    owners::forget(&dir, &reference)?;
                    swept.artifacts += 1;
                    continue;
                }
                kept.push(StoredArtifact {
                    id: RecordLocation {
                        dir: dir.clone(),
                        digits: digits(&reference).to_owned(),
                        reference,
                    },
                    bytes: record.bytes,
                    created: record.created,
                    held,
                });
            }
        }
        Ok(kept)
    }

    /// Removes blobs that no record names.
    fn sweep_blobs(&self, named: &HashSet<String>) -> io::Result<u64> {
        let mut removed = 0;
        for folder in disk::folders(&self.root.join("blobs"))? {
            for blob in disk::entries(&folder)? {
                let name = file_name(&blob);
                if !named.contains(&name) {
                    super::remove(&blob)?;
                    removed += 1;
                }
            }
        }
        self.sweep_staged()?;
        Ok(removed)
    }

    /// Removes staged files that are older than an hour: the process that was writing them has exited.
    fn sweep_staged(&self) -> io::Result<()> {
        const NANOS_PER_HOUR: i64 = 3_600_000_000_000;
        let now = nanoseconds(clock::now());
        for staged in disk::entries(&self.root.join("tmp"))? {
            // Its name contains the time: `process-nanoseconds-number`.
            let name = file_name(&staged);
            let made = name.split('-').nth(1).and_then(|at| at.parse::<i64>().ok());
            if made.is_none_or(|at| at.saturating_add(NANOS_PER_HOUR) < now) {
                super::remove(&staged)?;
            }
        }
        Ok(())
    }
}

/// Removes the oldest records that no run in use holds until `bytes` more fit; if they cannot, returns how many would.
fn evict_for(
    quota: Quota,
    bytes: u64,
    artifacts: &mut Vec<StoredArtifact<RecordLocation>>,
    removed: &mut u64,
) -> io::Result<Option<u64>> {
    let evicted: HashSet<RecordLocation> = match quota.make_room(bytes, artifacts.clone()) {
        Err(QuotaExceeded { left, .. }) => return Ok(Some(left)),
        Ok(evicted) => evicted.into_iter().collect(),
    };
    for place in &evicted {
        owners::forget(&place.dir, &place.reference)?;
        *removed += 1;
    }
    artifacts.retain(|one| !evicted.contains(&one.id));
    Ok(None)
}

/// Removes the folders of owners that have no records and no run in use.
fn remove_empty(tenant: &Path, pinned: &HashSet<String>) -> io::Result<()> {
    for dir in disk::folders(tenant)? {
        if !pinned.contains(&owners::pin_name(&dir)) && owners::records(&dir)?.is_empty() {
            fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

fn length(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
