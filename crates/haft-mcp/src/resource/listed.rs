//! A resource as lists show it, and the error where an address names none.

use haft::text::clip;
use serde::Serialize;
use serde_json::json;

use crate::run::Run;
use crate::wire::RpcError;

/// What the address of an artifact begins with.
pub(crate) const SCHEME: &str = "artifact://";

/// What the address of a skill's file begins with.
pub(crate) const SKILLS: &str = "skill://";

/// Whether an address is one of this server's own: no host offers others under it.
pub(crate) fn is_own(uri: &str) -> bool {
    uri.starts_with(SCHEME) || uri.starts_with(SKILLS)
}

/// A resource in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub(crate) uri: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
}

impl Listed {
    /// What a cursor names that stands after it: an artifact's ref, a skill's address.
    pub(crate) fn cursor(&self) -> &str {
        if self.uri.starts_with(SCHEME) {
            &self.name
        } else {
            &self.uri
        }
    }
}

/// The error of an address that names nothing here.
pub(crate) fn missing(run: &Run, uri: &str) -> RpcError {
    let shown = clip(uri, 256);
    RpcError::new(
        run.era.missing_resource_code(),
        format!("no resource {shown} in this run"),
    )
    .with_data(json!({ "uri": shown }).to_string())
}
