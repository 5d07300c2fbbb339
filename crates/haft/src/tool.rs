//! `Tool`: something callable; `PreparedCall`: a call whose arguments are parsed; `TypedTool`: the usual way to write a tool;
//! `tool_fn`: a tool from a closure.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::approval::meaning::Meaning;
use crate::approval::preview::FileChange;
use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::permission::{Condition, Permission};
use crate::result::{Content, Failure, ToolResult};
use crate::spec::{NameError, ToolName, ToolPage, ToolSpec};
use crate::workspace::Workspace;

mod function;
mod returned;

#[doc(hidden)]
pub use function::function_id;
pub(crate) use function::tool_of;
pub use function::{Collected, collected};
#[doc(hidden)]
pub use returned::{Fallible, Returned, WithoutSchema, returned_result, returned_value};

/// Something callable. Only the executor calls it.
///
/// A tool gets what it needs (roots, clients, stores) through its constructor. Most tools are written with
/// [`#[tool]`](macro@crate::tool) or as a [`TypedTool`]; this trait is for tools whose schema is known only at run time:
///
/// ```
/// use std::sync::Arc;
/// use haft::arguments::Arguments;
/// use haft::future::BoxFuture;
/// use haft::{CallContext, Tool, ToolError, ToolName, ToolRegistry, ToolResult, ToolSpec};
/// use serde_json::Value;
///
/// struct Forward(Arc<ToolSpec>);
///
/// impl Tool for Forward {
///     fn spec(&self) -> &Arc<ToolSpec> {
///         &self.0
///     }
///
///     fn call<'a>(
///         &'a self,
///         arguments: &'a Arguments,
///         context: &'a CallContext,
///     ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
///         Box::pin(async move { ToolResult::data(&arguments.value()) })
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
    /// workspace other than the one the policy judges. `None` by default.
    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    /// Returns the stand-in, for a tool that represents another one: its calls become calls of that tool before anything else looks at
    /// them. `None` by default.
    fn stand_in(&self) -> Option<&dyn StandIn> {
        None
    }

    /// Parses the arguments once. The policy judges the returned value, and the same value runs. `None` by default: then the methods
    /// below are called with the arguments.
    ///
    /// # Errors
    /// The tool does not accept the arguments.
    fn prepare(
        self: Arc<Self>,
        arguments: &Arguments,
    ) -> Result<Option<Box<dyn PreparedCall>>, ToolError> {
        let _ = arguments;
        Ok(None)
    }

    /// Returns what a call with these arguments would do. Pure: no effects, no waiting.
    ///
    /// # Errors
    /// Why the arguments cannot be judged, such as a path outside the workspace. The call ends with this error, and nothing runs.
    fn permissions(&self, arguments: &Arguments) -> Result<Vec<Permission>, ToolError> {
        let _ = arguments;
        Ok(Vec::new())
    }

    /// Returns the names of the top-level arguments that these permissions state in full. An approval for the session, or for good,
    /// covers other values of them while the permissions stay the same; a call that changes any other argument needs approval
    /// again. Empty by default.
    fn stated(&self, arguments: &Arguments, permissions: &[Permission]) -> &'static [&'static str] {
        let _ = (arguments, permissions);
        &[]
    }

    /// Returns what settings, not arguments, decide about a call: how it is confined, what it can reach. The user sees it in the
    /// request, and an approval holds only while it stays the same.
    fn conditions(&self, arguments: &Arguments) -> Vec<Condition> {
        let _ = arguments;
        Vec::new()
    }

    /// Returns a preview of the files that a call would change, for the approval request: read now, nothing is changed. An approval
    /// holds only while these files stay as they are.
    fn preview(&self, arguments: &Arguments) -> Vec<FileChange> {
        let _ = arguments;
        Vec::new()
    }

    /// Returns what these changes amount to, for the approval request: a commit rather than the files in which git stores it.
    fn meanings(&self, arguments: &Arguments) -> Vec<Meaning> {
        let _ = arguments;
        Vec::new()
    }

    /// Returns what is known of the call that this one carries on, where this one does not run on its decision: `why` says why not. Pure;
    /// `None` by default, as for every call that carries on no other.
    fn without_running(&self, arguments: &Arguments, why: &Failure) -> Option<ToolResult> {
        let _ = (arguments, why);
        None
    }

    /// Returns the page that the spec's `ui` names, for a user who looks at the tool: no call, no effects. An implementation that
    /// fetches it from elsewhere reads at most `most` bytes plus one.
    fn page(&self, most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        let _ = most;
        Box::pin(async { Err(no_page(self.spec())) })
    }

    /// Runs the call. Dropping the future ends it; the tool must then leave nothing half-done.
    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>>;
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
    /// Returns what it would do: see [`Tool::permissions`].
    ///
    /// # Errors
    /// The tool cannot tell.
    fn permissions(&self) -> Result<Vec<Permission>, ToolError>;

    /// Returns the arguments that these permissions state in full: see [`Tool::stated`].
    fn stated(&self, permissions: &[Permission]) -> &'static [&'static str] {
        let _ = permissions;
        &[]
    }

    /// Returns what settings decide about it: see [`Tool::conditions`].
    fn conditions(&self) -> Vec<Condition> {
        Vec::new()
    }

    /// Returns a preview of the files it would change: see [`Tool::preview`].
    fn preview(&self) -> Vec<FileChange> {
        Vec::new()
    }

    /// Returns what these changes amount to: see [`Tool::meanings`].
    fn meanings(&self) -> Vec<Meaning> {
        Vec::new()
    }

    /// Runs it: see [`Tool::call`].
    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>>;
}

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

    /// Returns what a call with this input would do. Pure: no effects, no waiting.
    ///
    /// # Errors
    /// Why the arguments cannot be judged, such as a path outside the workspace. The call ends with this error, and nothing runs.
    fn permissions(&self, input: &Self::Input) -> Result<Vec<Permission>, ToolError> {
        let _ = input;
        Ok(Vec::new())
    }

    /// Returns the names of the arguments that these permissions state in full: see [`Tool::stated`].
    fn stated(&self, input: &Self::Input, permissions: &[Permission]) -> &'static [&'static str] {
        let _ = (input, permissions);
        &[]
    }

    /// Returns what settings, not arguments, decide about a call: see [`Tool::conditions`].
    fn conditions(&self, input: &Self::Input) -> Vec<Condition> {
        let _ = input;
        Vec::new()
    }

    /// Returns a preview of the files that a call would change: see [`Tool::preview`].
    fn preview(&self, input: &Self::Input) -> Vec<FileChange> {
        let _ = input;
        Vec::new()
    }

    /// Returns what these changes amount to: see [`Tool::meanings`].
    fn meanings(&self, input: &Self::Input) -> Vec<Meaning> {
        let _ = input;
        Vec::new()
    }

    /// Returns what is known of the call that this one carries on: see [`Tool::without_running`].
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

    fn permissions(&self, input: &T::Input) -> Result<Vec<Permission>, ToolError> {
        T::permissions(self, input)
    }

    fn stated(&self, input: &T::Input, permissions: &[Permission]) -> &'static [&'static str] {
        T::stated(self, input, permissions)
    }

    fn conditions(&self, input: &T::Input) -> Vec<Condition> {
        T::conditions(self, input)
    }

    fn preview(&self, input: &T::Input) -> Vec<FileChange> {
        T::preview(self, input)
    }

    fn meanings(&self, input: &T::Input) -> Vec<Meaning> {
        T::meanings(self, input)
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

/// Tools that share one value, as [`#[tools]`](crate::tools) creates them from its methods.
pub trait ToolGroup: Send + Sync + 'static {
    /// Converts the group into its tools.
    ///
    /// # Errors
    /// One of the tools has an invalid name.
    fn into_tools(self: Arc<Self>) -> Result<Vec<Arc<dyn Tool>>, NameError>;
}

