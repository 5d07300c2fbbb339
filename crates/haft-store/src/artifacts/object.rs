//! `ObjectArtifacts`: artifacts in a bucket, visible to every haft process that shares it.
//!
//! Each run has a folder `v1/TENANT/SUBJECT/RUN/` below the prefix; all three names are hashed. It holds `run.json`, which says
//! whose run it is, and one object `DIGITS/CREATED-BYTES-TYPE` per artifact: a listing gives everything about an artifact
//! except its bytes. Each run has its own copy, so no run can remove bytes that another one shares.
//!
//! A bucket has no locks. Every process with a session of a run rewrites that run's `run.json` at least once a day, and this
//! holds the run. An artifact expires when both it and its `run.json` are older than the time to live plus that day, by the
//! server's clock. Two cases can lose artifacts: a process cannot reach the server for that whole time, or a run is resumed at
//! the very moment when its time is up and another process sweeps.
//!
//! Damage: a process reads an artifact of at most 8 MiB whole and checks its hash on first read and whenever its entity tag has
//! changed. It checks the hash of a larger one only when it is read whole; for a part, it checks only the size.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::artifact::quota::{MAX_BYTES, QuotaUsage};
use haft::artifact::source::ByteSource;
use haft::artifact::{
    ArtifactError, ArtifactFuture, ArtifactInfo, ArtifactOwner, ArtifactRef, ArtifactStore,
};
use haft::call::{Principal, RunId};
use haft::future::run_blocking;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::{Mutex, MutexGuard};

mod bridge;
mod http;
mod keys;
mod listing;
mod pins;
mod quota;
mod reading;
mod s3;
mod storing;
mod sweep;
mod trouble;

use bridge::RuntimeBridge;
pub use haft_http::dial::{Dial, Io};
use keys::ObjectKeys;
use pins::RunPins;
use quota::Quotas;

/// How long an artifact lives when no active run holds it (contract §3).
const TTL: Duration = Duration::from_hours(7 * 24);

/// How long ago the last rewrite of an active run's `run.json` may be.
const MAX_HOLD_AGE: Duration = Duration::from_hours(24);

/// Time limit of one operation; each MiB that it moves adds one second.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of a sweep.
const SWEEP_TIMEOUT: Duration = Duration::from_hours(1);

/// Maximum number of objects and runs to remember; forgotten ones are requested from the server again.
const MAX_REMEMBERED: usize = 4096;

/// Limits on what is stored, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct RetentionLimits {
    /// Maximum number of bytes per tenant. What other processes store in the bucket is counted once a minute.
    pub quota: u64,
    /// How long an artifact lives after the end of the run that holds it; it may live up to a day longer.
    pub ttl: Duration,
    /// Interval at which one of the processes that share the bucket removes expired artifacts; `None` means never.
    pub sweep: Option<Duration>,
}

impl Default for RetentionLimits {
    /// 10 GiB, seven days, no sweeps.
    fn default() -> Self {
        Self {
            quota: MAX_BYTES,
            ttl: TTL,
            sweep: None,
        }
    }
}

/// Artifacts in a bucket that several processes may share.
///
/// The first operation contacts the server. An operation fails if it takes longer than 30 seconds plus one second for each MiB
/// that it may move. Lists hold the newest 10,000 artifacts. Operations run on the store's own thread; dropping the caller does
/// not stop them, dropping the store does.
#[derive(Debug)]
pub struct ObjectArtifacts {
    bucket: Arc<Bucket>,
    bridge: RuntimeBridge,
}

impl ObjectArtifacts {
    /// Creates a store for artifacts below `prefix` (which may be empty) in any object store; errors call it `place`.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        place: &str,
        prefix: &str,
        terms: RetentionLimits,
    ) -> Self {
        Self::of(Bucket::new(store, place, prefix, terms))
    }

    fn of(bucket: Bucket) -> Self {
        Self {
            bridge: RuntimeBridge::new(Arc::clone(&bucket.place)),
            bucket: Arc::new(bucket),
        }
    }

    /// Runs an operation on the store's own thread.
    fn run<T, F>(
        &self,
        limit: Duration,
        job: impl FnOnce(Arc<Bucket>) -> F,
    ) -> ArtifactFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ArtifactError>> + Send + 'static,
    {
        let job = job(Arc::clone(&self.bucket));
        let ran = self.bridge.run(&self.bucket, limit, job);
        Box::pin(async move { ran.await? })
    }
}

