//! `ReplaceableToolset`: a toolset that can be replaced by another while sessions use it.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::toolset::{Toolset, ToolsetChanges, ToolsetSnapshot};

/// A toolset that can be replaced by another while sessions use it: they see the new tools the next time they look.
///
/// ```
/// use std::sync::Arc;
/// use haft::toolset::{Toolset, registry::ToolRegistry, view::ReplaceableToolset};
/// use haft::tool;
///
/// /// Add two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 { a + b }
///
/// let tools = ReplaceableToolset::new(Arc::new(ToolRegistry::new()));
/// let before = tools.version();
/// tools.replace(Arc::new(ToolRegistry::new().with(add)?));
/// assert!(tools.version() > before && tools.snapshot().entry("add").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReplaceableToolset {
    current: RwLock<CurrentToolset>,
    replaced: watch::Sender<u64>,
}

struct CurrentToolset {
    tools: Arc<dyn Toolset>,
    /// The base of its versions, so that the overall version only increases.
    base: u64,
    /// The last snapshot, with the version of `tools` that it shows.
    cached: Option<(u64, Arc<ToolsetSnapshot>)>,
}

impl std::fmt::Debug for ReplaceableToolset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplaceableToolset").finish_non_exhaustive()
    }
}

impl ReplaceableToolset {
    /// Starts with this toolset.
    pub fn new(tools: Arc<dyn Toolset>) -> Self {
        Self {
            current: RwLock::new(CurrentToolset {
                tools,
                base: 0,
                cached: None,
            }),
            replaced: watch::Sender::new(0),
        }
    }

    /// Replaces the current toolset.
    pub fn replace(&self, tools: Arc<dyn Toolset>) {
        {
            let mut current = self.current.write();
            current.base += current.tools.version() + 1;
            current.tools = tools;
            current.cached = None;
        }
        self.replaced.send_modify(|times| *times += 1);
    }
}

impl Toolset for ReplaceableToolset {
    fn snapshot(&self) -> Arc<ToolsetSnapshot> {
        let (tools, base) = {
            let current = self.current.read();
            let version = current.tools.version();
            if let Some((shown, snapshot)) = &current.cached
                && *shown == version
            {
                return Arc::clone(snapshot);
            }
            (Arc::clone(&current.tools), current.base)
        };
        let inner = tools.snapshot();
        if base == 0 {
            return inner;
        }
        let version = inner.version();
        let snapshot = Arc::new(inner.counted_from(base));
        let mut current = self.current.write();
        if current.base == base {
            current.cached = Some((version, Arc::clone(&snapshot)));
        }
        snapshot
    }

    fn version(&self) -> u64 {
        let current = self.current.read();
        current.base + current.tools.version()
    }

    fn changes(&self) -> ToolsetChanges {
        let current = self.current.read();
        ToolsetChanges::of(self.replaced.subscribe()).and(current.tools.changes())
    }
}
