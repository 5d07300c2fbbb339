//! Storing: once for each run, within the tenant's quota.

use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactRef, Owner};
use haft::clock;
use object_store::ObjectStoreExt as _;

use super::Bucket;
use super::keys::Keys;

impl Bucket {
    pub(super) async fn put(
        &self,
        owner: &Owner,
        media_type: &str,
        bytes: Bytes,
    ) -> Result<ArtifactRef, ArtifactError> {
        let reference = ArtifactRef::of(&bytes);
        let size = bytes.len() as u64;
        if size > self.terms.quota {
            return Err(ArtifactError::Quota {
                bytes: size,
                left: self.terms.quota,
            });
        }
        let folder = self.keys.run(owner);
        let path = match self.find(owner, &reference).await {
            Ok(kept) if kept.found == size && self.is_sound(&kept.path, kept.tag.as_deref()) => {
                self.hold(owner, &folder).await?;
                return Ok(reference);
            }
            // Its bytes may be damaged: stored again, in the same place.
            Ok(kept) => kept.path,
            Err(ArtifactError::NotFound(_)) => {
                self.charge(owner, size).await?;
                let created = i64::try_from(clock::now()).unwrap_or(i64::MAX);
                Keys::fresh(&folder, (&reference, created), size, media_type)
            }
            Err(error) => return Err(error),
        };
        // First the word that holds it, then what is held.
        self.hold(owner, &folder).await?;
        let stored = self.store.put(&path, bytes.into()).await;
        let stored = stored.map_err(|e| self.told(&e))?;
        self.note_sound(&path, stored.e_tag.as_deref());
        Ok(reference)
    }
}
