//! The tool list as a client is told it: one cached piece a tool, one cached whole a snapshot.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;

use crate::spec::{Annotations, ToolSpec, ToolUi};
use crate::toolset::{Entry, Snapshot};

/// A tool in MCP's shape (2025-11-25 and 2026-07-28 agree on these members).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "is_default")]
    annotations: Annotations,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Meta<'a> {
    ui: Ui<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ui<'a> {
    resource_uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    csp: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<&'a Value>,
    prefers_border: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_default(annotations: &Annotations) -> bool {
    *annotations == Annotations::default()
}

impl<'a> From<&'a ToolUi> for Meta<'a> {
    fn from(ui: &'a ToolUi) -> Self {
        let ToolUi {
            resource_uri,
            csp,
            permissions,
            prefers_border,
        } = ui;
        let (csp, permissions) = (csp.as_ref(), permissions.as_ref());
        Self {
            ui: Ui {
                resource_uri,
                csp,
                permissions,
                prefers_border: *prefers_border,
            },
        }
    }
}

/// A spec as MCP's `tools/list` shows it: compact JSON.
pub fn mcp_tool(spec: &ToolSpec) -> Bytes {
    let shown = McpTool {
        name: spec.name.as_str(),
        title: spec.title.as_deref(),
        description: &spec.description,
        input_schema: &spec.input_schema,
        output_schema: spec.output_schema.as_deref(),
        annotations: spec.annotations,
        meta: spec.ui.as_ref().map(Meta::from),
    };
    // Strings, values and flags always serialise.
    serde_json::to_vec(&shown).unwrap_or_default().into()
}

impl Entry {
    /// This tool in MCP's shape; made once.
    pub fn mcp(&self) -> &Bytes {
        self.fragment.get_or_init(|| mcp_tool(&self.spec))
    }
}

impl Snapshot {
    /// All listed tools in MCP's shape, a JSON array; made once a snapshot from the tools' cached pieces.
    pub fn mcp_list(&self) -> Bytes {
        self.list
            .get_or_init(|| join(self.listed().map(|entry| entry.mcp())))
            .clone()
    }
}

/// A JSON array of ready pieces.
pub fn join<'a>(pieces: impl Iterator<Item = &'a Bytes> + Clone) -> Bytes {
    let size: usize = pieces.clone().map(|piece| piece.len() + 1).sum();
    let mut whole = BytesMut::with_capacity(size + 2);
    whole.put_u8(b'[');
    for (index, piece) in pieces.enumerate() {
        if index > 0 {
            whole.put_u8(b',');
        }
        whole.put_slice(piece);
    }
    whole.put_u8(b']');
    whole.freeze()
}
