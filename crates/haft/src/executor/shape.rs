//! Shape: data made an object, the output schema checked, and the whole made to fit the inline limit.

use bytes::Bytes;

use crate::artifact::{ArtifactError, ArtifactStore};
use crate::error::{ErrorKind, ToolError};
use crate::executor::Parts;
use crate::executor::call_result::CallResult;
use crate::executor::early_end::{EarlyEnd, failure, status};
use crate::executor::invoke::Invoked;
use crate::result::{Artifact, Status, ToolResult};
use crate::session::Session;
use crate::shape::{self as fit, Bounds};
use crate::spec::{Overflow, ToolSpec};
use crate::toolset::ToolEntry;

/// Shapes what a tool gave.
pub(super) fn shape(
    parts: &Parts,
    session: &Session,
    invoked: Invoked,
) -> Result<CallResult, EarlyEnd> {
    let (entry, given) = invoked.into_parts();
    let mut result = given?;
    result.data = result.data.map(fit::object);
    if result.error.is_none() {
        check_output(parts, session, &entry, &result)?;
    }
    let ToolResult {
        content,
        data,
        mut artifacts,
        error,
        summary,
        strength,
    } = result;
    let bounds = bounds(parts, session, entry.spec());
    let mut keep = |media_type: &str, bytes: Bytes| match &parts.artifacts {
        Some(store) => put(store.as_ref(), session, media_type, bytes),
        None => Err(ArtifactError::NotFound("store".into())),
    };
    let keep: Option<fit::Keep<'_>> = if parts.artifacts.is_some() {
        Some(&mut keep)
    } else {
        None
    };
    let fitted = fit::fit(content, data, &bounds, keep);
    let operator = error.as_ref().and_then(ToolError::operator_advice);
    let operator = operator.map(str::to_owned);
    // The tool's own failure says more than that its output was large.
    let error = error.as_ref().map(failure).or(fitted.error);
    artifacts.extend(fitted.artifacts);
    let status = error.as_ref().map_or(Status::Ok, |e| status(e.kind));
    Ok(CallResult {
        status,
        summary,
        content: fitted.content,
        data: fitted.data,
        artifacts,
        error,
        strength,
        approval: None,
        calls: None,
        operator,
    })
}

/// The limits of one call: tokens for a direct one, bytes inside a chain; the spec's own where it has them.
fn bounds<'a>(parts: &'a Parts, session: &'a Session, spec: &ToolSpec) -> Bounds<'a> {
    let limits = session.limits();
    let (tokenizer, limit) = limits.inline(spec, parts.tokenizer.as_ref());
    Bounds {
        tokenizer,
        limit,
        media_bytes: limits.inline_media_bytes,
        overflow: spec.overflow.unwrap_or(Overflow::Store),
        run: session.run(),
        typed: spec.output_schema.is_some(),
    }
}

/// A result that is not what the tool's output schema promises is an error; it is kept as an artifact.
fn check_output(
    parts: &Parts,
    session: &Session,
    entry: &ToolEntry,
    result: &ToolResult,
) -> Result<(), EarlyEnd> {
    let Some(schema) = &entry.output else {
        return Ok(());
    };
    let text = result.data.as_ref().map_or("null", |raw| raw.get());
    let Err(violations) = schema.check_value(text) else {
        return Ok(());
    };
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let name = &entry.spec().name;
    let message = format!(
        "the result of {name} is not what its output schema promises: {}",
        lines.join("; ")
    );
    let mut stop = EarlyEnd::failed(ErrorKind::Failed, message);
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let kept = parts
        .artifacts
        .as_ref()
        .map(|store| put(store.as_ref(), session, "application/json", bytes));
    if let Some(Ok(artifact)) = kept {
        let advice = format!("the result as it came is artifact {}", artifact.reference);
        stop = stop.advise(advice).with_artifact(artifact);
    }
    Err(stop)
}

/// Keeps bytes for the run.
fn put(
    store: &dyn ArtifactStore,
    session: &Session,
    media_type: &str,
    bytes: Bytes,
) -> Result<Artifact, ArtifactError> {
    let size = bytes.len() as u64;
    let preview = fit::preview(&bytes);
    let reference = store.put(session.owner(), media_type, bytes)?;
    Ok(Artifact {
        reference: reference.as_str().to_owned(),
        media_type: media_type.to_owned(),
        bytes: size,
        preview,
    })
}
