//! `#[tool]` functions: how a registry finds the tool of a function.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use crate::spec::NameError;
use crate::tool::Tool;

/// A `#[tool]` function that is linked into this program.
pub struct Collected {
    /// The type of the function. Every function has a type of its own, by which a registry finds its tool.
    pub function: fn() -> TypeId,
    /// Makes the tool.
    pub make: fn() -> Result<Arc<dyn Tool>, NameError>,
}

impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collected").finish_non_exhaustive()
    }
}

inventory::collect!(Collected);

/// All `#[tool]` functions linked into this program; nothing is collected unless a host calls this.
///
/// # Errors
/// One of them has a name that no tool can have.
pub fn collected() -> Result<Vec<Arc<dyn Tool>>, NameError> {
    inventory::iter::<Collected>
        .into_iter()
        .map(|found| (found.make)())
        .collect()
}

/// The tool of a function of this type; none where it does not carry `#[tool]`.
pub(crate) fn tool_of<F: 'static>() -> Option<Result<Arc<dyn Tool>, NameError>> {
    let wanted = TypeId::of::<F>();
    let mut functions = inventory::iter::<Collected>.into_iter();
    let found = functions.find(|found| (found.function)() == wanted)?;
    Some((found.make)())
}

/// The type of a function that is named, which cannot be written down.
pub fn function_id<F: 'static>(_: &F) -> TypeId {
    TypeId::of::<F>()
}
