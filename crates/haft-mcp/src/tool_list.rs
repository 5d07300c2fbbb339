//! The tool list as it goes over the wire: rendered once per list, served by slices.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::spec::{Annotations, ToolSpec, ToolUi};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::wire::RpcError;
use crate::wire::reply;

/// How many lists are kept rendered. Runs of one server mostly share one; a host with a view per client renders as it goes.
const KEPT: usize = 8;

/// Rendered lists, by the specs they were made of.
#[derive(Debug, Default)]
pub(crate) struct ToolLists(Mutex<VecDeque<Arc<ToolList>>>);

/// A rendered list: all tools' JSON, separated by commas.
#[derive(Debug)]
pub(crate) struct ToolList {
    specs: Arc<[Arc<ToolSpec>]>,
    text: Vec<u8>,
    /// Where each tool's JSON ends.
    ends: Vec<usize>,
}

impl ToolLists {
    /// The rendering of these specs.
    pub(crate) fn of(&self, specs: &Arc<[Arc<ToolSpec>]>) -> Arc<ToolList> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = kept.iter().find(|list| Arc::ptr_eq(&list.specs, specs)) {
            return Arc::clone(list);
        }
        let list = Arc::new(ToolList::render(specs));
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&list));
        list
    }
}

impl ToolList {
    fn render(specs: &Arc<[Arc<ToolSpec>]>) -> Self {
        let mut text = Vec::new();
        let mut ends = Vec::with_capacity(specs.len());
        for spec in specs.iter() {
            if !text.is_empty() {
                text.push(b',');
            }
            reply::json(&mut text, &ToolJson::from(&**spec));
            ends.push(text.len());
        }
        Self {
            specs: Arc::clone(specs),
            text,
            ends,
        }
    }

    /// Writes `"tools":[…]` with at most `size` tools after the cursor, and `nextCursor` where more follow.
    ///
    /// A cursor names the tool it stands after, so that it outlives changes elsewhere in the list.
    pub(crate) fn write_page(
        &self,
        out: &mut Vec<u8>,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<(), RpcError> {
        let first = match cursor {
            None => 0,
            Some(cursor) => self.position_after(cursor)?,
        };
        let last = self.ends.len().min(first.saturating_add(size.max(1)));
        out.extend_from_slice(b"\"tools\":[");
        if first < last {
            let start = if first == 0 {
                0
            } else {
                self.ends[first - 1] + 1
            };
            out.extend_from_slice(&self.text[start..self.ends[last - 1]]);
        }
        out.push(b']');
        if last < self.ends.len() {
            out.extend_from_slice(b",\"nextCursor\":");
            let name = self.specs[last - 1].name.as_str();
            reply::json(out, &URL_SAFE_NO_PAD.encode(name));
        }
        Ok(())
    }

    fn position_after(&self, cursor: &str) -> Result<usize, RpcError> {
        let name = URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
        let found = self
            .specs
            .iter()
            .position(|spec| spec.name.as_str().as_bytes() == name);
        found
            .map(|at| at + 1)
            .ok_or_else(|| RpcError::invalid_params("the cursor is not of this list: begin again"))
    }
}

/// A tool as MCP lists it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
}

impl<'a> From<&'a ToolSpec> for ToolJson<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let hints = spec.annotations;
        Self {
            name: spec.name.as_str(),
            title: spec.title.as_deref(),
            description: &spec.description,
            input_schema: input_schema(&spec.input_schema),
            output_schema: spec.output_schema.as_deref().map(output_schema),
            annotations: (hints != Annotations::default()).then_some(hints),
            meta: spec.ui.as_ref().map(ui_meta),
        }
    }
}

/// Clients want `type: object` spelled out at the root.
fn input_schema(schema: &Value) -> Value {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.insert("type".into(), "object".into());
    Value::Object(object)
}

/// The schema of `structuredContent`, which is always an object: a result that is none stands under `result` in it.
fn output_schema(schema: &Value) -> Value {
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        return schema.clone();
    }
    let mut inner = schema.clone();
    let mut outer = Map::new();
    outer.insert("type".into(), "object".into());
    // Definitions are referred to from the root: they stay there.
    if let Some(object) = inner.as_object_mut() {
        for key in ["$schema", "$defs", "definitions"] {
            if let Some(value) = object.remove(key) {
                outer.insert(key.into(), value);
            }
        }
    }
    outer.insert("properties".into(), json!({ "result": inner }));
    outer.insert("required".into(), json!(["result"]));
    Value::Object(outer)
}

fn ui_meta(ui: &ToolUi) -> Value {
    let mut shown = Map::new();
    shown.insert("resourceUri".into(), ui.resource_uri.clone().into());
    if let Some(csp) = &ui.csp {
        shown.insert("csp".into(), csp.clone());
    }
    if let Some(permissions) = &ui.permissions {
        shown.insert("permissions".into(), permissions.clone());
    }
    if ui.prefers_border {
        shown.insert("prefersBorder".into(), true.into());
    }
    json!({ "ui": shown })
}

#[cfg(test)]
mod tests;