/// Returns the error of a tool without a page.
pub(crate) fn no_page(spec: &ToolSpec) -> ToolError {
    ToolError::not_found(format!("the tool {} has no page of its own", spec.name))
}

/// Returns the settings for tool schemas: JSON Schema 2020-12, self-contained.
fn schema_settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    })
}

/// Returns the JSON Schema (2020-12, self-contained) of a type, as a tool's input schema. It rejects arguments that the type does
/// not name, unless the type collects them (`#[serde(flatten)]` on a map).
pub fn input_schema<T: JsonSchema>() -> Value {
    let generator = schema_settings().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("title");
    if schema.get("type").is_none() {
        schema.insert("type".into(), "object".into());
    }
    if schema.get("properties").is_none() {
        schema.insert("properties".into(), Value::Object(serde_json::Map::new()));
    }
    if is_closed_by_default(&schema) {
        schema.insert("additionalProperties".into(), false.into());
    }
    schema.to_value()
}

/// Returns whether a schema names all its properties itself and does not mention others.
fn is_closed_by_default(schema: &Schema) -> bool {
    const OPEN: [&str; 8] = [
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
    ];
    OPEN.iter().all(|key| schema.get(*key).is_none())
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

    fn prepare(
        self: Arc<Self>,
        arguments: &Arguments,
    ) -> Result<Option<Box<dyn PreparedCall>>, ToolError> {
        Ok(Some(Box::new(TypedCall {
            input: arguments.parse()?,
            tool: self,
        })))
    }

    fn permissions(&self, arguments: &Arguments) -> Result<Vec<Permission>, ToolError> {
        self.tool.permissions(&arguments.parse()?)
    }

    fn stated(&self, arguments: &Arguments, permissions: &[Permission]) -> &'static [&'static str] {
        let input = arguments.parse::<T::Input>();
        input.map_or(&[], |input| self.tool.stated(&input, permissions))
    }

    fn conditions(&self, arguments: &Arguments) -> Vec<Condition> {
        let input = arguments.parse::<T::Input>();
        input
            .map(|input| self.tool.conditions(&input))
            .unwrap_or_default()
    }

    fn preview(&self, arguments: &Arguments) -> Vec<FileChange> {
        let input = arguments.parse::<T::Input>();
        input
            .map(|input| self.tool.preview(&input))
            .unwrap_or_default()
    }

    fn meanings(&self, arguments: &Arguments) -> Vec<Meaning> {
        let input = arguments.parse::<T::Input>();
        input
            .map(|input| self.tool.meanings(&input))
            .unwrap_or_default()
    }

    fn without_running(&self, arguments: &Arguments, why: &Failure) -> Option<ToolResult> {
        let input = arguments.parse::<T::Input>().ok()?;
        self.tool.without_running(&input, why)
    }

    fn page(&self, _most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        Box::pin(async { self.tool.page().ok_or_else(|| no_page(&self.spec)) })
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let input = arguments.parse()?;
            self.tool.run(input, context).await
        })
    }
}

