//! `IntoTool`, `IntoTools`: the types that a registry can be built from.

use std::any::type_name;
use std::sync::Arc;

use crate::tool::{Tool, ToolGroup, TypedTool, tool_of};
use crate::toolset::registry::{RegistryError, ToolRegistry};

impl ToolRegistry {
    /// Adds a tool during construction: a `#[tool]` function by its name, a [`TypedTool`], or a tool in an `Arc`.
    ///
    /// # Errors
    /// The name is taken or invalid, a schema cannot be compiled, or the function does not carry `#[tool]`.
    pub fn with<Form>(self, tool: impl IntoTool<Form>) -> Result<Self, RegistryError> {
        self.add_all([tool.into_dyn_tool()?])?;
        Ok(self)
    }

    /// Adds the tools of a value's `#[tools]` methods during construction. An `Arc` of the value also works.
    ///
    /// # Errors
    /// As for [`with`](Self::with); in that case none of them is added.
    pub fn with_tools<Form>(self, tools: impl IntoTools<Form>) -> Result<Self, RegistryError> {
        self.add_all(tools.into_dyn_tools()?)?;
        Ok(self)
    }
}

/// A type that converts into a tool: a `#[tool]` function by its name, a [`TypedTool`], or a tool in an `Arc`.
///
/// `Form` distinguishes these and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "annotate the function with #[haft::tool], or implement TypedTool"
)]
pub trait IntoTool<Form> {
    /// Converts the value into a tool.
    ///
    /// # Errors
    /// The tool's name is invalid, or the function does not carry `#[tool]`.
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError>;
}

/// A type that converts into several tools: a value with `#[tools]` methods, an `Arc` of it, or a list of tools.
///
/// `Form` distinguishes these and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools",
    note = "annotate an impl block of it with #[haft::tools]"
)]
pub trait IntoTools<Form> {
    /// Converts the value into tools.
    ///
    /// # Errors
    /// One of the tools has an invalid name.
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError>;
}

/// The form of something that is already a tool.
#[derive(Debug)]
pub struct ToolMarker;

/// The form of a value that converts into one or more tools.
#[derive(Debug)]
pub struct IntoToolMarker;

/// The form of a value in an `Arc`.
#[derive(Debug)]
pub struct ArcMarker;

impl IntoTool<ToolMarker> for Arc<dyn Tool> {
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
        Ok(self)
    }
}

impl<T: Tool> IntoTool<ArcMarker> for Arc<T> {
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
        Ok(self)
    }
}

impl<T: TypedTool> IntoTool<IntoToolMarker> for T {
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
        Ok(self.into_tool()?)
    }
}

/// Implements `IntoTool` for functions with this number of arguments.
macro_rules! functions {
    ($($argument:ident)*) => {
        impl<F, R, $($argument),*> IntoTool<fn($($argument),*) -> R> for F
        where
            F: Fn($($argument),*) -> R + 'static,
        {
            fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
                let found = tool_of::<F>();
                let tool = found.ok_or(RegistryError::NotTool(type_name::<F>()))?;
                Ok(tool?)
            }
        }
    };
}

functions!();
functions!(A);
functions!(A B);
functions!(A B C);
functions!(A B C D);
functions!(A B C D E);
functions!(A B C D E G);
functions!(A B C D E G H);
functions!(A B C D E G H I);
functions!(A B C D E G H I J);
functions!(A B C D E G H I J K);
functions!(A B C D E G H I J K L);
functions!(A B C D E G H I J K L M);

impl IntoTools<ToolMarker> for Vec<Arc<dyn Tool>> {
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError> {
        Ok(self)
    }
}

impl<T: ToolGroup> IntoTools<ArcMarker> for Arc<T> {
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError> {
        Ok(self.into_tools()?)
    }
}

impl<T: ToolGroup> IntoTools<IntoToolMarker> for T {
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError> {
        Ok(Arc::new(self).into_tools()?)
    }
}