impl ArtifactStore for ObjectArtifacts {
    fn put_from<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        source: Arc<dyn ByteSource>,
    ) -> ArtifactFuture<'a, ArtifactRef> {
        let (owner, media_type) = (owner.clone(), media_type.to_owned());
        let limit = for_bytes(source.size());
        self.run(limit, |bucket| async move {
            let read = Arc::clone(&source);
            let reference = run_blocking(move || ArtifactRef::of_source(&*read)).await??;
            let put = bucket.put(&owner, &reference, &media_type, &source);
            put.await.map(|()| reference)
        })
    }

    fn usage<'a>(&'a self, principal: &'a Principal) -> ArtifactFuture<'a, QuotaUsage> {
        let principal = principal.clone();
        self.run(OPERATION_TIMEOUT, |bucket| async move {
            let used = bucket.used(&principal).await?;
            Ok(bucket.quota().usage(used))
        })
    }

    fn info<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
    ) -> ArtifactFuture<'a, ArtifactInfo> {
        let (owner, reference) = (owner.clone(), reference.clone());
        self.run(OPERATION_TIMEOUT, |bucket| async move {
            let found = bucket.find(&owner, &reference).await?;
            Ok(found.info(owner.run.clone()))
        })
    }

    fn read<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> ArtifactFuture<'a, Bytes> {
        let (owner, reference) = (owner.clone(), reference.clone());
        // An artifact is never larger than the quota.
        let most = range.end.min(self.bucket.terms.quota);
        let limit = for_bytes(most.saturating_sub(range.start));
        self.run(limit, |bucket| async move {
            bucket.read(&owner, &reference, range).await
        })
    }

    fn pin(&self, owner: &ArtifactOwner) {
        let folder = self.bucket.keys.run(owner);
        if self.bucket.pins().pin(&folder, owner) {
            let owner = owner.clone();
            // Runs in the background: whatever is stored from now on holds the run by itself.
            let renewed = |bucket: Arc<Bucket>| async move { bucket.renew_pin(&owner).await };
            let job = renewed(Arc::clone(&self.bucket));
            if let Err(error) = self.bridge.spawn(&self.bucket, OPERATION_TIMEOUT, job) {
                tracing::warn!(%error, "hold the artifacts of a run");
            }
        }
    }

    fn unpin(&self, owner: &ArtifactOwner) {
        let folder = self.bucket.keys.run(owner);
        self.bucket.pins().unpin(&folder);
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> ArtifactFuture<'a, Vec<ArtifactInfo>> {
        let (principal, run) = (principal.clone(), run.cloned());
        self.run(OPERATION_TIMEOUT, |bucket| async move {
            bucket.list(&principal, run.as_ref()).await
        })
    }
}

/// The bucket as used by jobs on the store's thread.
struct Bucket {
    store: Arc<dyn ObjectStore>,
    place: Arc<str>,
    keys: ObjectKeys,
    terms: RetentionLimits,
    pins: Mutex<RunPins>,
    /// Entity tags of objects whose hash was checked.
    sound: Mutex<HashMap<Path, String>>,
    /// The run of each folder.
    names: Mutex<HashMap<String, RunId>>,
    quotas: Quotas,
}

impl Bucket {
    fn new(store: Arc<dyn ObjectStore>, place: &str, prefix: &str, terms: RetentionLimits) -> Self {
        Self {
            store,
            place: place.into(),
            keys: ObjectKeys::below(prefix),
            terms,
            pins: Mutex::default(),
            sound: Mutex::default(),
            names: Mutex::default(),
            quotas: Quotas::default(),
        }
    }

    fn pins(&self) -> MutexGuard<'_, RunPins> {
        self.pins.lock()
    }

    fn to_artifact_error(&self, error: &object_store::Error) -> ArtifactError {
        trouble::to_io_error(&self.place, error).into()
    }

    /// Returns the longest time that an active run may go without a rewrite of its `run.json`.
    fn max_hold_age(&self) -> Duration {
        MAX_HOLD_AGE.min(self.terms.ttl / 2)
    }

    /// Returns whether these bytes are known to match the ref.
    fn is_verified(&self, path: &Path, tag: Option<&str>) -> bool {
        let sound = self.sound.lock();
        tag.is_some() && sound.get(path).map(String::as_str) == tag
    }

    fn note_verified(&self, path: &Path, tag: Option<&str>) {
        let Some(tag) = tag else { return };
        let mut sound = self.sound.lock();
        if sound.len() >= MAX_REMEMBERED {
            sound.clear();
        }
        sound.insert(path.clone(), tag.to_owned());
    }

    fn forget_verified(&self, path: &Path) {
        let mut sound = self.sound.lock();
        sound.remove(path);
    }
}

/// Leaves out the store, whose `Debug` output may contain credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("place", &self.place)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

fn for_bytes(bytes: u64) -> Duration {
    OPERATION_TIMEOUT.saturating_add(Duration::from_secs(bytes >> 20))
}
