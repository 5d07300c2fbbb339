//! Shape: turns data into an object, checks the output schema, and makes the result fit the inline limit.

use std::sync::Arc;

use bytes::Bytes;

use crate::artifact::{ArtifactError, ArtifactStore};
use crate::error::{ErrorKind, ToolError};
use crate::executor::ExecutorParts;
use crate::executor::call_result::OutcomeContent;
use crate::executor::early_end::{EarlyEnd, failure};
use crate::executor::invoke::InvokedCall;
use crate::future::BoxFuture;
use crate::result::{Artifact, OriginalResult, Status, ToolResult, status_of};
use crate::session::Session;
use crate::shape::{self as fit, ArtifactKeeper, FittedResult, InlineLimits};
use crate::spec::{Overflow, ToolSpec};
use crate::toolset::ToolEntry;

/// A result, shaped as far as possible without waiting.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a call and taken apart at once; a box would cost every call"
)]
pub(super) enum ShapedResult {
    /// The result is returned inline as it is.
    Inline(OutcomeContent),
    /// Parts of the result must be stored first.
    Oversized(Box<OversizedResult>),
}

/// A result that is only partly returned inline.
pub(super) struct OversizedResult {
    entry: Arc<ToolEntry>,
    result: ToolResult,
    /// How it violates the tool's output schema, if it does.
    violation: Option<EarlyEnd>,
}

/// Shapes what a tool returned.
pub(super) fn shape(
    parts: &ExecutorParts,
    session: &Session,
    invoked: InvokedCall,
) -> Result<ShapedResult, EarlyEnd> {
    let (entry, given) = invoked.into_parts();
    let mut result = given?;
    // A server's schema describes what the server sends, which need not be an object.
    if entry.spec().listing.is_none() {
        result.data = result.data.map(fit::object);
    }
    let mismatch = match &result.error {
        None => mismatch(&entry, &result),
        Some(_) => None,
    };
    let mut violation = None;
    match mismatch {
        Some(what) if entry.spec().is_output_advisory => {
            result.notes.push(format!("{what}; it is shown as it came"));
        }
        Some(what) => violation = Some(EarlyEnd::failed(ErrorKind::Failed, what)),
        None => {}
    }
    result.data = result.data.map(fit::object);
    let bounds = bounds(parts, session, entry.spec());
    bound_original(&mut result, &bounds);
    if violation.is_none() && fit::is_within(&result.content, result.data.as_deref(), &bounds) {
        let fitted = FittedResult {
            content: std::mem::take(&mut result.content),
            data: result.data.take(),
            ..FittedResult::whole()
        };
        return Ok(ShapedResult::Inline(call_result(result, fitted)));
    }
    Ok(ShapedResult::Oversized(Box::new(OversizedResult {
        entry,
        result,
        violation,
    })))
}

impl OversizedResult {
    /// Stores what is too large, and returns a preview of it.
    pub(super) async fn store(
        self: Box<Self>,
        parts: &ExecutorParts,
        session: &Session,
    ) -> Result<OutcomeContent, EarlyEnd> {
        let Self {
            entry,
            mut result,
            violation,
        } = *self;
        if let Some(stop) = violation {
            return Err(with_result(parts, session, stop, &result).await);
        }
        let bounds = bounds(parts, session, entry.spec());
        let keep = RunStore::of(parts, session);
        let keep = keep.as_ref().map(|keep| keep as &dyn ArtifactKeeper);
        let (content, data) = (std::mem::take(&mut result.content), result.data.take());
        let fitted = fit::fit(content, data, &bounds, keep).await;
        Ok(call_result(result, fitted))
    }
}

