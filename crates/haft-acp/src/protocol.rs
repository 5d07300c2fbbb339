//! The parameters of the protocol's methods, as far as haft reads them.

use std::path::PathBuf;

use serde::Deserialize;

use crate::rpc::RpcId;

/// `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialize {
    #[serde(rename = "protocolVersion")]
    pub(crate) _version: u16,
    #[serde(default)]
    pub(crate) client_info: Option<ClientInfo>,
}

/// The client's name for itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) title: Option<String>,
}

/// `session/new`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSessionParams {
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    pub(crate) mcp_servers: Option<Vec<McpServer>>,
    #[serde(default)]
    pub(crate) additional_directories: Option<Vec<PathBuf>>,
}

/// An MCP server that the client names.
#[derive(Debug, Deserialize)]
pub(crate) struct McpServer {
    pub(crate) name: String,
}

/// `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoadSession {
    pub(crate) session_id: String,
    #[serde(flatten)]
    pub(crate) new: NewSessionParams,
}

/// The parameters of methods that only name a session: `session/close`, `session/cancel`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionParams {
    pub(crate) session_id: String,
}

/// `session/list`.
#[derive(Debug, Deserialize)]
pub(crate) struct ListSessions {
    #[serde(default)]
    pub(crate) cwd: Option<PathBuf>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

/// `session/set_mode`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMode {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

/// `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptParams {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<PromptBlock>,
}

/// A piece of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum PromptBlock {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    Audio {},
    #[serde(rename_all = "camelCase")]
    ResourceLink {
        uri: String,
        name: String,
    },
    Resource {
        resource: PromptResource,
    },
}

/// A resource with its content.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptResource {
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) mime_type: Option<String>,
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) blob: Option<String>,
}

/// `$/cancel_request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequest {
    pub(crate) request_id: RpcId,
}

/// The answer to `session/request_permission`.
#[derive(Debug, Deserialize)]
pub(crate) struct PermissionReply {
    pub(crate) outcome: PermissionOutcome,
}

/// The user's choice.
#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum PermissionOutcome {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
}
