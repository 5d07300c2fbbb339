//! `ResourceEntry`: a resource in a list, and the error for a URI that names none.

use haft::text::clip;
use serde::Serialize;
use serde_json::json;

use crate::own::ARTIFACTS;
use crate::run::ClientRun;
use crate::wire::RpcError;

/// A resource in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceEntry {
    pub(crate) uri: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    pub(crate) mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
}

impl ResourceEntry {
    /// Returns what a cursor after this entry names: an artifact's ref, or a skill's URI.
    pub(crate) fn cursor(&self) -> &str {
        if self.uri.starts_with(ARTIFACTS) {
            &self.name
        } else {
            &self.uri
        }
    }
}

/// Returns the error for a URI that names nothing here.
pub(crate) fn missing(run: &ClientRun, uri: &str) -> RpcError {
    let shown = clip(uri, 256);
    RpcError::new(
        run.era.missing_resource_code(),
        format!("no resource {shown} in this run"),
    )
    .with_data(json!({ "uri": shown }).to_string())
}
