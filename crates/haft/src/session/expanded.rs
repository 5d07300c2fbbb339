//! `ExpandedTools`: the deferred tools that a run has expanded, and the tool list including them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::spec::{Exposure, ToolName};
use crate::toolset::{ToolsetChanges, ToolsetSnapshot};

/// The tools that a run has expanded; shared by its nested scopes.
#[derive(Debug, Default)]
pub(crate) struct ExpandedTools {
    names: Mutex<BTreeSet<ToolName>>,
    /// The number of names: every call reads it, so it is outside the lock.
    count: AtomicU64,
    changed: watch::Sender<u64>,
    seen: ArcSwapOption<ExpandedView>,
}

/// A tool list, the number of expanded tools, and the list including them.
#[derive(Debug)]
struct ExpandedView {
    base: Arc<ToolsetSnapshot>,
    count: u64,
    shown: Arc<ToolsetSnapshot>,
}

impl ExpandedTools {
    /// Expands those names that are deferred in `tools`, and returns them.
    pub(crate) fn add<'a>(
        &self,
        tools: &ToolsetSnapshot,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Vec<ToolName> {
        let mut expanded = self.names.lock();
        let deferred = names.into_iter().filter_map(|name| {
            let spec = tools.entry(name)?.spec();
            (spec.exposure == Exposure::Deferred).then(|| spec.name.clone())
        });
        let new: Vec<ToolName> = deferred
            .filter(|name| expanded.insert(name.clone()))
            .collect();
        if !new.is_empty() {
            let count = expanded.len() as u64;
            self.count.store(count, Ordering::Release);
            self.changed.send_replace(count);
        }
        new
    }

    /// Returns the list with the expanded tools listed; the same list if there are none.
    pub(crate) fn over(&self, base: Arc<ToolsetSnapshot>) -> Arc<ToolsetSnapshot> {
        let count = self.count.load(Ordering::Acquire);
        if count == 0 {
            return base;
        }
        if let Some(seen) = &*self.seen.load()
            && seen.count == count
            && Arc::ptr_eq(&seen.base, &base)
        {
            return Arc::clone(&seen.shown);
        }
        let names = self.names.lock();
        let shown = Arc::new(base.with_listed(&names));
        self.seen.store(Some(Arc::new(ExpandedView {
            base,
            count: names.len() as u64,
            shown: Arc::clone(&shown),
        })));
        shown
    }

    /// Returns a receiver of expansions.
    pub(crate) fn changes(&self) -> ToolsetChanges {
        ToolsetChanges::of(self.changed.subscribe())
    }
}
