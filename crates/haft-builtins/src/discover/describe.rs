//! `describe_tools`: the complete descriptions and schemas of tools, by their exact names.

use std::fmt::Write as _;
use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::spec::ToolSpec;
use haft::tool::{Depth, Intent, TypedTool};
use haft::toolset::ToolsetSnapshot;
use haft::toolset::search::{category_of, is_findable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::describe::{builtin, known_as, read_only};
use crate::discover::expand::{NameList, echo, wanted};

/// Maximum size of all schemas in one result, in bytes.
const MAX_SCHEMAS: usize = 64 * 1024;

/// What `describe_tools` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribeInput {
    /// Exact names from `tool_search`.
    pub tool_names: NameList,
}

/// A tool as it is described.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DescribedTool {
    /// Its name.
    pub name: String,
    /// Its full description.
    pub description: String,
    /// Its category.
    pub category: String,
    /// The schema of its arguments.
    pub input_schema: Arc<Value>,
    /// The schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
}

/// What `describe_tools` gives.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct DescribeData {
    /// In the order of the names.
    pub tools: Vec<DescribedTool>,
    /// Names that are not tools of this session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid_tools: Vec<String>,
    /// Tools that did not fit into this answer: request them separately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// The tool `describe_tools`.
#[derive(Debug)]
pub struct DescribeTools;

impl TypedTool for DescribeTools {
    const NAME: &'static str = "describe_tools";
    const DESCRIPTION: &'static str = "Get the whole descriptions and input schemas of tools by their exact names. Find names with tool_search.";
    type Input = DescribeInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<DescribeData>(spec, "discover"));
        known_as(spec, &["get_tool_schema", "get_metadata"])
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let tools = context.tools();
        let names = wanted(input.tool_names)?;
        let data = describe_tools(&tools, &names);
        if data.tools.is_empty()
            && data.left_out.is_empty()
            && let Some(first) = data.invalid_tools.first()
        {
            return Err(unknown(&tools, first));
        }
        let summary = counted(data.tools.len(), "tool");
        let text = render(&data);
        let result = ToolResult::text(text).with_data_for_programs(&data)?;
        Ok(result.with_summary(summary))
    }
}

fn unknown(tools: &ToolsetSnapshot, name: &str) -> ToolError {
    let error = ToolError::not_found(format!("no tool {name:?}"));
    match tools.nearest(name).join(", ") {
        near if near.is_empty() => error.with_advice("find names with tool_search"),
        near => error.with_advice(format!("did you mean {near}?")),
    }
}

fn describe_tools(tools: &ToolsetSnapshot, names: &[String]) -> DescribeData {
    let mut data = DescribeData::default();
    let mut room = MAX_SCHEMAS;
    for name in names {
        let entry = tools.entry(name).filter(|entry| is_findable(entry.spec()));
        let Some(entry) = entry else {
            data.invalid_tools.push(echo(name).to_owned());
            continue;
        };
        let spec = entry.spec();
        let output = spec.output_schema.as_ref();
        let bytes = spec.description.len()
            + spec.input_schema.to_string().len()
            + output.map_or(0, |schema| schema.to_string().len());
        // The first tool is always described completely; a result that is too large is stored as an artifact.
        if bytes > room && !data.tools.is_empty() {
            data.left_out.push(name.clone());
            continue;
        }
        room = room.saturating_sub(bytes);
        data.tools.push(DescribedTool {
            name: spec.name.to_string(),
            description: spec.description.clone(),
            category: category_of(entry).to_owned(),
            input_schema: Arc::clone(&spec.input_schema),
            output_schema: output.cloned(),
        });
    }
    data
}

fn render(data: &DescribeData) -> String {
    let mut text = String::new();
    for tool in &data.tools {
        let _ = writeln!(text, "{}: {}", tool.name, tool.description);
        let _ = writeln!(text, "  input_schema: {}", tool.input_schema);
    }
    for (what, names) in [
        ("no such tools", &data.invalid_tools),
        ("left out, request them separately", &data.left_out),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "{what}: {}", names.join(", "));
        }
    }
    if text.is_empty() {
        text.push_str("no names given\n");
    }
    text
}
