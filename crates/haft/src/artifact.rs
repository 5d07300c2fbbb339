//! Artifacts: big results kept aside, named by the hash of their bytes, owned by runs.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::artifact::quota::{Full, Usage};
use crate::artifact::source::Source;
use crate::call::{Principal, RunId};
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;

pub mod dir;
pub mod memory;
pub mod quota;
pub mod reference;
pub mod source;

pub use reference::ArtifactRef;

#[cfg(test)]
mod tests;

/// Whose artifacts: the owner of a ref. Two runs of other tenants never see each other's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// For whom the run works.
    pub principal: Principal,
    /// The run.
    pub run: RunId,
}

/// What is known of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactInfo {
    /// Its ref.
    #[serde(rename = "ref")]
    pub reference: ArtifactRef,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// The run that made it.
    pub run: RunId,
    /// When, RFC 3339 UTC.
    pub created: String,
}

/// Why an artifact could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// This run has no such artifact (it may be another run's: that is not said).
    #[error("no artifact {0} in this run")]
    NotFound(String),
    /// The tenant's quota is used up by what runs in use hold.
    #[error(
        "an artifact of {bytes} bytes does not fit: runs in use hold all but {left} bytes of the quota"
    )]
    Quota {
        /// Its size.
        bytes: u64,
        /// What may still be stored, once all has gone that no run in use holds.
        left: u64,
    },
    /// The bytes on disk are not those that were stored.
    #[error("artifact {0} is damaged: its bytes no longer match its hash")]
    Damaged(String),
    /// The store's disk or server failed.
    #[error("artifact store: {0}")]
    Io(#[from] std::io::Error),
}

impl From<Full> for ArtifactError {
    fn from(full: Full) -> Self {
        Self::Quota {
            bytes: full.bytes,
            left: full.left,
        }
    }
}

/// The future of a store's answer.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, ArtifactError>>;

/// Stores artifacts: on a disk, in a bucket, in memory.
///
/// A caller awaits the answers on a thread that runs other tasks, too. So a store never blocks there: it answers at once
/// from memory, awaits its server, or works elsewhere ([`run_blocking`](crate::future::run_blocking)). How long an answer may
/// take is the store's to bound: a call whose result is being stored waits for it.
///
/// A caller may be dropped while it waits, as its client hung up. What is being stored is then finished by the store: an
/// artifact is there whole or not at all. A store on a network therefore gives the work to a task of its own, begun by the
/// call and not by the first poll of the answer:
///
/// ```
/// use std::sync::Arc;
///
/// use haft::artifact::source::Source;
/// use haft::artifact::{Answer, ArtifactError, ArtifactRef, Owner};
/// # async fn upload(owner: Owner, media_type: String, source: Arc<dyn Source>) -> Result<ArtifactRef, ArtifactError> {
/// #     ArtifactRef::of_source(&*source).map_err(ArtifactError::from)
/// # }
///
/// fn put_from<'a>(owner: &Owner, media_type: &str, source: Arc<dyn Source>) -> Answer<'a, ArtifactRef> {
///     let upload = tokio::spawn(upload(owner.clone(), media_type.to_owned(), source));
///     Box::pin(async move { upload.await.map_err(std::io::Error::other)? })
/// }
/// ```
pub trait ArtifactStore: Send + Sync {
    /// Stores bytes for an owner; the same bytes twice are stored once. Where the tenant's quota is used up, its oldest
    /// artifacts that no run in use holds go first. The store finishes it where the answer is dropped.
    ///
    /// # Errors
    /// [`ArtifactError::Quota`] where runs in use hold too much; what the store's disk or server says.
    fn put<'a>(
        &'a self,
        owner: &'a Owner,
        media_type: &'a str,
        bytes: Bytes,
    ) -> Answer<'a, ArtifactRef> {
        self.put_from(owner, media_type, Arc::new(bytes))
    }

    /// The same for what may be too large to be in memory. The source may block when it is read.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and what reading the source says.
    fn put_from<'a>(
        &'a self,
        owner: &'a Owner,
        media_type: &'a str,
        source: Arc<dyn Source>,
    ) -> Answer<'a, ArtifactRef>;

    /// What a principal's tenant has of its quota.
    ///
    /// # Errors
    /// What the store's disk or server says.
    fn usage<'a>(&'a self, principal: &'a Principal) -> Answer<'a, Usage>;

    /// What is known of an owner's artifact.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] where the owner has no such artifact, [`ArtifactError::Io`] where the store cannot be read.
    fn info<'a>(&'a self, owner: &'a Owner, reference: &'a ArtifactRef)
    -> Answer<'a, ArtifactInfo>;

    /// Bytes `range` (clipped to the artifact's end) of an owner's artifact.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] where the owner has no such artifact,
    /// [`ArtifactError::Damaged`] where its bytes do not match its hash, [`ArtifactError::Io`] where the store cannot be read.
    fn read<'a>(
        &'a self,
        owner: &'a Owner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> Answer<'a, Bytes>;

    /// Holds everything of an owner while its session lives: pinned artifacts do not expire. A run begins with it and does
    /// not wait: a store on a network notes it here and tells its server in a task of its own.
    fn pin(&self, owner: &Owner);

    /// Ends what `pin` began, in the same way; from now on the time to live counts.
    fn unpin(&self, owner: &Owner);

    /// All artifacts of a principal, newest first; of one run where given.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] where the store cannot be read.
    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> Answer<'a, Vec<ArtifactInfo>>;
}

opaque_debug!(ArtifactStore);
