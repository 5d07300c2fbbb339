//! Requests of a script about artifacts. A store may be slow: the script's calls continue meanwhile.

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use haft::artifact::{ArtifactError, ArtifactRef};
use haft::context::{CallContext, RunArtifacts};
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::text::clip;

use crate::bridge::{RANGE, reply};

/// Maximum number of requests at once. At that number, no message of the script is read: each may hold megabytes.
pub(super) const AT_ONCE: usize = 4;

/// The requests in progress.
pub(super) type ArtifactRequests = FuturesUnordered<BoxFuture<'static, ArtifactResponse>>;

pub(super) struct ArtifactResponse {
    /// The id of the request.
    pub(super) id: u32,
    /// Its answer, or the error.
    pub(super) answer: Result<ArtifactAnswer, ToolError>,
}

pub(super) enum ArtifactAnswer {
    /// The description of an artifact, as JSON.
    Artifact(String),
    /// A range of an artifact.
    Bytes(Bytes),
}

/// A request about the run's artifacts.
pub(super) enum ArtifactRequest {
    /// Stores bytes.
    Put { media_type: String, bytes: Bytes },
    /// Reads a range of bytes.
    Read {
        reference: String,
        offset: u64,
        length: u64,
    },
    /// Queries an artifact.
    Info { reference: String },
}

impl ArtifactRequest {
    /// Starts answering it.
    pub(super) fn begin(
        self,
        id: u32,
        context: &CallContext,
    ) -> BoxFuture<'static, ArtifactResponse> {
        let artifacts = context.artifacts();
        Box::pin(async move {
            let answer = match artifacts {
                Ok(artifacts) => self.answer(&artifacts).await,
                Err(error) => Err(error),
            };
            ArtifactResponse { id, answer }
        })
    }

    async fn answer(self, artifacts: &RunArtifacts) -> Result<ArtifactAnswer, ToolError> {
        match self {
            Self::Put { media_type, bytes } => {
                let size = bytes.len() as u64;
                let stored = artifacts.put(&media_type, bytes).await;
                let failed = |error| ToolError::failed(format!("keep an artifact: {error}"));
                let stored = stored.map_err(failed)?;
                let artifact = reply::artifact(stored.as_str(), &media_type, size);
                Ok(ArtifactAnswer::Artifact(artifact))
            }
            Self::Read {
                reference,
                offset,
                length,
            } => {
                let reference = known(&reference)?;
                let end = offset.saturating_add(length.min(RANGE));
                let read = artifacts.read(&reference, offset..end).await;
                read.map(ArtifactAnswer::Bytes)
                    .map_err(|error| absent(&error))
            }
            Self::Info { reference } => {
                let info = artifacts.info(&known(&reference)?).await;
                let info = info.map_err(|error| absent(&error))?;
                let name = info.reference.as_str();
                let artifact = reply::artifact(name, &info.media_type, info.bytes);
                Ok(ArtifactAnswer::Artifact(artifact))
            }
        }
    }
}

fn absent(error: &ArtifactError) -> ToolError {
    ToolError::not_found(error.to_string())
}

/// Parses a ref that a script wrote.
fn known(reference: &str) -> Result<ArtifactRef, ToolError> {
    ArtifactRef::parse(reference).ok_or_else(|| {
        let shown = clip(reference, 80);
        ToolError::not_found(format!("no artifact {shown:?}"))
    })
}
