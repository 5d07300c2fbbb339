//! Reading: an artifact whole until its hash is checked, then ranges of it.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use haft::artifact::{ArtifactError, ArtifactRef, Owner};
use object_store::GetOptions;

use super::Bucket;
use super::keys::StoredObject;

/// Up to this size, the first read fetches the whole artifact, whatever the range, and checks its hash: 8 MiB.
const CHECKED: u64 = 8 << 20;

impl Bucket {
    pub(super) async fn read(
        &self,
        owner: &Owner,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        let kept = self.find(owner, reference).await?;
        if kept.found != kept.bytes {
            return Err(damaged(&kept));
        }
        let end = range.end.min(kept.bytes);
        let start = range.start.min(end);
        let sound = self.is_sound(&kept.path, kept.tag.as_deref());
        let whole = end - start == kept.bytes;
        if !sound && (whole || kept.bytes <= CHECKED) {
            let bytes = self.read_whole(&kept).await?;
            let place = |n: u64| usize::try_from(n).unwrap_or(bytes.len());
            return Ok(bytes.slice(place(start)..place(end)));
        }
        self.fetch(&kept, start..end).await
    }

    async fn read_whole(&self, kept: &StoredObject) -> Result<Bytes, ArtifactError> {
        let bytes = self.fetch(kept, 0..kept.bytes).await?;
        if ArtifactRef::of(&bytes) != kept.reference {
            self.forget_sound(&kept.path);
            return Err(damaged(kept));
        }
        self.note_sound(&kept.path, kept.tag.as_deref());
        Ok(bytes)
    }

    async fn fetch(&self, kept: &StoredObject, range: Range<u64>) -> Result<Bytes, ArtifactError> {
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
            object_store::Error::NotFound { .. } => not_found(&kept.reference),
            error => self.to_artifact_error(error),
        };
        let found = self.store.get_opts(&kept.path, options).await;
        let mut stream = found.map_err(|e| failed(&e))?.into_stream();
        let mut bytes = BytesMut::with_capacity(wanted);
        while let Some(piece) = stream.try_next().await.map_err(|e| failed(&e))? {
            if bytes.len() + piece.len() > wanted {
                return Err(damaged(kept));
            }
            bytes.extend_from_slice(&piece);
        }
        if bytes.len() != wanted {
            return Err(damaged(kept));
        }
        Ok(bytes.freeze())
    }
}

pub(super) fn not_found(reference: &ArtifactRef) -> ArtifactError {
    ArtifactError::NotFound(reference.as_str().to_owned())
}

fn damaged(kept: &StoredObject) -> ArtifactError {
    ArtifactError::Damaged(kept.reference.as_str().to_owned())
}
