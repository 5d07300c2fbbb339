//! `HeldTool`: what toolsets need of a tool that this process runs. They hold and compare it; how it is called is known above them.

use std::any::Any;
use std::sync::Arc;

use crate::error::ToolError;
use crate::future::BoxFuture;
use crate::spec::{ToolPage, ToolSpec};

/// A tool of this process, as toolsets hold it. `tool/held.rs` implements it, and finds in it the tool that can be called.
pub(crate) trait HeldTool: Any + Send + Sync {
    /// Returns the tool's spec.
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Returns whether both hold the very same tool.
    fn is_same(&self, other: &dyn HeldTool) -> bool;

    /// Reads the page that the tool's `ui` names, of at most `most` bytes.
    fn page(&self, most: usize) -> BoxFuture<'_, Result<ToolPage, ToolError>>;
}
