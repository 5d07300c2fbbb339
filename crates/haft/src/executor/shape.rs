//! Shape: data made an object, the output schema checked, and the whole made to fit the inline limit.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::artifact::ArtifactError;
use crate::error::ErrorKind;
use crate::executor::Parts;
use crate::executor::invoke::Invoked;
use crate::executor::stop::{Stop, failure, status};
use crate::result::{Artifact, Content, Failure, Status, ToolResult};
use crate::session::Session;
use crate::toolset::Entry;

/// Longest beginning of an artifact that an outcome shows, in bytes.
const PREVIEW: usize = 1024;

/// What the outcome will hold. Made from a result here, or from a stop.
pub(super) struct Shaped {
    pub(super) status: Status,
    pub(super) summary: Option<String>,
    pub(super) content: Vec<Content>,
    pub(super) data: Option<Box<RawValue>>,
    pub(super) artifacts: Vec<Artifact>,
    pub(super) error: Option<Failure>,
    pub(super) strength: Option<String>,
}

impl From<Stop> for Shaped {
    fn from(stop: Stop) -> Self {
        Self {
            status: stop.status,
            summary: None,
            content: Vec::new(),
            data: None,
            artifacts: stop.artifacts,
            error: Some(stop.failure),
            strength: None,
        }
    }
}

/// Shapes what a tool gave.
pub(super) fn shape(parts: &Parts, session: &Session, invoked: Invoked) -> Result<Shaped, Stop> {
    let (entry, given) = invoked.into_parts();
    let mut result = given?;
    result.data = result.data.map(object);
    if result.error.is_none() {
        check_output(parts, session, &entry, &result)?;
    }
    let ToolResult {
        content,
        data,
        error,
        summary,
        strength,
    } = result;
    let status = error.as_ref().map_or(Status::Ok, |e| status(e.kind()));
    let error = error.as_ref().map(failure);
    Ok(Shaped {
        status,
        summary,
        content,
        data,
        artifacts: Vec::new(),
        error,
        strength,
    })
}

/// Structured content is always an object: a value that is none becomes `{"result": value}`.
fn object(raw: Box<RawValue>) -> Box<RawValue> {
    if raw.get().starts_with('{') {
        return raw;
    }
    let wrapped = format!("{{\"result\":{}}}", raw.get());
    RawValue::from_string(wrapped).unwrap_or(raw)
}

/// A result that is not what the tool's output schema promises is an error; it is kept as an artifact.
fn check_output(
    parts: &Parts,
    session: &Session,
    entry: &Entry,
    result: &ToolResult,
) -> Result<(), Stop> {
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
    let mut stop = Stop::new(ErrorKind::Failed, message);
    let kept = keep(
        parts,
        session,
        "application/json",
        Bytes::copy_from_slice(text.as_bytes()),
    );
    if let Some(Ok(artifact)) = kept {
        let advice = format!("the result as it came is artifact {}", artifact.reference);
        stop = stop.advise(advice);
        stop.artifacts.push(artifact);
    }
    Err(stop)
}

/// Keeps bytes for the run; `None` where the host keeps none.
fn keep(
    parts: &Parts,
    session: &Session,
    media_type: &str,
    bytes: Bytes,
) -> Option<Result<Artifact, ArtifactError>> {
    let store = parts.artifacts.as_ref()?;
    let size = bytes.len() as u64;
    let preview = preview(&bytes);
    let reference = store.put(session.owner(), media_type, bytes);
    Some(reference.map(|reference| Artifact {
        reference: reference.as_str().to_owned(),
        media_type: media_type.to_owned(),
        bytes: size,
        preview,
    }))
}

/// How a text begins; nothing for what is no text.
fn preview(bytes: &[u8]) -> String {
    let head = bytes.get(..bytes.len().min(PREVIEW)).unwrap_or_default();
    match std::str::from_utf8(head) {
        Ok(text) => text.to_owned(),
        // A character cut at the end is no sign of binary.
        Err(e) if e.error_len().is_none() => {
            String::from_utf8_lossy(head.get(..e.valid_up_to()).unwrap_or_default()).into_owned()
        }
        Err(_) => String::new(),
    }
}
