//! Reading: an artifact whole until its hash is checked, then ranges of it.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use haft::artifact::{ArtifactError, ArtifactOwner, ArtifactRef};
use object_store::GetOptions;

use super::Bucket;
use super::keys::StoredObject;

/// Up to this size, the first read fetches the whole artifact, whatever the range, and checks its hash: 8 MiB.
const WHOLE_READ_BYTES: u64 = 8 << 20;

impl Bucket {
    pub(super) async fn read(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        let kept = self.find(owner, reference).await?;
        if kept.found != kept.bytes {
            return Err(damaged_artifact(&kept));
        }
        let end = range.end.min(kept.bytes);
        let start = range.start.min(end);
        let sound = self.is_verified(&kept.path, kept.tag.as_deref());
        let whole = end - start == kept.bytes;
        if !sound && (whole || kept.bytes <= WHOLE_READ_BYTES) {
            let bytes = self.read_whole(&kept).await?;
            let place = |n: u64| usize::try_from(n).unwrap_or(bytes.len());
            return Ok(bytes.slice(place(start)..place(end)));
        }
        self.fetch(&kept, start..end).await
    }

    async fn read_whole(&self, stored: &StoredObject) -> Result<Bytes, ArtifactError> {
        let bytes = self.fetch(stored, 0..stored.bytes).await?;
        if ArtifactRef::of(&bytes) != stored.reference {
            self.forget_verified(&stored.path);
            return Err(damaged_artifact(stored));
        }
        self.note_verified(&stored.path, stored.tag.as_deref());
        Ok(bytes)
    }

    async fn fetch(
        &self,
        stored: &StoredObject,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        let wanted = usize::try_from(range.end - range.start).map_err(std::io::Error::other)?;
        if wanted == 0 {
            return Ok(Bytes::new());
        }
        let options = GetOptions {
            range: Some(range.into()),
            ..GetOptions::default()
        };
        let failed = |error: &object_store::Error| match error {
            // The artifact expired between the two requests.
            object_store::Error::NotFound { .. } => not_found(&stored.reference),
            error => self.to_artifact_error(error),
        };
        let found = self.store.get_opts(&stored.path, options).await;
        let mut stream = found.map_err(|e| failed(&e))?.into_stream();
        let mut bytes = BytesMut::with_capacity(wanted);
        while let Some(piece) = stream.try_next().await.map_err(|e| failed(&e))? {
            if bytes.len() + piece.len() > wanted {
                return Err(damaged_artifact(stored));
            }
            bytes.extend_from_slice(&piece);
        }
        if bytes.len() != wanted {
            return Err(damaged_artifact(stored));
        }
        Ok(bytes.freeze())
    }
}

pub(super) fn not_found(reference: &ArtifactRef) -> ArtifactError {
    ArtifactError::NotFound(reference.as_str().to_owned())
}

fn damaged_artifact(stored: &StoredObject) -> ArtifactError {
    ArtifactError::Damaged(stored.reference.as_str().to_owned())
}
