//! `ServerTool`: a client's request to a server for something other than a tool, made as a call: judged, limited and recorded
//! like every call.
//!
//! No caller sees these tools: the gateway makes their calls. The arguments are the request's `params` as sent to the server.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::json::amend::Amended;
use haft::json::members::{Member, members};
use haft::result::ToolResult;
use haft::spec::{Risk, ToolName, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool};
use haft::workspace::Workspace;
use serde_json::json;
use serde_json::value::RawValue;

use crate::upstream::Upstream;
use crate::upstream::bridge::Bridge;
use crate::upstream::upstream_request::UpstreamRequest;

/// Room for a result: as much as a server's message can hold.
const MAX_RESULT: usize = 64 << 20;

/// What is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerToolAction {
    /// Read a resource, or follow its changes: whoever may read its content may learn when it changes.
    Read,
    /// Get a prompt.
    Get,
    /// Complete an argument.
    Complete,
}

impl ServerToolAction {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Get, Self::Complete];

    /// Returns the protocol's method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Read => "resources/read",
            Self::Get => "prompts/get",
            Self::Complete => "completion/complete",
        }
    }

    /// Returns the member of the `params` that headers repeat.
    fn named(self) -> Option<&'static str> {
        match self {
            Self::Read => Some("uri"),
            Self::Get => Some("name"),
            Self::Complete => None,
        }
    }

    /// Returns the name of the tool for a server: `docs.resources.read`.
    pub(crate) fn tool(self, server: &str) -> String {
        format!("{server}.{}", self.method().replace('/', "."))
    }
}

/// A tool of this kind for one server.
#[derive(Debug)]
pub(crate) struct ServerTool {
    verb: ServerToolAction,
    spec: Arc<ToolSpec>,
    server: Arc<Upstream>,
}

impl ServerTool {
    pub(crate) fn new(verb: ServerToolAction, server: &Arc<Upstream>) -> Option<Self> {
        let name = ToolName::new(&verb.tool(server.name())).ok()?;
        let (what, schema) = match verb {
            ServerToolAction::Read => (
                "Read or follow a resource",
                json!({"type": "object", "required": ["uri"], "properties": {"uri": {"type": "string"}, "follow": {"type": "boolean"}}}),
            ),
            ServerToolAction::Get => (
                "Get a prompt",
                json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}),
            ),
            ServerToolAction::Complete => (
                "Complete an argument",
                json!({"type": "object", "required": ["ref", "argument"]}),
            ),
        };
        let description = format!("{what} of the MCP server {}.", server.name());
        // Arguments are completed while the user types: asking for approval at each letter is impossible.
        let is_safe = verb == ServerToolAction::Complete || server.terms.trusted;
        let spec = ToolSpec {
            risk: if is_safe { Risk::Safe } else { Risk::High },
            // The user sees and chooses every word of a completion.
            open_world: verb != ServerToolAction::Complete && !server.terms.is_confined,
            concurrency_safe: true,
            idempotent: true,
            category: Some(server.name().to_owned()),
            source: format!("mcp:{}", server.name()),
            timeout: Some(server.terms.limits.call),
            inline_tokens: Some(MAX_RESULT),
            ..ToolSpec::new(name, description, schema)
        };
        Some(Self {
            verb,
            spec: Arc::new(spec),
            server: Arc::clone(server),
        })
    }
}

impl Tool for ServerTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(ServerCall {
            arguments: arguments.clone(),
            tool: self,
        }))
    }
}

/// A request to the server, as a call.
struct ServerCall {
    tool: Arc<ServerTool>,
    /// As they are sent.
    arguments: Arguments,
}

impl PreparedCall for ServerCall {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        let ServerTool { server, spec, .. } = &*self.tool;
        Ok(server.intent(spec.risk, depth))
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let ServerTool { verb, server, .. } = &*self.tool;
            let text = self.arguments.as_str();
            let found = members(text);
            let found = found.map_err(|e| ToolError::invalid_arguments(e.to_string()))?;
            let name = verb.named();
            let name = found
                .iter()
                .find(|member| name.is_some_and(|name| member.is(name)))
                .and_then(|member| serde_json::from_str::<String>(member.value().get()).ok());
            let follows =
                |member: &Member<'_>| member.is("follow") && member.value().get() == "true";
            if *verb == ServerToolAction::Read && found.iter().any(follows) {
                let uri = name.unwrap_or_default();
                server.wait_until_followed(&uri).await?;
                return Ok(ToolResult::default());
            }
            let params = text.trim_ascii();
            let params = params.strip_prefix('{').and_then(|p| p.strip_suffix('}'));
            let errand = UpstreamRequest {
                method: verb.method(),
                params: params.unwrap_or_default(),
                name: name.as_deref(),
            };
            let bridge = Bridge::of(server, context);
            let raw = server.ask(errand, &bridge).await?;
            Ok(ToolResult {
                data: Some(own_members_out(raw)),
                ..ToolResult::default()
            })
        })
    }
}

/// Members of a result that each server sets itself: haft sets them for its own clients.
const OWN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];
/// The member of `_meta` that names the responding server.
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Removes from a result what haft sets itself, and keeps everything else unchanged.
fn own_members_out(raw: Box<RawValue>) -> Box<RawValue> {
    let Ok(mut result) = Amended::read(raw.get()) else {
        return raw;
    };
    result.retain(|member| !OWN_MEMBERS.iter().any(|own| member.is(own)));
    for (nth, member) in result.members().to_vec().iter().enumerate() {
        if member.is("_meta")
            && let Ok(mut meta) = Amended::read(member.value().get())
            && meta.position(SERVER_INFO_KEY).is_some()
        {
            meta.retain(|inner| !inner.is(SERVER_INFO_KEY));
            if meta.is_empty() {
                result.remove(nth);
            } else {
                meta.write(result.replace(nth));
            }
        }
    }
    result.to_raw().unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::own_members_out;

    #[test]
    fn what_haft_says_itself_is_left_out_and_nothing_else() {
        for (sent, expect) in [
            (
                r#"{"z":12345678901234567890123,"resultType":"complete","contents":[ {"a":1.0} ],"ttlMs":5,"cacheScope":"public"}"#,
                r#"{"z":12345678901234567890123,"contents":[ {"a":1.0} ]}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}},"a":1}"#,
                r#"{"a":1}"#,
            ),
            (
                r#"{"_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"s"}},"a":1}"#,
                r#"{"_meta":{"x":1},"a":1}"#,
            ),
            (
                r#"{ "contents" : [] , "ttlMs": 5, "_meta": { "x" : 1 } }"#,
                r#"{ "contents" : [], "_meta": { "x" : 1 } }"#,
            ),
        ] {
            let raw = RawValue::from_string(sent.to_owned()).unwrap();
            assert_eq!(own_members_out(raw).get(), expect);
        }
    }
}
