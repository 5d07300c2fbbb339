//! `Builtin`: a standard tool, and the bundle that enables it.

use std::sync::Arc;

use haft::tool::Tool;

/// A standard tool, and whether it is on by default.
#[derive(Clone)]
pub struct Builtin {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// The bundle that enables the tool: `files`, `commands`, `web`; empty for tools without a bundle.
    pub bundle: &'static str,
    /// True for a tool of the default set. Other tools exist only if the settings enable them.
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
