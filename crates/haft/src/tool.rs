//! `Tool`: a callable thing; `PreparedCall`: a call of one, its arguments taken in; `TypedTool`: the way to write one; `tool_fn`: one
//! from a closure.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::approval::preview::FileChange;
use crate::arguments::Arguments;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::permission::{Condition, Permission};
use crate::result::{Content, ToolResult};
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

/// A callable thing. Only the executor calls it.
///
/// What a tool needs (roots, clients, stores) enters through its constructor. Most tools are written with
/// [`#[tool]`](macro@crate::tool) or as a [`TypedTool`]; this trait is for those whose schema is known only while the program
/// runs:
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
    /// What it says of itself. The same answer for its whole life.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// The workspace that its paths and commands start in, for a tool that has one. The executor runs no call whose tool
    /// works in another workspace than the policy judges. None by default.
    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    /// What a tool is that stands for another one: a call of it is a call of that tool, before anything else looks at it. None by
    /// default.
    fn stand_in(&self) -> Option<&dyn StandIn> {
        None
    }

    /// Takes the arguments in once, for a tool that makes more of them than their text: the value that this returns is what
    /// the policy judges and what runs. None by default: the methods below are called with the arguments.
    ///
    /// # Errors
    /// The arguments are not what the tool takes.
    fn prepare(
        self: Arc<Self>,
        arguments: &Arguments,
    ) -> Result<Option<Box<dyn PreparedCall>>, ToolError> {
        let _ = arguments;
        Ok(None)
    }

    /// What a call with these arguments would do. Pure: no effects, no waiting.
    ///
    /// # Errors
    /// Why the arguments cannot be judged, such as a path outside the workspace: the call ends with it, and nothing runs.
    fn permissions(&self, arguments: &Arguments) -> Result<Vec<Permission>, ToolError> {
        let _ = arguments;
        Ok(Vec::new())
    }

    /// The names of the arguments that these permissions of the call state in full, at the top level. An approval for the
    /// session, or for good, covers other values of them as long as the permissions are the same; a call with another
    /// value of any other argument is asked about again. None by default.
    fn stated(&self, arguments: &Arguments, permissions: &[Permission]) -> &'static [&'static str] {
        let _ = (arguments, permissions);
        &[]
    }

    /// What settings decide about a call and its arguments do not say: how it is confined, what it reaches. Shown to the
    /// person who decides; an approval holds as long as it is the same.
    fn conditions(&self, arguments: &Arguments) -> Vec<Condition> {
        let _ = arguments;
        Vec::new()
    }

    /// What a call would make of which files, for the person who decides: read now, nothing changed. An approval holds
    /// as long as these files stay as they are.
    fn preview(&self, arguments: &Arguments) -> Vec<FileChange> {
        let _ = arguments;
        Vec::new()
    }

    /// The page that the spec's `ui` names, for a person who looks at the tool: no call, no effects. Who reads it from
    /// elsewhere reads no more than `most` bytes and one.
    fn page(&self, most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        let _ = most;
        Box::pin(async { Err(no_page(self.spec())) })
    }

    /// Runs it. Dropping the future ends the call; the tool must then leave nothing half-done.
    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>>;
}

/// A tool under a name and a schema of its own whose calls are calls of another tool ([`Tool::stand_in`]): admitted, judged, asked about,
/// recorded and answered as calls of that one. Where it has bound arguments, or arguments that its schema does not take, it is
/// called itself.
pub trait StandIn {
    /// The call of the other tool that one with these arguments stands for: its name and its arguments. Pure.
    fn stands_for(&self, arguments: &Arguments) -> (String, String);
}

/// A call whose arguments its tool has taken in ([`Tool::prepare`]): what is judged and what runs are this one value.
pub trait PreparedCall: Send + Sync {
    /// What it would do: see [`Tool::permissions`].
    ///
    /// # Errors
    /// The tool cannot say it.
    fn permissions(&self) -> Result<Vec<Permission>, ToolError>;

