//! `tool_fn`: a tool from a closure.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::result::ToolResult;
use crate::spec::ToolSpec;
use crate::tool::{Depth, Intent, IntoToolResult, PreparedCall, Tool, input_schema};
use crate::workspace::Workspace;

/// Creates a tool from a closure over a typed input. Its calls state no effects: rules decide by the tool's name and risk.
///
/// `spec` carries the name, description and risk; its input schema is replaced by that of `I`.
pub fn tool_fn<I, F, R, O>(mut spec: ToolSpec, function: F) -> Arc<dyn Tool>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(I, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolResult + Send + 'static,
{
    spec.input_schema = Arc::new(input_schema::<I>());
    Arc::new(ClosureTool {
        spec: Arc::new(spec),
        body: function,
        input: PhantomData::<fn(I)>,
    })
}

/// Adapts a closure to the object-safe trait.
struct ClosureTool<I, F> {
    spec: Arc<ToolSpec>,
    body: F,
    input: PhantomData<fn(I)>,
}

impl<I, F, R, O> Tool for ClosureTool<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(I, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolResult + Send + 'static,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(ClosureCall {
            input: arguments.parse::<I>()?,
            tool: self,
        }))
    }
}

/// A call of a closure, with its parsed input.
struct ClosureCall<I, F> {
    tool: Arc<ClosureTool<I, F>>,
    input: I,
}

impl<I, F, R, O> PreparedCall for ClosureCall<I, F>
where
    I: Send + Sync + 'static,
    F: Fn(I, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolResult + Send + 'static,
{
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Self { tool, input } = *self;
            let value = (tool.body)(input, context.clone()).await?;
            value.into_tool_result()
        })
    }
}
