//! Tools with special schemas.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::future::BoxFuture;
use haft::spec::NameError;
use haft::tool::PreparedCall;
use haft::workspace::Workspace;
use haft::{Depth, Intent, Tool, ToolError, ToolName, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// A tool with a schema of its own that returns its arguments.
struct Echo(Arc<ToolSpec>);

impl Tool for Echo {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(EchoCall(arguments.as_str().to_owned())))
    }
}

struct EchoCall(String);

impl PreparedCall for EchoCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move { Ok(ToolResult::text(self.0)) })
    }
}

/// Returns the tools.
pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, NameError> {
    let keywords = "Tool with JSON Schema 2020-12 features";
    let headers = "Give back what headers repeat";
    Ok(vec![
        echo("json_schema_2020_12_tool", keywords, with_keywords())?,
        echo("test_custom_headers", headers, with_headers())?,
    ])
}

fn echo(name: &str, description: &str, schema: Value) -> Result<Arc<dyn Tool>, NameError> {
    let mut spec = ToolSpec::new(ToolName::new(name)?, description, schema);
    spec.concurrency_safe = true;
    Ok(Arc::new(Echo(Arc::new(spec))))
}

fn with_keywords() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn with_headers() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
            "query": {"type": "string"},
        },
        "required": ["region"],
        "additionalProperties": false,
    })
}
