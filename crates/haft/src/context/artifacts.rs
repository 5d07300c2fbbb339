//! `RunArtifacts`: the artifacts of one run.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::artifact::source::ByteSource;
use crate::artifact::{ArtifactError, ArtifactInfo, ArtifactOwner, ArtifactRef, ArtifactStore};

/// The artifacts of one run.
#[derive(Debug, Clone)]
pub struct RunArtifacts {
    pub(super) store: Arc<dyn ArtifactStore>,
    pub(super) owner: ArtifactOwner,
}

impl RunArtifacts {
    /// Stores bytes for this run. If the call is dropped, the store still completes the write.
    ///
    /// # Errors
    /// [`ArtifactError::Quota`] if runs in use fill the store, [`ArtifactError::Io`] if it cannot be written.
    pub async fn put(&self, media_type: &str, bytes: Bytes) -> Result<ArtifactRef, ArtifactError> {
        self.store.put(&self.owner, media_type, bytes).await
    }

    /// Stores a source that may be too large for memory.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and [`ArtifactError::Io`] if the source cannot be read.
    pub async fn put_from(
        &self,
        media_type: &str,
        source: Arc<dyn ByteSource>,
    ) -> Result<ArtifactRef, ArtifactError> {
        self.store.put_from(&self.owner, media_type, source).await
    }

    /// Returns the metadata of one of the run's artifacts.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] if this run has no such artifact, [`ArtifactError::Io`] if the store cannot be read.
    pub async fn info(&self, reference: &ArtifactRef) -> Result<ArtifactInfo, ArtifactError> {
        self.store.info(&self.owner, reference).await
    }

    /// Reads bytes of one of the run's artifacts.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] if this run has no such artifact, [`ArtifactError::Damaged`] if its bytes do not match its hash,
    /// [`ArtifactError::Io`] if the store cannot be read.
    pub async fn read(
        &self,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        self.store.read(&self.owner, reference, range).await
    }
}
