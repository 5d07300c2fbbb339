//! Shape: data made an object, the output schema checked, and the whole made to fit the inline limit.

use std::sync::Arc;

use bytes::Bytes;

use crate::artifact::{ArtifactError, ArtifactStore};
use crate::error::{ErrorKind, ToolError};
use crate::executor::Parts;
use crate::executor::call_result::CallResult;
use crate::executor::early_end::{EarlyEnd, failure, status};
use crate::executor::invoke::Invoked;
use crate::future::BoxFuture;
use crate::result::{Artifact, Content, Original, Status, ToolResult};
use crate::session::Session;
use crate::shape::{self as fit, Bounds, Fitted, Keep};
use crate::spec::{Overflow, ToolSpec};
use crate::toolset::ToolEntry;

/// A result that was shaped as far as that needs no wait.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a call and taken apart at once; a box would cost every call"
)]
pub(super) enum Shaped {
    /// It is returned inline as it came.
    Inline(CallResult),
    /// Parts of it are stored first.
    Oversized(Box<Oversized>),
}

/// A result of which not all is returned inline.
pub(super) struct Oversized {
    entry: Arc<ToolEntry>,
    result: ToolResult,
    /// Why it is not what the tool's output schema promises, where it is not.
    violation: Option<EarlyEnd>,
}

/// Shapes what a tool gave.
pub(super) fn shape(
    parts: &Parts,
    session: &Session,
    invoked: Invoked,
) -> Result<Shaped, EarlyEnd> {
    let (entry, given) = invoked.into_parts();
    let mut result = given?;
    // The schema of a server speaks of what the server sends, which need not be an object.
    if entry.spec().listing.is_none() {
        result.data = result.data.map(fit::object);
    }
    let violation = match &result.error {
        None => violation(&entry, &result),
        Some(_) => None,
    };
    result.data = result.data.map(fit::object);
    let bounds = bounds(parts, session, entry.spec());
    bound_original(&mut result, &bounds);
    if violation.is_none() && fit::is_within(&result.content, result.data.as_deref(), &bounds) {
        let fitted = Fitted {
            content: std::mem::take(&mut result.content),
            data: result.data.take(),
            ..Fitted::whole()
        };
        return Ok(Shaped::Inline(call_result(result, fitted)));
    }
    Ok(Shaped::Oversized(Box::new(Oversized {
        entry,
        result,
        violation,
    })))
}

impl Oversized {
    /// Stores what is too large, and shows a preview of it.
    pub(super) async fn store(
        self: Box<Self>,
        parts: &Parts,
        session: &Session,
    ) -> Result<CallResult, EarlyEnd> {
        let Self {
            entry,
            mut result,
            violation,
        } = *self;
        if let Some(stop) = violation {
            return Err(with_result(parts, session, stop, &result).await);
        }
        let bounds = bounds(parts, session, entry.spec());
        let keep = StoreFor::of(parts, session);
        let keep = keep.as_ref().map(|keep| keep as &dyn Keep);
        let (content, data) = (std::mem::take(&mut result.content), result.data.take());
        let fitted = fit::fit(content, data, &bounds, keep).await;
        Ok(call_result(result, fitted))
    }
}

/// The call's result: what the tool gave, with what fits of its content and data.
fn call_result(given: ToolResult, fitted: Fitted) -> CallResult {
    let ToolResult {
        mut artifacts,
        error,
        summary,
        strength,
        original,
        ..
    } = given;
    let original = original.filter(|_| fitted.error.is_none());
    let original = original.map(|original| Original {
        content: fitted.content_is_whole,
        data: fitted.data_is_whole,
        ..original
    });
    let operator = error.as_ref().and_then(ToolError::operator_advice);
    let operator = operator.map(str::to_owned);
    // The tool's own failure says more than that its output was large.
    let error = error.as_ref().map(failure).or(fitted.error);
    artifacts.extend(fitted.artifacts);
    let status = error.as_ref().map_or(Status::Ok, |e| status(e.kind));
    CallResult {
        status,
        summary,
        content: fitted.content,
        data: fitted.data,
        artifacts,
        error,
        strength,
        approval: None,
        calls: None,
        original,
        operator,
    }
}

/// The longest way to write a byte of text in JSON: `\u0000`.
const ESCAPED: usize = 6;

/// What a server sends beside content and data (members that haft does not know, `_meta`) has the room that pictures have: where it
/// takes more it is left out, and the content says so.
fn bound_original(result: &mut ToolResult, bounds: &Bounds<'_>) {
    let Some(original) = &result.original else {
        return;
    };
    let data = result.data.as_ref().map_or(0, |raw| raw.get().len());
    let shown = ESCAPED * (fit::text_bytes(&result.content) + data);
    let room = shown.saturating_add(bounds.media_bytes.saturating_mul(3));
    let bytes = original.result.get().len();
    if bytes > room {
        result.original = None;
        let left_out = format!("[members of the result's {bytes} bytes were left out: too long]");
        result.content.push(Content::text(left_out));
    }
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

/// A result that is not what the tool's output schema promises is an error.
fn violation(entry: &ToolEntry, result: &ToolResult) -> Option<EarlyEnd> {
    let schema = entry.output.as_ref()?;
    let text = result.data.as_ref().map_or("null", |raw| raw.get());
    let violations = schema.check_value(text).err()?;
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let name = &entry.spec().name;
    let message = format!(
        "the result of {name} is not what its output schema promises: {}",
        lines.join("; ")
    );
    Some(EarlyEnd::failed(ErrorKind::Failed, message))
}

/// The error with the result as it came, which is stored.
async fn with_result(
    parts: &Parts,
    session: &Session,
    stop: EarlyEnd,
    result: &ToolResult,
) -> EarlyEnd {
    let Some(store) = StoreFor::of(parts, session) else {
        return stop;
    };
    let text = result.data.as_ref().map_or("null", |raw| raw.get());
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    match store.keep("application/json", bytes).await {
        Ok(artifact) => {
            let advice = format!("the result as it came is artifact {}", artifact.reference);
            stop.advise(advice).with_artifact(artifact)
        }
        Err(_) => stop,
    }
}

/// Where the run's artifacts are stored.
struct StoreFor<'a> {
    store: &'a dyn ArtifactStore,
    session: &'a Session,
}

impl<'a> StoreFor<'a> {
    /// The host's store, where it has one.
    fn of(parts: &'a Parts, session: &'a Session) -> Option<Self> {
        let store = parts.artifacts.as_deref()?;
        Some(Self { store, session })
    }
}

impl Keep for StoreFor<'_> {
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