    /// The arguments that these permissions state in full: see [`Tool::stated`].
    fn stated(&self, permissions: &[Permission]) -> &'static [&'static str] {
        let _ = permissions;
        &[]
    }

    /// What settings decide about it: see [`Tool::conditions`].
    fn conditions(&self) -> Vec<Condition> {
        Vec::new()
    }

    /// What it would make of which files: see [`Tool::preview`].
    fn preview(&self) -> Vec<FileChange> {
        Vec::new()
    }

    /// Runs it: see [`Tool::call`].
    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>>;
}

/// The way to write a tool: its input is a type, the schema comes from it.
pub trait TypedTool: Send + Sync + 'static {
    /// The name callers use.
    const NAME: &'static str;
    /// What it does, for the model.
    const DESCRIPTION: &'static str;
    /// Its arguments.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Fills in the rest of the spec: risk, category, output schema, hints.
    fn describe(spec: ToolSpec) -> ToolSpec {
        spec
    }

    /// The workspace that its paths and commands start in: see [`Tool::workspace`].
    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    /// What a call with this input would do. Pure: no effects, no waiting.
    ///
    /// # Errors
    /// Why the arguments cannot be judged, such as a path outside the workspace: the call ends with it, and nothing runs.
    fn permissions(&self, input: &Self::Input) -> Result<Vec<Permission>, ToolError> {
        let _ = input;
        Ok(Vec::new())
    }

    /// The names of the arguments that these permissions of the call state in full: see [`Tool::stated`].
    fn stated(&self, input: &Self::Input, permissions: &[Permission]) -> &'static [&'static str] {
        let _ = (input, permissions);
        &[]
    }

    /// What settings decide about a call and its arguments do not say: see [`Tool::conditions`].
    fn conditions(&self, input: &Self::Input) -> Vec<Condition> {
        let _ = input;
        Vec::new()
    }

    /// What a call would make of which files, for the person who decides: read now, nothing changed. An approval holds
    /// as long as these files stay as they are.
    fn preview(&self, input: &Self::Input) -> Vec<FileChange> {
        let _ = input;
        Vec::new()
    }

    /// The page that the spec's `ui` names, for a person who looks at the tool; none where it names none.
    fn page(&self) -> Option<ToolPage> {
        None
    }

    /// Runs it.
    fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> + Send;

    /// Makes the object-safe tool of it.
    ///
    /// # Errors
    /// [`NameError`] where [`NAME`](Self::NAME) is not a valid tool name.
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

/// Tools that share one value, as [`#[tools]`](crate::tools) makes them of its methods.
pub trait ToolGroup: Send + Sync + 'static {
    /// Makes the tools.
    ///
    /// # Errors
    /// One of them has a name that no tool can have.
    fn into_tools(self: Arc<Self>) -> Result<Vec<Arc<dyn Tool>>, NameError>;
}

/// There is no page to show.
pub(crate) fn no_page(spec: &ToolSpec) -> ToolError {
    ToolError::not_found(format!("the tool {} has no page of its own", spec.name))
}

/// How schemas of tools are written: JSON Schema 2020-12, self-contained.
fn schema_settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    })
}

/// The JSON Schema (2020-12, self-contained) of a type, as a tool's input schema. It refuses arguments that the type does
/// not name, unless the type gathers them (`#[serde(flatten)]` on a map).
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

/// Whether a schema says nothing of other properties than those it names, and names all of them itself.
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

/// A typed tool behind the object-safe trait.
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

/// A call of a typed tool, with its input.
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

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Self { tool, input } = *self;
            tool.tool.run(input, context).await
        })
    }
}

/// What an async function may return to become a `ToolResult`.
///
/// Everything that serialises does: a string becomes text, any other value structured content.
pub trait IntoToolResult {
    /// Makes the result.
    ///
    /// # Errors
    /// What the function failed with, or that its value cannot be serialized to JSON.
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

/// A tool from a closure over a typed input.
///
/// `spec` carries name, description, risk; its input schema is replaced by that of `I`.
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

/// A closure behind the object-safe trait.
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
