//! The tools: over a JSON value and over a type; each declares one permission.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::tool::PreparedCall;
use haft::workspace::Workspace;
use haft::{
    CallContext, Depth, Intent, PathClaim, Permission, Tool, ToolName, ToolResult, ToolSpec,
    TypedTool, tool_fn,
};
use measure::case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Returns the spec of the nth tool.
pub(crate) fn spec(n: usize) -> ToolSpec {
    let name = ToolName::new(&case::name(n)).expect("a name");
    let schema: Value = serde_json::from_str(case::SCHEMA).expect("a schema");
    let mut spec = ToolSpec::new(name, case::DESCRIPTION, schema);
    spec.concurrency_safe = true;
    spec
}

/// A tool over a JSON value that reads two of its members.
struct ValueTool(Arc<ToolSpec>);

impl Tool for ValueTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        let view = arguments.view();
        let path = view.get("path").and_then(|path| path.as_str());
        let limit = view.get("limit").and_then(|limit| limit.as_u64());
        Ok(Box::new(ValueCall {
            path: path.unwrap_or_default().into(),
            limit: limit.unwrap_or_default(),
        }))
    }
}

/// A call of a [`ValueTool`].
struct ValueCall {
    path: String,
    limit: u64,
}

impl PreparedCall for ValueCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        let claim = PathClaim::plain(self.path.as_str());
        Ok(Intent::of([Permission::read(claim)]))
    }

    fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move { ToolResult::data(&json!({ "ok": true, "matches": self.limit })) })
    }
}

/// Returns the nth tool over a JSON value.
pub(crate) fn value(n: usize) -> Arc<dyn Tool> {
    value_of(spec(n))
}

/// Returns a tool over a JSON value with this spec.
pub(crate) fn value_of(spec: ToolSpec) -> Arc<dyn Tool> {
    Arc::new(ValueTool(Arc::new(spec)))
}

/// How to read the query.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Literal,
    Regex,
    Word,
}

/// Lines to look at.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    start: u64,
    end: u64,
}

/// The same arguments as a type; its schema has the same seven properties and bounds.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    #[schemars(length(min = 1, max = 200))]
    query: String,
    #[schemars(length(min = 1, max = 256))]
    path: String,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    #[serde(default)]
    ignore_case: Option<bool>,
    #[serde(default)]
    #[schemars(length(max = 16))]
    globs: Option<Vec<String>>,
    #[serde(default)]
    range: Option<Range>,
}

/// The result of the typed tools.
#[derive(Debug, Serialize)]
struct SearchAnswer {
    ok: bool,
    matches: u32,
}

fn answer(input: &Search) -> SearchAnswer {
    let lines = input.range.as_ref().map_or(1, |r| r.end - r.start);
    let plain = input.ignore_case.is_none() && input.globs.is_none() && input.query.is_empty();
    let unread = plain || lines == 0 || matches!(input.mode, Some(Mode::Word | Mode::Literal));
    SearchAnswer {
        ok: !unread,
        matches: input.limit.unwrap_or(0),
    }
}

/// A typed tool that declares its permission; a single type, so that each copy is renamed.
struct TypedSearch;

impl TypedTool for TypedSearch {
    const NAME: &'static str = "search_source";
    const DESCRIPTION: &'static str = case::DESCRIPTION;
    type Input = Search;

    fn intent(&self, input: &Search, _: Depth) -> Result<Intent, ToolError> {
        let claim = PathClaim::plain(input.path.as_str());
        Ok(Intent::of([Permission::read(claim)]))
    }

    async fn run(&self, input: Search, _: &CallContext) -> Result<ToolResult, ToolError> {
        ToolResult::data(&answer(&input))
    }
}

/// The same tool under another name: a type has one name, and the case needs thousands.
struct Named {
    spec: Arc<ToolSpec>,
    tool: Arc<dyn Tool>,
}

impl Tool for Named {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        self.tool.workspace()
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Arc::clone(&self.tool).prepare(arguments)
    }
}

/// Returns the nth typed tool.
pub(crate) fn typed(n: usize) -> Arc<dyn Tool> {
    let tool = TypedSearch.into_tool().expect("a tool");
    let mut spec = (**tool.spec()).clone();
    spec.name = ToolName::new(&case::name(n)).expect("a name");
    spec.concurrency_safe = true;
    Arc::new(Named {
        spec: Arc::new(spec),
        tool,
    })
}

/// Returns the nth tool from a closure: typed, without a permission of its own.
pub(crate) fn closure(n: usize) -> Arc<dyn Tool> {
    tool_fn(
        spec(n),
        |input: Search, _| async move { Ok(answer(&input)) },
    )
}
