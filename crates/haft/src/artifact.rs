//! Artifacts: big results kept aside, named by the hash of their bytes, owned by runs.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::artifact::quota::{Full, Usage};
use crate::artifact::source::Source;
use crate::call::{Principal, RunId};
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

/// Where artifacts are kept. Calls are short and may block on a disk; the executor calls them off its hot path.
pub trait ArtifactStore: Send + Sync {
    /// Keeps bytes for an owner; the same bytes twice are kept once. Where the tenant's quota is used up, its oldest
    /// artifacts that no run in use holds go first.
    ///
    /// # Errors
    /// [`ArtifactError::Quota`] where runs in use hold too much; what the store's disk or server says.
    fn put(
        &self,
        owner: &Owner,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<ArtifactRef, ArtifactError> {
        self.put_from(owner, media_type, Arc::new(bytes))
    }

    /// The same for what may be too large to be in memory.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and what reading the source says.
    fn put_from(
        &self,
        owner: &Owner,
        media_type: &str,
        source: Arc<dyn Source>,
    ) -> Result<ArtifactRef, ArtifactError>;

    /// What a principal's tenant has of its quota.
    ///
    /// # Errors
    /// What the store's disk or server says.
    fn usage(&self, principal: &Principal) -> Result<Usage, ArtifactError>;

    /// What is known of an owner's artifact.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] where the owner has no such artifact, [`ArtifactError::Io`] where the store cannot be read.
    fn info(&self, owner: &Owner, reference: &ArtifactRef) -> Result<ArtifactInfo, ArtifactError>;

    /// Bytes `range` (clipped to the artifact's end) of an owner's artifact.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] where the owner has no such artifact,
    /// [`ArtifactError::Damaged`] where its bytes do not match its hash, [`ArtifactError::Io`] where the store cannot be read.
    fn read(
        &self,
        owner: &Owner,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError>;

    /// Holds everything of an owner while its session lives: pinned artifacts do not expire.
    fn pin(&self, owner: &Owner);

    /// Ends what `pin` began; from now on the time to live counts.
    fn unpin(&self, owner: &Owner);

    /// All artifacts of a principal, newest first; of one run where given.
    ///
    /// # Errors
    /// [`ArtifactError::Io`] where the store cannot be read.
    fn list(
        &self,
        principal: &Principal,
        run: Option<&RunId>,
    ) -> Result<Vec<ArtifactInfo>, ArtifactError>;
}

opaque_debug!(ArtifactStore);
