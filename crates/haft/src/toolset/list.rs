//! The tool list as sent to clients: one cached piece per tool, and one cached list per snapshot.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;

use crate::spec::{Annotations, ToolSpec, ToolUi};
use crate::toolset::{ToolEntry, ToolsetSnapshot};

mod compact;
mod relisted;

use compact::{SchemaRole, compact};

/// A tool in MCP's shape (2025-11-25 and 2026-07-28 agree on these members).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(skip_serializing_if = "is_default")]
    annotations: Annotations,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<McpToolMeta<'a>>,
}

#[derive(Serialize)]
struct McpToolMeta<'a> {
    ui: McpToolUi<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpToolUi<'a> {
    resource_uri: &'a str,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_default(annotations: &Annotations) -> bool {
    *annotations == Annotations::default()
}

impl<'a> From<&'a ToolUi> for McpToolMeta<'a> {
    fn from(ui: &'a ToolUi) -> Self {
        // The permissions that the page asks for come with its content, when it is read.
        Self {
            ui: McpToolUi {
                resource_uri: &ui.resource_uri,
            },
        }
    }
}

/// Returns whether a schema's root has type `object`: strict clients refuse the whole list over one that does not.
fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Returns a schema of arguments with type `object`, which arguments always are.
fn object_schema(schema: &Value) -> Value {
    let mut shown = compact(schema, SchemaRole::Input);
    if is_object(&shown) {
        return shown;
    }
    match &mut shown {
        Value::Object(map) => {
            map.insert("type".into(), "object".into());
            shown
        }
        _ => serde_json::json!({"type": "object"}),
    }
}

/// Returns a spec as MCP's `tools/list` shows it: compact JSON, or the listing of the tool's own server.
pub fn mcp_tool(spec: &ToolSpec) -> Bytes {
    let relisted = spec.listing.as_ref();
    if let Some(relisted) = relisted.and_then(|listing| relisted::relist(spec, listing)) {
        return relisted;
    }
    let shown = McpTool {
        name: spec.name.as_str(),
        title: spec.title.as_deref(),
        description: &spec.description,
        input_schema: object_schema(&spec.input_schema),
        output_schema: spec
            .output_schema
            .as_deref()
            .filter(|schema| is_object(schema))
            .map(|schema| compact(schema, SchemaRole::Output)),
        annotations: spec.annotations,
        meta: spec.ui.as_ref().map(McpToolMeta::from),
    };
    // Strings, values and flags always serialise.
    serde_json::to_vec(&shown).unwrap_or_default().into()
}

impl ToolEntry {
    /// Returns the tool in MCP's shape; built once.
    pub fn mcp(&self) -> &Bytes {
        self.fragment.get_or_init(|| mcp_tool(&self.spec))
    }
}

impl ToolsetSnapshot {
    /// Returns all listed tools in MCP's shape, as a JSON array; built once per snapshot from the tools' cached pieces.
    pub fn mcp_list(&self) -> Bytes {
        self.list
            .get_or_init(|| join(self.listed().map(|entry| entry.mcp())))
            .clone()
    }
}

/// Joins serialized pieces into a JSON array.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::spec::ToolName;

    #[test]
    fn schemas_are_of_objects_for_clients_that_insist() {
        for (input, output, expect) in [
            (
                json!({"type": "object"}),
                json!({"type": "object", "x": 1}),
                json!({"inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "x": 1}}),
            ),
            (
                json!({"properties": {}}),
                json!({"type": "array"}),
                json!({"inputSchema": {"properties": {}, "type": "object"}}),
            ),
            (
                json!(true),
                json!({"$ref": "#/$defs/a"}),
                json!({"inputSchema": {"type": "object"}}),
            ),
        ] {
            let name = ToolName::new("t").unwrap();
            let mut spec = ToolSpec::new(name, "d", input);
            spec.output_schema = Some(Arc::new(output));
            let mut shown: Value = serde_json::from_slice(&mcp_tool(&spec)).unwrap();
            let shown = shown.as_object_mut().unwrap();
            shown.retain(|key, _| key.ends_with("Schema"));
            assert_eq!(Value::Object(shown.clone()), expect);
        }
    }
}
