//! `TypedTool`: the usual way to write a tool, over a type of its arguments.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::permission::Permission;
use crate::result::{Failure, ToolResult};
use crate::spec::{NameError, ToolName, ToolPage, ToolSpec};
use crate::tool::{Depth, Intent, PreparedCall, Tool, input_schema};
use crate::toolset::page::no_page;
use crate::workspace::Workspace;

/// The usual way to write a tool: its input is a type, and the schema is derived from it.
pub trait TypedTool: Send + Sync + 'static {
    /// The name that callers use.
    const NAME: &'static str;
    /// The description for the model.
    const DESCRIPTION: &'static str;
    /// The type of its arguments.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Fills in the rest of the spec: risk, category, output schema, hints.
    fn describe(spec: ToolSpec) -> ToolSpec {
        spec
    }

    /// Returns the workspace that its paths and commands start in: see [`Tool::workspace`].
    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    /// Returns what a call with this input would do: see [`PreparedCall::intent`]. What is costly to read is read only at the
    /// [`Depth`] that needs it.
    ///
    /// # Errors
    /// Why the call cannot be judged, such as a path outside the workspace. The call ends with this error, and nothing runs.
    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError>;

    /// Returns the same intent without its permissions, and passes these to `each`: see [`PreparedCall::intent_in_parts`].
    ///
    /// # Errors
    /// Those of [`intent`](Self::intent). What was passed before means nothing then.
    fn intent_in_parts(
        &self,
        input: &Self::Input,
        depth: Depth,
        each: &mut dyn FnMut(Permission),
    ) -> Result<Intent, ToolError> {
        Ok(self.intent(input, depth)?.pass_permissions(each))
    }

    /// Returns what is known of the call that this one carries on: see [`PreparedCall::without_running`].
    fn without_running(&self, input: &Self::Input, why: &Failure) -> Option<ToolResult> {
        let _ = (input, why);
        None
    }

    /// Returns the page that the spec's `ui` names, for a user who looks at the tool; `None` if it names none.
    fn page(&self) -> Option<ToolPage> {
        None
    }

    /// Runs the call.
    fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> + Send;

    /// Converts it into an object-safe tool.
    ///
    /// # Errors
    /// [`NameError`] if [`NAME`](Self::NAME) is not a valid tool name.
    fn into_tool(self) -> Result<Arc<dyn Tool>, NameError>
    where
        Self: Sized,
    {
        let schema = input_schema::<Self::Input>();
        let spec = ToolSpec::new(ToolName::new(Self::NAME)?, Self::DESCRIPTION, schema);
        Ok(Arc::new(Erased {
            spec: Arc::new(Self::describe(spec)),
            tool: self,
        }))
    }
}

impl<T: TypedTool> TypedTool for Arc<T> {
    const NAME: &'static str = T::NAME;
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    type Input = T::Input;

    fn describe(spec: ToolSpec) -> ToolSpec {
        T::describe(spec)
    }

    fn workspace(&self) -> Option<&Workspace> {
        T::workspace(self)
    }

    fn intent(&self, input: &T::Input, depth: Depth) -> Result<Intent, ToolError> {
        T::intent(self, input, depth)
    }

    fn intent_in_parts(
        &self,
        input: &T::Input,
        depth: Depth,
        each: &mut dyn FnMut(Permission),
    ) -> Result<Intent, ToolError> {
        T::intent_in_parts(self, input, depth, each)
    }

    fn without_running(&self, input: &T::Input, why: &Failure) -> Option<ToolResult> {
        T::without_running(self, input, why)
    }

    fn page(&self) -> Option<ToolPage> {
        T::page(self)
    }

    fn run(
        &self,
        input: T::Input,
        context: &CallContext,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> + Send {
        T::run(self, input, context)
    }
}

/// Adapts a typed tool to the object-safe trait.
struct Erased<T> {
    spec: Arc<ToolSpec>,
    tool: T,
}

impl<T: TypedTool> Tool for Erased<T> {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        self.tool.workspace()
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(TypedCall {
            input: arguments.parse()?,
            tool: self,
        }))
    }

    fn page(&self, _most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        Box::pin(async { self.tool.page().ok_or_else(|| no_page(&self.spec)) })
    }
}

/// A call of a typed tool, with its parsed input.
struct TypedCall<T: TypedTool> {
    tool: Arc<Erased<T>>,
    input: T::Input,
}

impl<T: TypedTool> PreparedCall for TypedCall<T> {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        self.tool.tool.intent(&self.input, depth)
    }

    fn intent_in_parts(
        &self,
        depth: Depth,
        each: &mut dyn FnMut(Permission),
    ) -> Result<Intent, ToolError> {
        let tool = &self.tool.tool;
        tool.intent_in_parts(&self.input, depth, each)
    }

    fn without_running(&self, why: &Failure) -> Option<ToolResult> {
        self.tool.tool.without_running(&self.input, why)
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Self { tool, input } = *self;
            tool.tool.run(input, context).await
        })
    }
}
