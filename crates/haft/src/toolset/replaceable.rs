//! `Replaceable`: a toolset in whose place another can be put while sessions use it.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::toolset::{Changes, Snapshot, Toolset};

/// A toolset in whose place another can be put while sessions use it: they see the new one's tools from their next look on.
///
/// ```
/// use std::sync::Arc;
/// use haft::toolset::{Toolset, registry::ToolRegistry, view::Replaceable};
/// use haft::tool;
///
/// /// Add two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 { a + b }
///
/// let tools = Replaceable::new(Arc::new(ToolRegistry::new()));
/// let before = tools.version();
/// tools.replace(Arc::new(ToolRegistry::new().with(add)?));
/// assert!(tools.version() > before && tools.snapshot().entry("add").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replaceable {
    current: RwLock<Current>,
    replaced: watch::Sender<u64>,
}

struct Current {
    tools: Arc<dyn Toolset>,
    /// What its versions are counted from, so that a version of the whole only ever rises.
    base: u64,
    /// The last snapshot made, with the version of `tools` that it shows.
    cached: Option<(u64, Arc<Snapshot>)>,
}

impl std::fmt::Debug for Replaceable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replaceable").finish_non_exhaustive()
    }
}

impl Replaceable {
    /// This toolset, to begin with.
    pub fn new(tools: Arc<dyn Toolset>) -> Self {
        Self {
            current: RwLock::new(Current {
                tools,
                base: 0,
                cached: None,
            }),
            replaced: watch::Sender::new(0),
        }
    }

    /// Puts another toolset in the place of the one that is there.
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

impl Toolset for Replaceable {
    fn snapshot(&self) -> Arc<Snapshot> {
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

    fn changes(&self) -> Changes {
        let current = self.current.read();
        Changes::of(self.replaced.subscribe()).and(current.tools.changes())
    }
}
