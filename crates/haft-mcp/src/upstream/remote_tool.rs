//! `RemoteTool`: a tool of an MCP server behind haft; called, judged and recorded like any other.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::result::ToolResult;
use haft::spec::{Annotations, Listing, Risk, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool};
use haft::workspace::Workspace;
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
struct ToolDescription {
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
        let described: ToolDescription =
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
            is_output_advisory: !server.terms.strict,
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

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(RemoteCall {
            arguments: arguments.clone(),
            tool: self,
        }))
    }
}

/// A call of a server's tool.
struct RemoteCall {
    tool: Arc<RemoteTool>,
    /// As they are sent.
    arguments: Arguments,
}

impl PreparedCall for RemoteCall {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        let RemoteTool { server, spec, .. } = &*self.tool;
        Ok(server.intent(spec.risk, depth))
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let RemoteTool {
                server,
                pinned,
                spec,
            } = &*self.tool;
            let bridge = Bridge::of(server, context);
            let arguments = self.arguments.as_str();
            let call = server.call(pinned, arguments, &bridge, spec.idempotent);
            call.await
        })
    }
}
