//! `Tool`: something callable; `PreparedCall`: a call whose arguments its tool has parsed; `StandIn`: a tool whose calls are calls of
//! another; `ToolGroup`: tools that share one value.

use std::sync::Arc;

use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::permission::Permission;
use crate::result::{Failure, ToolResult};
use crate::spec::{NameError, ToolPage, ToolSpec};
use crate::toolset::page::no_page;
use crate::workspace::Workspace;

mod closure;
mod function;
mod held;
mod intent;
pub mod into_tool;
mod returned;
mod schema;
mod typed;

pub use closure::tool_fn;
#[doc(hidden)]
pub use function::function_id;
pub(crate) use function::tool_of;
pub use function::{LinkedFunction, collected};
pub use intent::{Depth, Intent};
pub use returned::IntoToolResult;
#[doc(hidden)]
pub use returned::{Fallible, OutputType, WithoutSchema, returned_result, returned_value};
pub use schema::input_schema;
pub use typed::TypedTool;

/// Something callable. Only the executor calls it.
///
/// A tool gets what it needs (roots, clients, stores) through its constructor. Most tools are written with
/// [`#[tool]`](macro@crate::tool) or as a [`TypedTool`]; this trait is for tools whose schema is known only at run time:
///
/// ```
/// use std::sync::Arc;
/// use haft::arguments::Arguments;
/// use haft::future::BoxFuture;
/// use haft::tool::{Depth, PreparedCall};
/// use haft::workspace::Workspace;
/// use haft::{CallContext, Intent, Tool, ToolError, ToolName, ToolRegistry, ToolResult, ToolSpec};
/// use serde_json::Value;
///
/// struct Forward(Arc<ToolSpec>);
///
/// impl Tool for Forward {
///     fn spec(&self) -> &Arc<ToolSpec> {
///         &self.0
///     }
///
///     fn workspace(&self) -> Option<&Workspace> {
///         None
///     }
///
///     fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
///         Ok(Box::new(Forwarding(arguments.value())))
///     }
/// }
///
/// struct Forwarding(Value);
///
/// impl PreparedCall for Forwarding {
///     fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
///         Ok(Intent::call_only())
///     }
///
///     fn run(self: Box<Self>, _: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
///         Box::pin(async move { ToolResult::data(&self.0) })
///     }
/// }
///
/// let schema: Value = serde_json::from_str(r#"{"type": "object"}"#)?;
/// let spec = ToolSpec::new(ToolName::new("forward")?, "Give the arguments back.", schema);
/// let tools = ToolRegistry::new().with(Arc::new(Forward(Arc::new(spec))))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Returns the tool's spec; the same one every time.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Returns the workspace that its paths and commands start in, if it has one. The executor refuses calls whose tool works in a
    /// workspace other than the one the policy judges. A tool that wraps another one returns that tool's.
    fn workspace(&self) -> Option<&Workspace>;

    /// Returns the stand-in, for a tool that represents another one: its calls become calls of that tool before anything else looks at
    /// them. `None` by default.
    fn stand_in(&self) -> Option<&dyn StandIn> {
        None
    }

    /// Parses the arguments once. The policy judges the returned call, and the same value runs.
    ///
    /// # Errors
    /// The tool does not accept the arguments.
    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError>;

    /// Returns the page that the spec's `ui` names, for a user who looks at the tool: no call, no effects. An implementation that
    /// fetches it from elsewhere reads at most `most` bytes plus one.
    fn page(&self, most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        let _ = most;
        Box::pin(async { Err(no_page(self.spec())) })
    }
}

/// A tool with its own name and schema whose calls become calls of another tool ([`Tool::stand_in`]): they are admitted, judged,
/// approved, recorded and answered as calls of that tool. With bound arguments, or with arguments that its schema rejects, it is
/// called itself.
pub trait StandIn {
    /// Returns the name and arguments of the call that these arguments represent. Pure.
    fn stands_for(&self, arguments: &Arguments) -> (String, String);
}

/// A call whose arguments its tool has parsed ([`Tool::prepare`]): the same value is judged and run.
pub trait PreparedCall: Send + Sync {
    /// Returns what the call would do. Pure: no effects, no waiting. The executor asks again whenever it needs to know: before it rules,
    /// for a request, and just before an approved call runs.
    ///
    /// # Errors
    /// Why the call cannot be judged, such as a path outside the workspace. The call ends with this error, and nothing runs.
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError>;

    /// Returns the same intent without its permissions, and passes these to `each`, in the same order. A call that may need very many
    /// does so without holding all of them.
    ///
    /// # Errors
    /// Those of [`intent`](Self::intent). What was passed before means nothing then.
    fn intent_in_parts(
        &self,
        depth: Depth,
        each: &mut dyn FnMut(Permission),
    ) -> Result<Intent, ToolError> {
        Ok(self.intent(depth)?.pass_permissions(each))
    }

    /// Returns what is known of the call that this one carries on, where this one does not run on its decision: `why` says why not. Pure;
    /// `None` by default, as for every call that carries on no other.
    fn without_running(&self, why: &Failure) -> Option<ToolResult> {
        let _ = why;
        None
    }

    /// Runs the call. Dropping the future ends it; the tool must then leave nothing half-done.
    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>>;
}

/// Tools that share one value, as [`#[tools]`](crate::tools) creates them from its methods.
pub trait ToolGroup: Send + Sync + 'static {
    /// Converts the group into its tools.
    ///
    /// # Errors
    /// One of the tools has an invalid name.
    fn into_tools(self: Arc<Self>) -> Result<Vec<Arc<dyn Tool>>, NameError>;
}
