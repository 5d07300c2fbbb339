//! Artifacts: large results, named by the hash of their bytes and owned by runs.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::artifact::quota::{QuotaExceeded, QuotaUsage};
use crate::artifact::source::ByteSource;
use crate::call::{Principal, RunId};
use crate::future::BoxFuture;
use haft_types::opaque_debug;

pub mod dir;
pub mod memory;
pub mod quota;
pub mod reference;
pub mod source;

pub use reference::ArtifactRef;

#[cfg(test)]
mod tests;

/// The owner of a ref. Runs of different tenants never see each other's artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArtifactOwner {
    /// The principal that the run works for.
    pub principal: Principal,
    /// The run.
    pub run: RunId,
}

/// Metadata of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactInfo {
    /// Its ref.
    #[serde(rename = "ref")]
    pub reference: ArtifactRef,
    /// Its media type.
    pub media_type: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The run that created it.
    pub run: RunId,
    /// When it was created, RFC 3339 UTC.
    pub created: String,
}

/// The reason why an artifact could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// This run has no such artifact. The error does not say whether another run has it.
    #[error("no artifact {0} in this run")]
    NotFound(String),
    /// Runs in use hold too much of the tenant's quota.
    #[error(
        "an artifact of {bytes} bytes does not fit: active runs hold all but {left} bytes of the quota"
    )]
    Quota {
        /// Its size in bytes.
        bytes: u64,
        /// The bytes that could be stored after removing everything that no run in use holds.
        left: u64,
    },
    /// The bytes on disk differ from those that were stored.
    #[error("artifact {0} is damaged: its bytes no longer match its hash")]
    Damaged(String),
    /// The store's disk or server failed.
    #[error("artifact store: {0}")]
    Io(#[from] std::io::Error),
}

impl From<QuotaExceeded> for ArtifactError {
    fn from(full: QuotaExceeded) -> Self {
        Self::Quota {
            bytes: full.bytes,
            left: full.left,
        }
    }
}

/// The future of a store's result.
pub type ArtifactFuture<'a, T> = BoxFuture<'a, Result<T, ArtifactError>>;

/// Stores artifacts: on disk, in a bucket, in memory.
///
/// Callers await the result on a thread that also runs other tasks, so a store never blocks there: it answers at once
/// from memory, awaits its server, or works elsewhere ([`run_blocking`](crate::future::run_blocking)). The store must limit how
/// long it takes: a call whose result is being stored waits for it.
///
/// A waiting caller may be dropped, for example when its client disconnects. The store must then finish storing: an
/// artifact is stored completely or not at all. A store on a network therefore runs the work in its own task, started by the
/// call and not by the first poll of the future:
///
/// ```
/// use std::sync::Arc;
///
/// use haft::artifact::source::ByteSource;
/// use haft::artifact::{ArtifactFuture, ArtifactError, ArtifactRef, ArtifactOwner};
/// # async fn upload(owner: ArtifactOwner, media_type: String, source: Arc<dyn ByteSource>) -> Result<ArtifactRef, ArtifactError> {
/// #     ArtifactRef::of_source(&*source).map_err(ArtifactError::from)
/// # }
///
/// fn put_from<'a>(owner: &ArtifactOwner, media_type: &str, source: Arc<dyn ByteSource>) -> ArtifactFuture<'a, ArtifactRef> {
///     let upload = tokio::spawn(upload(owner.clone(), media_type.to_owned(), source));
///     Box::pin(async move { upload.await.map_err(std::io::Error::other)? })
/// }
/// ```
pub trait ArtifactStore: Send + Sync {
    /// Stores bytes for an owner; stores identical bytes once. If the tenant's quota is used up, removes its oldest
    /// artifacts that no run in use holds. The store completes the operation even if the future is dropped.
    ///
    /// # Errors
    /// [`ArtifactError::Quota`] if runs in use hold too much; errors of the store's disk or server.
    fn put<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        bytes: Bytes,
    ) -> ArtifactFuture<'a, ArtifactRef> {
        self.put_from(owner, media_type, Arc::new(bytes))
    }

    /// Does the same for data that may not fit in memory. Reading the source may block.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and errors of reading the source.
    fn put_from<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        source: Arc<dyn ByteSource>,
    ) -> ArtifactFuture<'a, ArtifactRef>;

    /// Returns how much of its quota a principal's tenant uses.
    ///
    /// # Errors
    /// Errors of the store's disk or server.
    fn usage<'a>(&'a self, principal: &'a Principal) -> ArtifactFuture<'a, QuotaUsage>;

    /// Returns the metadata of an owner's artifact.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] if the owner has no such artifact, [`ArtifactError::Io`] if the store cannot be read.
    fn info<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
    ) -> ArtifactFuture<'a, ArtifactInfo>;

    /// Returns the bytes in `range` (clipped to the artifact's end) of an owner's artifact.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] if the owner has no such artifact,
    /// [`ArtifactError::Damaged`] if its bytes do not match its hash, [`ArtifactError::Io`] if the store cannot be read.
    fn read<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> ArtifactFuture<'a, Bytes>;

    /// Pins everything of an owner while its session lives: pinned artifacts do not expire. A run starts with this call and does
    /// not wait: a store on a network records it locally and informs its server in its own task.
    fn pin(&self, owner: &ArtifactOwner);

    /// Ends what `pin` started, in the same way; the time to live starts now.
    fn unpin(&self, owner: &ArtifactOwner);

    /// Returns all artifacts of a principal, newest first; only those of one run if given.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] if the store cannot be read.
    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> ArtifactFuture<'a, Vec<ArtifactInfo>>;
}

opaque_debug!(ArtifactStore);
