//! Binds refs: replaces refs in a call's arguments with the artifacts they name, before the call is judged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::artifact::{ArtifactError, ArtifactRef};
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::early_end::EarlyEnd;
use crate::executor::refs::find::{REF_MEMBER, RefEncoding, accepted_kind};
use crate::json::scan;
use crate::session::Session;
use crate::text::clip;
use crate::toolset::ToolEntry;

mod find;

pub(super) use find::{RefObject, find};
#[cfg(test)]
mod tests;

/// Maximum total size, in bytes, of the artifacts bound into one call's arguments.
pub(super) const MAX_BOUND: u64 = 256 << 20;

/// Returns the text with every ref in it replaced by the artifact it names, in the form that the tool's schema takes. A ref that
/// names no artifact of this run is an error and is never passed on.
pub(super) async fn bind(
    parts: &ExecutorParts,
    session: &Session,
    entry: &ToolEntry,
    text: &str,
    found: &[RefObject],
) -> Result<String, EarlyEnd> {
    let mut bound = String::with_capacity(text.len());
    let (mut total, mut left) = (0, MAX_BOUND);
    for one in found {
        let (artifact, media_type) = read(parts, session, one, &mut left).await?;
        bound.push_str(text.get(total..one.span.start).unwrap_or_default());
        bound.push_str(&written(entry, one, &artifact, &media_type)?);
        total = one.span.end;
    }
    bound.push_str(text.get(total..).unwrap_or_default());
    Ok(bound)
}

fn wrong(at: &RefObject, what: impl std::fmt::Display) -> EarlyEnd {
    let message = format!("argument {}: {what}", at.pointer());
    EarlyEnd::failed(ErrorKind::InvalidArguments, message)
}

/// Reads an artifact's bytes and media type.
async fn read(
    parts: &ExecutorParts,
    session: &Session,
    at: &RefObject,
    left: &mut u64,
) -> Result<(Bytes, String), EarlyEnd> {
    let Some(named) = &at.reference else {
        let form = format!("{{\"{REF_MEMBER}\": \"sha256-…\"}} and nothing else");
        return Err(wrong(at, format_args!("a ref is {form}")));
    };
    let Some(store) = &parts.artifacts else {
        let message = "this host has no artifact store";
        return Err(EarlyEnd::failed(ErrorKind::Unavailable, message));
    };
    let missing = |error: ArtifactError| match error {
        ArtifactError::NotFound(_) => EarlyEnd::failed(
            ErrorKind::NotFound,
            format!("argument {}: {error}", at.pointer()),
        )
        .advise("a ref is valid only in the run that created it"),
        other => EarlyEnd::failed(
            ErrorKind::Unavailable,
            format!("argument {}: {other}", at.pointer()),
        ),
    };
    let shown = clip(named, 80);
    let reference = ArtifactRef::parse(named);
    let reference =
        reference.ok_or_else(|| missing(ArtifactError::NotFound(shown.into_owned())))?;
    let owner = session.owner();
    let info = store.info(owner, &reference).await.map_err(missing)?;
    *left = left.checked_sub(info.bytes).ok_or_else(|| {
        wrong(
            at,
            format_args!("artifacts of more than {MAX_BOUND} bytes in one call"),
        )
        .advise("pass it in parts, or to a tool that takes the ref itself")
    })?;
    let bytes = store.read(owner, &reference, 0..info.bytes).await;
    let bytes = bytes.map_err(missing)?;
    Ok((bytes, info.media_type))
}

/// Returns the JSON text that replaces a ref.
fn written(
    entry: &ToolEntry,
    at: &RefObject,
    bytes: &Bytes,
    media_type: &str,
) -> Result<String, EarlyEnd> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let takes = accepted_kind(&entry.spec().input_schema, &at.path);
    if takes == RefEncoding::Ref {
        return Ok(quoted(at.reference.as_deref().unwrap_or_default()));
    }
    if takes == RefEncoding::Base64 {
        return Ok(quoted(&STANDARD.encode(bytes)));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        let what = format!("the artifact is binary ({media_type}), but the argument takes text");
        wrong(at, what).advise("read it in the script, or pass it to a tool that takes files")
    })?;
    if takes == RefEncoding::Text {
        return Ok(quoted(text));
    }
    if scan::scan(text).is_err() {
        return Err(wrong(
            at,
            "the artifact is not JSON, and the argument does not take text",
        ));
    }
    Ok(text.to_owned())
}
