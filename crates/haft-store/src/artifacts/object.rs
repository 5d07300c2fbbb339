//! `ObjectArtifacts`: artifacts in a bucket, where every haft that shares it sees them.
//!
//! Below the prefix there is `v1/TENANT/SUBJECT/RUN/` for each run, all three hashes of the names, and in it `run.json`,
//! which says whose run it is, and `DIGITS/CREATED-BYTES-TYPE` for each artifact: what a listing tells is all there is to
//! know of one but its bytes. Each run has its own copy, so nothing is shared that one of them could take from another.
//!
//! There is no lock in a bucket. A run is held by its `run.json` being written anew, by whoever has a session of it, at
//! least once a day; an artifact goes when it and its run's file are older than the time to live and that day, by the
//! server's clock. What a haft holds that cannot reach the server for all that time may go; so may what is taken up again in
//! the very moment in which its time is over and somebody sweeps.
//!
//! Damage: an artifact of at most 8 MiB is read whole and its hash checked when a process first reads it, and again when
//! its entity tag changed. A larger one is so checked when it is read whole; for a part of it, its size is.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft::artifact::quota::{MAX_BYTES, Usage};
use haft::artifact::source::Source;
use haft::artifact::{Answer, ArtifactError, ArtifactInfo, ArtifactRef, ArtifactStore, Owner};
use haft::call::{Principal, RunId};
use haft::future::run_blocking;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::{Mutex, MutexGuard};

mod bridge;
mod dial;
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

use bridge::Bridge;
pub use dial::{Dial, Dialing, Duplex};
use keys::Keys;
use pins::Pins;
use quota::Quotas;

/// How long an artifact lives when no run in use holds it (contract §3).
const TTL: Duration = Duration::from_hours(7 * 24);

/// How far the word that a run is held may lag behind.
const LAG: Duration = Duration::from_hours(24);

/// How long one operation may take, and a second more for each MiB that it moves.
const LIMIT: Duration = Duration::from_secs(30);

/// How long a sweep may take.
const SWEEP_LIMIT: Duration = Duration::from_hours(1);

/// What is remembered of objects and runs; more is forgotten, and asked for again.
const REMEMBERED: usize = 4096;

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Most bytes for one tenant. What others store in the bucket is counted once a minute.
    pub quota: u64,
    /// How long an artifact lives from the end of the run that holds it; up to a day more.
    pub ttl: Duration,
    /// How often what expired is removed, by one of those who share the bucket; never, where not set.
    pub sweep: Option<Duration>,
}

impl Default for Terms {
    /// 10 GiB, seven days, not swept.
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
/// The server is first asked when there is something to do. An operation fails that takes longer than 30 seconds, and a
/// second for each MiB that it may move. Lists are of the newest 10,000. Operations run on a thread of the store's own, and
/// to their end where the caller is dropped, as long as the store is there.
#[derive(Debug)]
pub struct ObjectArtifacts {
    bucket: Arc<Bucket>,
    bridge: Bridge,
}

impl ObjectArtifacts {
    /// Artifacts below `prefix` (which may be empty) in any object store; `place` names it in errors.
    pub fn new(store: Arc<dyn ObjectStore>, place: &str, prefix: &str, terms: Terms) -> Self {
        Self::of(Bucket::new(store, place, prefix, terms))
    }

    fn of(bucket: Bucket) -> Self {
        Self {
            bridge: Bridge::new(Arc::clone(&bucket.place)),
            bucket: Arc::new(bucket),
        }
    }

