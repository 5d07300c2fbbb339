//! Tools in toolsets: how a registry gets them, and how the executor finds in an entry the tool to call.

use std::any::Any;
use std::sync::Arc;

use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::spec::{ToolPage, ToolSpec};
use crate::tool::Tool;
use crate::toolset::held::HeldTool;
use crate::toolset::registry::{RegistryDiff, RegistryError, ToolRegistry};
use crate::toolset::{ToolBackend, ToolEntry};

/// The only [`HeldTool`]: a toolset that holds a tool holds this.
struct CallableTool(Arc<dyn Tool>);

impl HeldTool for CallableTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.0.spec()
    }

    fn is_same(&self, other: &dyn HeldTool) -> bool {
        let other: &dyn Any = other;
        let other = other.downcast_ref::<Self>();
        other.is_some_and(|other| Arc::ptr_eq(&self.0, &other.0))
    }

    fn page(&self, most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>> {
        self.0.page(most)
    }
}

fn held(tool: Arc<dyn Tool>) -> Arc<dyn HeldTool> {
    Arc::new(CallableTool(tool))
}

impl ToolEntry {
    /// Returns the tool to call; `None` unless this process runs it.
    pub(crate) fn tool(&self) -> Option<&Arc<dyn Tool>> {
        let ToolBackend::Local(held) = &self.run else {
            return None;
        };
        let held: &dyn Any = &**held;
        held.downcast_ref().map(|CallableTool(tool)| tool)
    }
}

impl ToolRegistry {
    /// Adds tools; adds none of them if one clashes.
    ///
    /// # Errors
    /// [`RegistryError::Clash`] if a tool of this name exists, [`RegistryError::Schema`] if a schema is invalid.
    pub fn add_all(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<RegistryDiff, RegistryError> {
        self.add_held(tools.into_iter().map(held))
    }

    /// Adds a tool or replaces the one with the same name and source; never replaces a tool of another source.
    ///
    /// # Errors
    /// [`RegistryError::Clash`] if a tool of this name exists, [`RegistryError::Schema`] if a schema is invalid.
    pub fn upsert(&self, tool: Arc<dyn Tool>) -> Result<RegistryDiff, RegistryError> {
        self.upsert_held(held(tool))
    }

    /// Replaces all tools of one source at once; changes nothing if one of them clashes with a tool of another source.
    ///
    /// # Errors
    /// [`RegistryError::Clash`] if a tool of this name exists, [`RegistryError::Schema`] if a schema is invalid.
    pub fn replace_all(
        &self,
        source: &str,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<RegistryDiff, RegistryError> {
        self.replace_held(source, tools.into_iter().map(held))
    }
}
