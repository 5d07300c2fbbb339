//! Media of calls: images and sounds become files in the script's folder, and artifacts of the run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft::artifact::ArtifactRef;
use haft::context::CallContext;
use haft::result::{Content, Outcome};
use serde::Deserialize;

use crate::bridge::reply::MediaFile;
use crate::engine::Worker;
use crate::files;

/// Maximum size in bytes of an image or sound that becomes a file: the capacity of the folder.
const MOST: u64 = 64 << 20;

/// An image or a sound: its type, its bytes, and its ref if it is already stored.
struct MediaPiece {
    media_type: String,
    bytes: Bytes,
    reference: Option<ArtifactRef>,
}

/// Writes a call's media before the script gets the answer.
pub(super) async fn keep(
    context: &CallContext,
    worker: &dyn Worker,
    seq: u64,
    outcome: &Outcome,
) -> Vec<MediaFile> {
    let mut files = Vec::new();
    let mut index = 0;
    for content in &outcome.content {
        let Some(piece) = piece(context, content).await else {
            continue;
        };
        let name = files::media_name(&outcome.tool, seq, index, &piece.media_type);
        index += 1;
        if let Err(error) = files::write_media(worker.folder(), &name, &piece.bytes) {
            // The folder is the script's own: the script may have filled it or made it unusable.
            tracing::debug!(%error, name, "media of a call were not written");
            continue;
        }
        let size = piece.bytes.len() as u64;
        let reference = match (piece.reference, context.artifacts()) {
            (None, Ok(artifacts)) => artifacts.put(&piece.media_type, piece.bytes).await.ok(),
            (reference, _) => reference,
        };
        files.push(MediaFile {
            path: format!("{}/media/{name}", worker.folder_path()),
            media_type: piece.media_type,
            reference: reference.map_or_else(String::new, |r| r.as_str().to_owned()),
            bytes: size,
        });
    }
    files
}

async fn piece(context: &CallContext, content: &Content) -> Option<MediaPiece> {
    match content {
        Content::Image { data, mime_type } | Content::Audio { data, mime_type } => {
            Some(MediaPiece {
                media_type: mime_type.clone(),
                bytes: STANDARD.decode(data).ok()?.into(),
                reference: None,
            })
        }
        // Content too large to be returned was stored as an artifact.
        Content::ResourceLink {
            uri,
            mime_type: Some(media_type),
            ..
        } if media_type.starts_with("image/") || media_type.starts_with("audio/") => {
            let reference = uri.strip_prefix("artifact://")?.rsplit('/').next()?;
            let reference = ArtifactRef::parse(reference)?;
            let artifacts = context.artifacts().ok()?;
            Some(MediaPiece {
                media_type: media_type.clone(),
                bytes: artifacts.read(&reference, 0..MOST).await.ok()?,
                reference: Some(reference),
            })
        }
        Content::Text { .. } | Content::Resource { .. } | Content::ResourceLink { .. } => None,
    }
}

/// Writes the media of a recorded answer again, from their artifacts.
pub(super) async fn restore(context: &CallContext, worker: &dyn Worker, reply: &str) {
    #[derive(Deserialize)]
    struct ReplyFiles {
        #[serde(default)]
        files: Vec<MediaRef>,
    }
    #[derive(Deserialize)]
    struct MediaRef {
        path: String,
        #[serde(rename = "ref")]
        reference: String,
    }
    let Ok(ReplyFiles { files }) = serde_json::from_str(reply) else {
        return;
    };
    for file in files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let bytes = match (ArtifactRef::parse(&file.reference), context.artifacts()) {
            (Some(reference), Ok(artifacts)) => artifacts.read(&reference, 0..MOST).await.ok(),
            _ => None,
        };
        let written = bytes.map(|bytes| files::write_media(worker.folder(), name, &bytes));
        if !matches!(written, Some(Ok(()))) {
            tracing::debug!(name, "recorded media of a call were not written again");
        }
    }
}