    /// Runs an operation on the store's own thread.
    fn run<T, F>(&self, limit: Duration, job: impl FnOnce(Arc<Bucket>) -> F) -> Answer<'static, T>
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
        owner: &'a Owner,
        media_type: &'a str,
        source: Arc<dyn Source>,
    ) -> Answer<'a, ArtifactRef> {
        let (owner, media_type) = (owner.clone(), media_type.to_owned());
        let limit = for_bytes(source.size());
        self.run(limit, |bucket| async move {
            let read = Arc::clone(&source);
            let reference = run_blocking(move || ArtifactRef::of_source(&*read)).await??;
            let put = bucket.put(&owner, &reference, &media_type, &source);
            put.await.map(|()| reference)
        })
    }

    fn usage<'a>(&'a self, principal: &'a Principal) -> Answer<'a, Usage> {
        let principal = principal.clone();
        self.run(LIMIT, |bucket| async move {
            let used = bucket.used(&principal).await?;
            Ok(bucket.quota().usage(used))
        })
    }

    fn info<'a>(
        &'a self,
        owner: &'a Owner,
        reference: &'a ArtifactRef,
    ) -> Answer<'a, ArtifactInfo> {
        let (owner, reference) = (owner.clone(), reference.clone());
        self.run(LIMIT, |bucket| async move {
            let found = bucket.find(&owner, &reference).await?;
            Ok(found.info(owner.run.clone()))
        })
    }

    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> Answer<'a, Bytes> {
        let (owner, reference) = (owner.clone(), reference.clone());
        // What may be there at most is what the quota lets in.
        let most = range.end.min(self.bucket.terms.quota);
        let limit = for_bytes(most.saturating_sub(range.start));
        self.run(limit, |bucket| async move {
            bucket.read(&owner, &reference, range).await
        })
    }

    fn pin(&self, owner: &Owner) {
        let folder = self.bucket.keys.run(owner);
        if self.bucket.pins().pin(&folder, owner) {
            let owner = owner.clone();
            // Nobody waits for it: what is stored from now on holds the run by itself.
            let renewed = |bucket: Arc<Bucket>| async move { bucket.renew_pin(&owner).await };
            let job = renewed(Arc::clone(&self.bucket));
            if let Err(error) = self.bridge.spawn(&self.bucket, LIMIT, job) {
                tracing::warn!(%error, "hold the artifacts of a run");
            }
        }
    }

    fn unpin(&self, owner: &Owner) {
        let folder = self.bucket.keys.run(owner);
        self.bucket.pins().unpin(&folder);
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> Answer<'a, Vec<ArtifactInfo>> {
        let (principal, run) = (principal.clone(), run.cloned());
        self.run(LIMIT, |bucket| async move {
            bucket.list(&principal, run.as_ref()).await
        })
    }
}

/// The bucket as jobs on the store's thread see it.
struct Bucket {
    store: Arc<dyn ObjectStore>,
    place: Arc<str>,
    keys: Keys,
    terms: Terms,
    pins: Mutex<Pins>,
    /// The entity tags of objects whose hash was checked.
    sound: Mutex<HashMap<Path, String>>,
    /// The runs that folders belong to.
    names: Mutex<HashMap<String, RunId>>,
    quotas: Quotas,
}

impl Bucket {
    fn new(store: Arc<dyn ObjectStore>, place: &str, prefix: &str, terms: Terms) -> Self {
        Self {
            store,
            place: place.into(),
            keys: Keys::below(prefix),
            terms,
            pins: Mutex::default(),
            sound: Mutex::default(),
            names: Mutex::default(),
            quotas: Quotas::default(),
        }
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock()
    }

    fn to_artifact_error(&self, error: &object_store::Error) -> ArtifactError {
        trouble::to_io_error(&self.place, error).into()
    }

    /// The longest that a run in use goes without its file being written anew.
    fn lag(&self) -> Duration {
        LAG.min(self.terms.ttl / 2)
    }

    /// Whether these bytes are known to be what the ref says.
    fn is_sound(&self, path: &Path, tag: Option<&str>) -> bool {
        let sound = self.sound.lock();
        tag.is_some() && sound.get(path).map(String::as_str) == tag
    }

    fn note_sound(&self, path: &Path, tag: Option<&str>) {
        let Some(tag) = tag else { return };
        let mut sound = self.sound.lock();
        if sound.len() >= REMEMBERED {
            sound.clear();
        }
        sound.insert(path.clone(), tag.to_owned());
    }

    fn forget_sound(&self, path: &Path) {
        let mut sound = self.sound.lock();
        sound.remove(path);
    }
}

/// Without the store, whose own form may show credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("place", &self.place)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

fn for_bytes(bytes: u64) -> Duration {
    LIMIT.saturating_add(Duration::from_secs(bytes >> 20))
}
