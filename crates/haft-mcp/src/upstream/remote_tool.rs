//! `RemoteTool`: a tool of an MCP server behind haft; called, judged and recorded like any other.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::permission::{Condition, Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{Annotations, Listing, Risk, ToolSpec};
use haft::tool::Tool;
use haft::untrusted::SERVER_EFFECT;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::upstream::bridge::Bridge;
use crate::upstream::manifest::PinnedTool;
use crate::upstream::{Upstream, name};

/// A tool of a server.
#[derive(Debug)]
pub struct RemoteTool {
    spec: Arc<ToolSpec>,
    pinned: PinnedTool,
    server: Arc<Upstream>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    title: Option<String>,
    #[serde(default)]
    description: String,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Annotations,
}

impl RemoteTool {
    /// Creates the tool as it was pinned.
    pub(crate) fn new(server: &Arc<Upstream>, pinned: &PinnedTool) -> Result<Self, String> {
        let described: Described =
            serde_json::from_str(pinned.raw.get()).map_err(|e| e.to_string())?;
        let name = name::named(&server.terms.prefix(&server.name), &pinned.name);
        let name = name.map_err(|e| e.to_string())?;
        let schema = described
            .input_schema
            .unwrap_or_else(|| json!({"type": "object"}));
        let hints = described.annotations;
        let believed = server.terms.trusted;
        let is_closed =
            server.terms.is_confined || believed && hints.open_world_hint == Some(false);
        let spec = ToolSpec {
            title: described.title,
            output_schema: described.output_schema.map(Arc::new),
            risk: risk(hints, believed),
            annotations: hints,
            idempotent: believed && is_repeatable(hints),
            open_world: !is_closed,
            concurrency_safe: believed && hints.read_only_hint == Some(true),
            category: Some(server.name.clone()),
            source: format!("mcp:{}", server.name),
            timeout: Some(server.terms.limits.call),
            ..ToolSpec::new(name, described.description, schema)
        };
        let listing = Listing::new(pinned.raw.get(), &spec);
        let spec = ToolSpec {
            listing: Some(Arc::new(listing)),
            ..spec
        };
        Ok(Self {
            spec: Arc::new(spec),
            pinned: pinned.clone(),
            server: Arc::clone(server),
        })
    }
}

/// Returns the risk of a call: an untrusted server may do anything, and so may a tool without annotations.
fn risk(hints: Annotations, believed: bool) -> Risk {
    if believed && hints.read_only_hint == Some(true) {
        return Risk::Safe;
    }
    Risk::High
}

fn is_repeatable(hints: Annotations) -> bool {
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

impl Tool for RemoteTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn permissions(&self, _arguments: &Arguments) -> Result<Vec<Permission>, ToolError> {
        let effect = Effect::Other {
            kind: SERVER_EFFECT.to_owned(),
            value: self.server.name.clone(),
        };
        Ok(vec![Permission {
            effect,
            risk: self.spec.risk,
        }])
    }

    fn conditions(&self, _arguments: &Arguments) -> Vec<Condition> {
        vec![Condition::new("server", self.server.manifest.place.clone())]
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let bridge = Bridge::of(&self.server, context);
            let (pinned, repeatable) = (&self.pinned, self.spec.idempotent);
            let call = self
                .server
                .call(pinned, arguments.as_str(), &bridge, repeatable);
            call.await
        })
    }
}