/// Returns the call's result: the tool's result with the parts of its content and data that fit.
fn call_result(given: ToolResult, fitted: FittedResult) -> OutcomeContent {
    let ToolResult {
        mut artifacts,
        error,
        outer_error,
        summary,
        strength,
        original,
        data_is_for_programs,
        mut notes,
        ..
    } = given;
    let original = original.filter(|_| fitted.error.is_none());
    let original = original.map(|original| OriginalResult {
        content: fitted.content_is_whole,
        data: fitted.data_is_whole,
        ..original
    });
    let operator = error.as_ref().and_then(ToolError::operator_advice);
    let operator = operator.map(str::to_owned);
    // The tool's own failure says more than that its output was too large.
    let error = error.as_ref().map(failure).or(fitted.error);
    artifacts.extend(fitted.artifacts);
    notes.extend(fitted.notes);
    let status = error.as_ref().map_or(Status::Ok, |e| status_of(e.kind));
    // It is said only where this call has no failure of its own.
    let outer_error = outer_error.as_ref().filter(|_| error.is_none());
    OutcomeContent {
        status,
        summary,
        content: fitted.content,
        data: fitted.data,
        data_is_for_programs,
        notes,
        artifacts,
        error,
        outer_error: outer_error.map(failure),
        strength,
        approval: None,
        calls: None,
        original,
        operator,
    }
}

/// Length of the longest JSON escape of one byte of text: `\u0000`.
const MAX_ESCAPE: usize = 6;

/// Limits what a server sends beside content and data (unknown members, `_meta`) to the room that media has. If it takes more, it is
/// left out, and a note says so.
fn bound_original(result: &mut ToolResult, bounds: &InlineLimits<'_>) {
    let Some(original) = &result.original else {
        return;
    };
    let data = result.data.as_ref().map_or(0, |raw| raw.get().len());
    let shown = MAX_ESCAPE * (fit::text_bytes(&result.content) + data);
    let room = shown.saturating_add(bounds.media_bytes.saturating_mul(3));
    let bytes = original.result.get().len();
    if bytes > room {
        result.original = None;
        let left_out = format!("members of the result's {bytes} bytes were left out: too long");
        result.notes.push(left_out);
    }
}

/// Returns the limits of one call: tokens for a direct call, bytes inside a chain; the spec's own limits take precedence.
fn bounds<'a>(parts: &'a ExecutorParts, session: &'a Session, spec: &ToolSpec) -> InlineLimits<'a> {
    let limits = session.limits();
    let (tokenizer, limit) = limits.inline(spec, parts.tokenizer.as_ref());
    InlineLimits {
        tokenizer,
        limit,
        media_bytes: limits.inline_media_bytes,
        overflow: spec.overflow.unwrap_or(Overflow::Store),
        run: session.run(),
        typed: spec.output_schema.is_some(),
    }
}

/// Returns what is wrong with a result that violates the tool's output schema.
fn mismatch(entry: &ToolEntry, result: &ToolResult) -> Option<String> {
    let schema = entry.output.as_ref()?;
    let text = result.data.as_ref().map_or("null", |raw| raw.get());
    let violations = schema.check_value(text).err()?;
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let name = &entry.spec().name;
    Some(format!(
        "the result of {name} does not match its output schema: {}",
        lines.join("; ")
    ))
}

/// Stores the result as it came, and names the artifact in the error.
async fn with_result(
    parts: &ExecutorParts,
    session: &Session,
    stop: EarlyEnd,
    result: &ToolResult,
) -> EarlyEnd {
    let Some(store) = RunStore::of(parts, session) else {
        return stop;
    };
    let text = result.data.as_ref().map_or("null", |raw| raw.get());
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    match store.keep("application/json", bytes).await {
        Ok(artifact) => {
            let advice = format!("the original result is artifact {}", artifact.reference);
            stop.advise(advice).with_artifact(artifact)
        }
        Err(_) => stop,
    }
}

/// The artifact store, for one run.
struct RunStore<'a> {
    store: &'a dyn ArtifactStore,
    session: &'a Session,
}

impl<'a> RunStore<'a> {
    /// Returns the host's store, if it has one.
    fn of(parts: &'a ExecutorParts, session: &'a Session) -> Option<Self> {
        let store = parts.artifacts.as_deref()?;
        Some(Self { store, session })
    }
}

impl ArtifactKeeper for RunStore<'_> {
    fn keep<'k>(
        &'k self,
        media_type: &'k str,
        bytes: Bytes,
    ) -> BoxFuture<'k, Result<Artifact, ArtifactError>> {
        Box::pin(async move {
            let size = bytes.len() as u64;
            let preview = fit::preview(&bytes);
            let stored = self.store.put(self.session.owner(), media_type, bytes);
            let reference = stored.await?;
            Ok(Artifact {
                reference: reference.as_str().to_owned(),
                media_type: media_type.to_owned(),
                bytes: size,
                preview,
            })
        })
    }
}
