//! `Builtin`: a standard tool, and what enables it.

use std::sync::Arc;

use haft::tool::Tool;

/// A standard tool, and whether it is there without being asked for.
#[derive(Clone)]
pub struct Builtin {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The bundle that enables it: `files`, `commands`, `web`; empty for tools of no bundle.
    pub bundle: &'static str,
    /// Part of the default set. The others exist only where settings enable them.
    pub default: bool,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builtin")
            .field("tool", &self.tool.spec().name)
            .field("bundle", &self.bundle)
            .field("default", &self.default)
            .finish()
    }
}
