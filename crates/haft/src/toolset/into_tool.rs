//! `IntoTool`, `IntoTools`: what a registry is built with.

use std::any::type_name;
use std::sync::Arc;

use crate::tool::{Tool, ToolGroup, TypedTool, tool_of};
use crate::toolset::registry::{RegistryError, ToolRegistry};

impl ToolRegistry {
    /// Adds a tool while building: a `#[tool]` function by its name, a [`TypedTool`], or a tool in an `Arc`.
    ///
    /// # Errors
    /// The name is taken or no tool's name, a schema cannot be compiled, or the function does not carry `#[tool]`.
    pub fn with<Form>(self, tool: impl IntoTool<Form>) -> Result<Self, RegistryError> {
        self.add_all([tool.into_dyn_tool()?])?;
        Ok(self)
    }

    /// Adds the tools of a value while building: those of its `#[tools]` methods. An `Arc` of it will do as well.
    ///
    /// # Errors
    /// As for [`with`](Self::with); none of them is added then.
    pub fn with_tools<Form>(self, tools: impl IntoTools<Form>) -> Result<Self, RegistryError> {
        self.add_all(tools.into_dyn_tools()?)?;
        Ok(self)
    }
}

/// What becomes a tool: a `#[tool]` function by its name, a [`TypedTool`], or a tool in an `Arc`.
///
/// `Form` tells these apart and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "annotate the function with #[haft::tool], or implement TypedTool"
)]
pub trait IntoTool<Form> {
    /// The tool.
    ///
    /// # Errors
    /// The name is no tool's name, or the function does not carry `#[tool]`.
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError>;
}

/// What becomes several tools: a value with `#[tools]` methods, an `Arc` of it, or a list of tools.
///
/// `Form` tells these apart and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools",
    note = "annotate an impl block of it with #[haft::tools]"
)]
pub trait IntoTools<Form> {
    /// The tools.
    ///
    /// # Errors
    /// One of them has a name that no tool can have.
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError>;
}

/// The form of a tool that is made already.
#[derive(Debug)]
pub struct Made;

/// The form of a value that a tool, or several, are made of.
#[derive(Debug)]
pub struct Value;

/// The form of a value in an `Arc`.
#[derive(Debug)]
pub struct Shared;

impl IntoTool<Made> for Arc<dyn Tool> {
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
        Ok(self)
    }
}

impl<T: Tool> IntoTool<Shared> for Arc<T> {
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
        Ok(self)
    }
}

impl<T: TypedTool> IntoTool<Value> for T {
    fn into_dyn_tool(self) -> Result<Arc<dyn Tool>, RegistryError> {
        Ok(self.into_tool()?)
    }
}

/// Functions of so many arguments.
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

impl IntoTools<Made> for Vec<Arc<dyn Tool>> {
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError> {
        Ok(self)
    }
}

impl<T: ToolGroup> IntoTools<Shared> for Arc<T> {
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError> {
        Ok(self.into_tools()?)
    }
}

impl<T: ToolGroup> IntoTools<Value> for T {
    fn into_dyn_tools(self) -> Result<Vec<Arc<dyn Tool>>, RegistryError> {
        Ok(Arc::new(self).into_tools()?)
    }
}
