//! A resource as lists show it, and the error where an address names none.

use haft::text::clip;
use serde::Serialize;
use serde_json::json;

use crate::own::ARTIFACTS;
use crate::run::Run;
use crate::wire::RpcError;

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
        if self.uri.starts_with(ARTIFACTS) {
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
