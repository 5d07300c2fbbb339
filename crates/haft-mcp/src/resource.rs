//! A run's MCP resources: the files of skills (`skill://NAME/…`), then its artifacts (`artifact://RUN/REF`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haft::artifact::{ArtifactError, ArtifactInfo, ArtifactRef};
use haft::call::RunId;
use serde::Serialize;

pub(crate) mod page;

use crate::offered;
use crate::own::{ARTIFACTS, SKILLS, artifact_uri, is_own};
use crate::resource_entry::{ResourceEntry, missing};
use crate::run::ClientRun;
use crate::skill;
use crate::wire::RpcError;
use crate::wire::reply;

/// How long a client may cache an artifact: its name is the hash of its bytes.
const ARTIFACT_TTL_MS: u64 = 3_600_000;
/// How long a client may cache a skill's file, which its author may be editing.
const SKILL_TTL_MS: u64 = 5_000;

/// Returns how long a client may cache the content of a URI.
pub(crate) fn ttl_ms(uri: &str) -> u64 {
    if uri.starts_with(ARTIFACTS) {
        ARTIFACT_TTL_MS
    } else {
        SKILL_TTL_MS
    }
}

/// Writes `"resources":[…]` with at most `size` skills, artifacts and host resources after the cursor, and `nextCursor` if more follow.
pub(crate) async fn write_page(
    out: &mut Vec<u8>,
    run: &ClientRun,
    cursor: Option<&str>,
    size: usize,
) -> Result<(), RpcError> {
    let owner = run.session.owner();
    let artifacts = match run.executor.artifacts() {
        Some(store) => store.list(&owner.principal, Some(&owner.run)).await,
        None => Ok(Vec::new()),
    };
    let artifacts = artifacts.map_err(|error| store_failed(&error))?;
    let mut own = skill::listed(run).await?;
    own.extend(artifacts.iter().map(|info| listed(run.session.run(), info)));
    let own = own.iter().map(|item| offered::entry(item.cursor(), item));
    let offered = match run.offer() {
        Some(offer) => offer.resources(&run.session).await,
        None => Ok(Vec::new()),
    };
    let all = offered::join(own.collect(), offered, is_own)?;
    offered::write_page(out, "resources", &all, cursor, size)
}

/// Writes `"resourceTemplates":[…]`: the template of skill files, if there is a skill, then the host's templates.
pub(crate) async fn write_templates(
    out: &mut Vec<u8>,
    run: &ClientRun,
    cursor: Option<&str>,
    size: usize,
) -> Result<(), RpcError> {
    let own = skill::template(run).await?;
    let offered = match run.offer() {
        Some(offer) => offer.templates(&run.session).await,
        None => Ok(Vec::new()),
    };
    let all = offered::join(own.into_iter().collect(), offered, is_own)?;
    offered::write_page(out, "resourceTemplates", &all, cursor, size)
}

fn listed(run: &RunId, info: &ArtifactInfo) -> ResourceEntry {
    ResourceEntry {
        uri: artifact_uri(run, info.reference.as_str()),
        name: info.reference.as_str().to_owned(),
        description: None,
        mime_type: info.media_type.clone(),
        size: Some(info.bytes),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceContents<'a> {
    uri: &'a str,
    mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

/// Writes `"contents":[…]`: the whole artifact, as text if it is text. A tool reads one over `limit` bytes in pieces.
pub(crate) async fn write_contents(
    out: &mut Vec<u8>,
    run: &ClientRun,
    uri: &str,
    limit: u64,
) -> Result<(), RpcError> {
    if uri.starts_with(SKILLS) {
        let (media_type, bytes) = skill::read(run, uri, limit).await?;
        return encode(out, uri, media_type, bytes.into()).await;
    }
    let missing = || missing(run, uri);
    let reference = reference_of(run.session.run(), uri).ok_or_else(missing)?;
    let store = run.executor.artifacts().ok_or_else(missing)?;
    let owner = run.session.owner();
    let failed = |error| match error {
        ArtifactError::NotFound(_) => missing(),
        other => store_failed(&other),
    };
    let info = store.info(owner, &reference).await.map_err(failed)?;
    if info.bytes > limit {
        let bytes = info.bytes;
        return Err(RpcError::invalid_params(format!(
            "the resource has {bytes} bytes, over {limit}: read it in pieces with the read_artifact tool"
        )));
    }
    let bytes = store.read(owner, &reference, 0..info.bytes).await;
    let bytes = bytes.map_err(failed)?;
    encode(out, uri, info.media_type, bytes).await
}

/// Writes `"contents":[…]`. Runs on a blocking thread: encoding megabytes would hold up every other request on this one.
async fn encode(
    out: &mut Vec<u8>,
    uri: &str,
    media_type: String,
    bytes: Bytes,
) -> Result<(), RpcError> {
    let uri = uri.to_owned();
    let encoded = tokio::task::spawn_blocking(move || {
        let mut json = Vec::new();
        reply::json(&mut json, &[contents(&uri, &media_type, &bytes)]);
        json
    });
    let encoded = encoded.await.map_err(|error| {
        tracing::error!(%error, "write a resource as JSON");
        RpcError::new(RpcError::INTERNAL, "the resource could not be written")
    })?;
    out.extend_from_slice(b"\"contents\":");
    out.extend_from_slice(&encoded);
    Ok(())
}

fn contents<'a>(uri: &'a str, media_type: &'a str, bytes: &'a [u8]) -> ResourceContents<'a> {
    let text = is_text(media_type)
        .then(|| std::str::from_utf8(bytes).ok())
        .flatten();
    ResourceContents {
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

/// Returns the ref that a URI names, if it is of this run.
fn reference_of(run: &RunId, uri: &str) -> Option<ArtifactRef> {
    let (of, reference) = uri.strip_prefix(ARTIFACTS)?.rsplit_once('/')?;
    (of == run.as_str())
        .then(|| ArtifactRef::parse(reference))
        .flatten()
}

fn store_failed(error: &ArtifactError) -> RpcError {
    tracing::error!(%error, "artifact store");
    RpcError::new(RpcError::INTERNAL, "the artifact store failed")
}
