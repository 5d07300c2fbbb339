//! Storing: each artifact once per run, within the tenant's quota.

use std::sync::Arc;

use bytes::Bytes;
use haft::artifact::source::ByteSource;
use haft::artifact::{ArtifactError, ArtifactOwner, ArtifactRef};
use haft::clock;
use haft::future::run_blocking;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt as _, PutPayload};

use super::Bucket;
use super::keys::ObjectKeys;

/// Part size for larger artifacts: S3 takes up to 10,000 parts of at least 5 MiB.
const PART_BYTES: u64 = 8 << 20;

impl Bucket {
    pub(super) async fn put(
        &self,
        owner: &ArtifactOwner,
        reference: &ArtifactRef,
        media_type: &str,
        source: &Arc<dyn ByteSource>,
    ) -> Result<(), ArtifactError> {
        let size = source.size();
        self.quota().admit(size)?;
        let folder = self.keys.run(owner);
        let path = match self.find(owner, reference).await {
            Ok(kept) if kept.found == size && self.is_verified(&kept.path, kept.tag.as_deref()) => {
                return self.hold(owner, &folder).await;
            }
            // Its bytes may be damaged: store them again in the same place.
            Ok(kept) => kept.path,
            Err(ArtifactError::NotFound(_)) => {
                self.charge(owner, size).await?;
                let created = i64::try_from(clock::now()).unwrap_or(i64::MAX);
                ObjectKeys::fresh(&folder, reference, created, size, media_type)
            }
            Err(error) => return Err(error),
        };
        // Write the hold before the artifact that it protects.
        self.hold(owner, &folder).await?;
        let tag = if size <= PART_BYTES {
            let stored = self.store.put(&path, whole(source).await?.into()).await;
            stored.map_err(|e| self.to_artifact_error(&e))?.e_tag
        } else {
            self.put_in_parts(&path, source).await?
        };
        self.note_verified(&path, tag.as_deref());
        Ok(())
    }

    /// Stores a large source part by part; on failure, removes the parts already stored.
    async fn put_in_parts(
        &self,
        path: &Path,
        source: &Arc<dyn ByteSource>,
    ) -> Result<Option<String>, ArtifactError> {
        let started = self.store.put_multipart(path).await;
        let mut upload = started.map_err(|e| self.to_artifact_error(&e))?;
        let stored = self.each_part(&mut *upload, source).await;
        if stored.is_err() {
            // If the abort fails too, the server's own rules for incomplete uploads apply.
            let _ = upload.abort().await;
        }
        stored
    }

    async fn each_part(
        &self,
        upload: &mut dyn MultipartUpload,
        source: &Arc<dyn ByteSource>,
    ) -> Result<Option<String>, ArtifactError> {
        let mut at = 0;
        while at < source.size() {
            let read = Arc::clone(source);
            let part = run_blocking(move || part(&*read, at)).await??;
            at += part.content_length() as u64;
            let put = upload.put_part(part);
            put.await.map_err(|e| self.to_artifact_error(&e))?;
        }
        let stored = upload.complete().await;
        Ok(stored.map_err(|e| self.to_artifact_error(&e))?.e_tag)
    }
}

/// Reads a whole source on a thread that may block.
async fn whole(source: &Arc<dyn ByteSource>) -> std::io::Result<Bytes> {
    let source = Arc::clone(source);
    run_blocking(move || source.whole()).await?
}

/// Reads the part of a source that begins at `from`.
fn part(source: &dyn ByteSource, from: u64) -> std::io::Result<PutPayload> {
    let size = (source.size() - from).min(PART_BYTES);
    let mut part = vec![0; usize::try_from(size).map_err(std::io::Error::other)?];
    let mut filled = 0;
    while filled < part.len() {
        match source.read_at(from + filled as u64, &mut part[filled..])? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(part.into())
}
