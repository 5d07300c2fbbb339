//! The run's artifacts as MCP resources: `artifact://RUN/REF`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactRef, ArtifactStore};
use haft::call::RunId;
use serde::Serialize;
use serde_json::json;

use crate::run::Run;
use crate::wire::RpcError;
use crate::wire::reply;

const SCHEME: &str = "artifact://";

/// The address of a run's artifact.
pub(crate) fn artifact_uri(run: &RunId, reference: &str) -> String {
    format!("{SCHEME}{run}/{reference}")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    uri: String,
    name: &'a str,
    mime_type: &'a str,
    size: u64,
}

/// Writes `"resources":[…]` with at most `size` artifacts after the cursor, and `nextCursor` where more follow.
pub(crate) async fn write_page(
    out: &mut Vec<u8>,
    run: &Run,
    cursor: Option<&str>,
    size: usize,
) -> Result<(), RpcError> {
    let owner = run.session.owner().clone();
    let list = move |store: &dyn ArtifactStore| store.list(&owner.principal, Some(&owner.run));
    let all = match with_store(run, list).await? {
        Some(Ok(all)) => all,
        Some(Err(error)) => return Err(store_failed(&error)),
        None => Vec::new(),
    };
    let first = match cursor {
        None => 0,
        Some(cursor) => {
            let found = all.iter().position(|a| a.reference.as_str() == cursor);
            found.map(|at| at + 1).ok_or_else(|| {
                RpcError::invalid_params("the cursor is not of this list: begin again")
            })?
        }
    };
    let page = &all[first..all.len().min(first.saturating_add(size.max(1)))];
    let listed = |info| listed(run.session.run(), info);
    let shown: Vec<Listed<'_>> = page.iter().map(listed).collect();
    out.extend_from_slice(b"\"resources\":");
    reply::json(out, &shown);
    if first + page.len() < all.len()
        && let Some(last) = page.last()
    {
        out.extend_from_slice(b",\"nextCursor\":");
        reply::json(out, last.reference.as_str());
    }
    Ok(())
}

fn listed<'a>(run: &RunId, info: &'a ArtifactInfo) -> Listed<'a> {
    Listed {
        uri: artifact_uri(run, info.reference.as_str()),
        name: info.reference.as_str(),
        mime_type: &info.media_type,
        size: info.bytes,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Contents<'a> {
    uri: &'a str,
    mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

/// Writes `"contents":[…]`: the artifact whole, as text where it is text. One over `limit` bytes is read in pieces with a tool.
pub(crate) async fn write_contents(
    out: &mut Vec<u8>,
    run: &Run,
    uri: &str,
    limit: u64,
) -> Result<(), RpcError> {
    let missing = || {
        let shown: String = uri.chars().take(256).collect();
        RpcError::new(
            run.era.missing_resource_code(),
            format!("no resource {shown} in this run"),
        )
        .with_data(json!({ "uri": shown }).to_string())
    };
    let reference = reference_of(run.session.run(), uri).ok_or_else(missing)?;
    let owner = run.session.owner().clone();
    let read = move |store: &dyn ArtifactStore| {
        let info = store.info(&owner, &reference)?;
        let bytes = if info.bytes > limit {
            Bytes::new()
        } else {
            store.read(&owner, &reference, 0..info.bytes)?
        };
        Ok((info, bytes))
    };
    let (info, bytes) = match with_store(run, read).await? {
        Some(Ok(found)) => found,
        Some(Err(ArtifactError::NotFound(_))) | None => return Err(missing()),
        Some(Err(error)) => return Err(store_failed(&error)),
    };
    if info.bytes > limit {
        let bytes = info.bytes;
        return Err(RpcError::invalid_params(format!(
            "the resource has {bytes} bytes, over {limit}: read it in pieces with the read_artifact tool"
        )));
    }
    out.extend_from_slice(b"\"contents\":");
    reply::json(out, &[contents(uri, &info, &bytes)]);
    Ok(())
}

/// Asks the run's store, which may block on a disk; `None` where the host keeps no artifacts.
async fn with_store<T: Send + 'static>(
    run: &Run,
    ask: impl FnOnce(&dyn ArtifactStore) -> T + Send + 'static,
) -> Result<Option<T>, RpcError> {
    let Some(store) = run.executor.artifacts().cloned() else {
        return Ok(None);
    };
    let asked = tokio::task::spawn_blocking(move || ask(&*store)).await;
    asked.map(Some).map_err(|error| {
        tracing::error!(%error, "artifact store");
        RpcError::new(RpcError::INTERNAL, "the artifact store failed")
    })
}

fn contents<'a>(uri: &'a str, info: &'a ArtifactInfo, bytes: &'a [u8]) -> Contents<'a> {
    let media_type = info.media_type.as_str();
    let text = is_text(media_type)
        .then(|| std::str::from_utf8(bytes).ok())
        .flatten();
    Contents {
        uri,
        mime_type: media_type,
        text,
        blob: text.is_none().then(|| STANDARD.encode(bytes)),
    }
}

fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || matches!(essence, "application/json" | "application/x-ndjson")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
}

/// The ref an address names, when it is of this run.
fn reference_of(run: &RunId, uri: &str) -> Option<ArtifactRef> {
    let (of, reference) = uri.strip_prefix(SCHEME)?.rsplit_once('/')?;
    (of == run.as_str())
        .then(|| ArtifactRef::parse(reference))
        .flatten()
}

fn store_failed(error: &ArtifactError) -> RpcError {
    tracing::error!(%error, "artifact store");
    RpcError::new(RpcError::INTERNAL, "the artifact store failed")
}
