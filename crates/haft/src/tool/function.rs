//! `#[tool]` functions: how a registry finds the tool of a function.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use crate::spec::NameError;
use crate::tool::Tool;

/// A `#[tool]` function linked into this program.
pub struct LinkedFunction {
    /// The function's type. Every function has its own type, which the registry uses to find its tool.
    pub function: fn() -> TypeId,
    /// Creates the tool.
    pub make: fn() -> Result<Arc<dyn Tool>, NameError>,
}

impl fmt::Debug for LinkedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkedFunction").finish_non_exhaustive()
    }
}

inventory::collect!(LinkedFunction);

/// Returns all `#[tool]` functions linked into this program; nothing is collected unless a host calls this.
///
/// # Errors
/// One of the tools has an invalid name.
pub fn collected() -> Result<Vec<Arc<dyn Tool>>, NameError> {
    inventory::iter::<LinkedFunction>
        .into_iter()
        .map(|found| (found.make)())
        .collect()
}

/// Returns the tool of a function of this type; `None` if it does not carry `#[tool]`.
pub(crate) fn tool_of<F: 'static>() -> Option<Result<Arc<dyn Tool>, NameError>> {
    let wanted = TypeId::of::<F>();
    let mut functions = inventory::iter::<LinkedFunction>.into_iter();
    let found = functions.find(|found| (found.function)() == wanted)?;
    Some((found.make)())
}

/// Returns the type of a function value; function types cannot be written down.
pub fn function_id<F: 'static>(_: &F) -> TypeId {
    TypeId::of::<F>()
}