/// A call of a typed tool, with its parsed input.
struct TypedCall<T: TypedTool> {
    tool: Arc<Erased<T>>,
    input: T::Input,
}

impl<T: TypedTool> TypedCall<T> {
    fn tool(&self) -> &T {
        &self.tool.tool
    }
}

impl<T: TypedTool> PreparedCall for TypedCall<T> {
    fn permissions(&self) -> Result<Vec<Permission>, ToolError> {
        self.tool().permissions(&self.input)
    }

    fn stated(&self, permissions: &[Permission]) -> &'static [&'static str] {
        self.tool().stated(&self.input, permissions)
    }

    fn conditions(&self) -> Vec<Condition> {
        self.tool().conditions(&self.input)
    }

    fn preview(&self) -> Vec<FileChange> {
        self.tool().preview(&self.input)
    }

    fn meanings(&self) -> Vec<Meaning> {
        self.tool().meanings(&self.input)
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Self { tool, input } = *self;
            tool.tool.run(input, context).await
        })
    }
}

/// A value that an async function may return to become a `ToolResult`.
///
/// Everything that serialises implements it: a string becomes text, any other value structured content.
pub trait IntoToolResult {
    /// Converts the value into a result.
    ///
    /// # Errors
    /// The function's own error, or the error that its value cannot be serialized to JSON.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl<T: Serialize> IntoToolResult for T {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        let result = ToolResult::data(&self)?;
        let json = result.data.as_ref().map_or("null", |raw| raw.get());
        if json == "null" {
            return Ok(ToolResult::default());
        }
        if json.starts_with('"')
            && let Ok(text) = serde_json::from_str::<String>(json)
        {
            return Ok(ToolResult {
                content: vec![Content::text(text)],
                ..ToolResult::default()
            });
        }
        Ok(result)
    }
}

/// Creates a tool from a closure over a typed input.
///
/// `spec` carries the name, description and risk; its input schema is replaced by that of `I`.
pub fn tool_fn<I, F, R, O>(mut spec: ToolSpec, function: F) -> Arc<dyn Tool>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(I, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolResult + Send + 'static,
{
    spec.input_schema = Arc::new(input_schema::<I>());
    Arc::new(Function {
        spec: Arc::new(spec),
        body: function,
        input: PhantomData::<fn(I)>,
    })
}

/// Adapts a closure to the object-safe trait.
struct Function<I, F> {
    spec: Arc<ToolSpec>,
    body: F,
    input: PhantomData<fn(I)>,
}

impl<I, F, R, O> Tool for Function<I, F>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(I, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: IntoToolResult + Send + 'static,
{
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let input = arguments.parse::<I>()?;
            (self.body)(input, context.clone())
                .await?
                .into_tool_result()
        })
    }
}
