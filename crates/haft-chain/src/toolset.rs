//! `ChainTools`: a toolset with `tool_chain` in it, whose description follows the available tools.

use std::sync::Arc;

use haft::tool::Tool;
use haft::toolset::registry::{RegistryError, ToolRegistry};
use haft::toolset::view::{DerivedToolset, merged};
use haft::toolset::{Toolset, ToolsetChanges, ToolsetSnapshot};
use parking_lot::Mutex;

use crate::stub::stub;
use crate::tool::ChainTool;

/// Returns all tools of `base`, and `tool_chain`.
///
/// # Errors
/// [`RegistryError::Clash`] if `base` already has a tool named `tool_chain`.
pub fn chain_tools(base: Arc<dyn Toolset>, tool: ChainTool) -> Result<ChainTools, RegistryError> {
    let registry = Arc::new(ToolRegistry::new());
    let own: Arc<dyn Toolset> = Arc::clone(&registry) as _;
    let tools = ChainTools {
        all: merged([Arc::clone(&base), own]),
        base,
        registry,
        tool,
        described: Mutex::new(None),
    };
    tools.describe()?;
    Ok(tools)
}

/// A toolset and `tool_chain`.
#[derive(Debug)]
pub struct ChainTools {
    base: Arc<dyn Toolset>,
    registry: Arc<ToolRegistry>,
    all: DerivedToolset,
    tool: ChainTool,
    /// The version of `base` that the description is based on.
    described: Mutex<Option<u64>>,
}

impl ChainTools {
    /// Updates the tool's description if the other tools have changed.
    fn describe(&self) -> Result<(), RegistryError> {
        let mut described = self.described.lock();
        let version = self.base.version();
        if *described == Some(version) {
            return Ok(());
        }
        let tool: Arc<dyn Tool> = Arc::new(self.tool.with_stub(&stub(&self.base.snapshot()))?);
        self.registry.upsert(tool)?;
        *described = Some(version);
        Ok(())
    }

    fn follow(&self) {
        if let Err(error) = self.describe() {
            tracing::warn!(%error, "tool_chain is described by tools that were");
        }
    }
}

impl Toolset for ChainTools {
    fn snapshot(&self) -> Arc<ToolsetSnapshot> {
        self.follow();
        self.all.snapshot()
    }

    fn version(&self) -> u64 {
        self.follow();
        self.all.version()
    }

    fn changes(&self) -> ToolsetChanges {
        self.all.changes()
    }
}
