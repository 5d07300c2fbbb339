//! Images and audio: those over the limit are stored and linked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::result::Content;

use super::Shaper;
use super::notice::FullCopy;

/// Longest media type that is taken over, in bytes. A longer one is cut: a server may send any text as one.
const MAX_TYPE: usize = 128;

/// Returns the size of the data that a base64 text encodes.
fn size(data: &str) -> usize {
    data.len() / 4 * 3
}

/// Returns the total size of all images and audio.
pub(super) fn total(content: &[Content]) -> usize {
    let sizes = content.iter().map(|piece| match piece {
        Content::Image { data, .. } | Content::Audio { data, .. } => size(data),
        Content::Text { .. } | Content::Resource { .. } | Content::ResourceLink { .. } => 0,
    });
    sizes.sum()
}

impl Shaper<'_> {
    /// Replaces each image or audio that exceeds what the ones before it left of the limit.
    pub(super) async fn media(&mut self, content: Vec<Content>) -> Vec<Content> {
        let mut left = self.bounds.media_bytes;
        let mut shaped = Vec::with_capacity(content.len());
        for piece in content {
            shaped.push(match piece {
                Content::Image { data, mime_type } | Content::Audio { data, mime_type }
                    if size(&data) > left =>
                {
                    self.move_to_artifact(&data, &mime_type).await
                }
                Content::Image { ref data, .. } | Content::Audio { ref data, .. } => {
                    left -= size(data);
                    piece
                }
                other => other,
            });
        }
        shaped
    }

    async fn move_to_artifact(&mut self, data: &str, mime_type: &str) -> Content {
        let mime_type = &mime_type[..mime_type.floor_char_boundary(MAX_TYPE)];
        let bytes = STANDARD.decode(data);
        let bytes = bytes.map_or_else(|_| Bytes::copy_from_slice(data.as_bytes()), Bytes::from);
        match self.keep(mime_type, &bytes).await {
            FullCopy::Kept(reference) => Content::ResourceLink {
                uri: format!("artifact://{}/{reference}", self.bounds.run),
                name: reference,
                mime_type: Some(mime_type.to_owned()),
                bytes: Some(bytes.len() as u64),
            },
            FullCopy::Cut | FullCopy::Lost(_) => {
                let limit = self.bounds.media_bytes;
                let size = bytes.len();
                Content::text(format!(
                    "[{mime_type} of {size} bytes left out: over the limit of {limit} bytes]"
                ))
            }
        }
    }
}
