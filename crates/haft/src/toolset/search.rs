//! Finds tools by a few words: turns a snapshot into documents for `haft-search`, and hits into entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_search::Index;

use crate::spec::{Exposure, ToolSpec};
use crate::toolset::{ToolEntry, ToolsetSnapshot};

pub mod document;

/// A tool that was found.
#[derive(Debug, Clone)]
pub struct SearchHit<'a> {
    /// The tool's entry.
    pub entry: &'a Arc<ToolEntry>,
    /// The relevance score; comparable within one answer.
    pub score: f32,
}

/// Returns whether callers may know about a tool: listed tools, and those meant to be found.
pub fn is_findable(spec: &ToolSpec) -> bool {
    matches!(
        spec.exposure,
        Exposure::Listed | Exposure::Searchable | Exposure::Deferred
    )
}

impl ToolsetSnapshot {
    /// Returns the index of findable tools; built on first use, numbered by position in [`ToolsetSnapshot::entries`].
    pub fn index(&self) -> &Index {
        self.finder.get_or_init(|| {
            let entries = self.entries().iter().enumerate();
            let findable = entries.filter(|(_, entry)| is_findable(entry.spec()));
            Index::new(findable.map(|(place, entry)| (place, document::of_tool(entry.spec()))))
        })
    }

    /// Returns the findable tools, sorted by name.
    pub fn findable(&self) -> impl Iterator<Item = &Arc<ToolEntry>> + Clone {
        self.entries()
            .iter()
            .filter(|entry| is_findable(entry.spec()))
    }

    /// Returns the tools that match a query, best first; of one category, if one is given.
    pub fn search(&self, query: &str, category: Option<&str>, limit: usize) -> Vec<SearchHit<'_>> {
        self.search_among(query, limit, |entry| {
            category.is_none_or(|category| category_of(entry) == category)
        })
    }

    /// Returns the tools that match a query, best first: at most `limit`, and only those that `keep` accepts.
    pub fn search_among(
        &self,
        query: &str,
        limit: usize,
        keep: impl Fn(&ToolEntry) -> bool,
    ) -> Vec<SearchHit<'_>> {
        let entries = self.entries();
        let keep = |place: usize| entries.get(place).is_some_and(|entry| keep(entry));
        let hits = self.index().search(query, limit, keep);
        hits.into_iter()
            .filter_map(|hit| {
                let (entry, score) = (entries.get(hit.document)?, hit.score);
                Some(SearchHit { entry, score })
            })
            .collect()
    }

    /// Returns the categories of the findable tools, with the number of tools in each.
    pub fn categories(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.findable() {
            *counts.entry(category_of(entry)).or_default() += 1;
        }
        counts
    }
}

/// The category of tools that do not name one.
pub const OTHER: &str = "other";

/// Returns the category under which a tool is browsed: its own, or [`OTHER`].
pub fn category_of(entry: &ToolEntry) -> &str {
    entry.spec().category.as_deref().unwrap_or(OTHER)
}

#[cfg(test)]
mod tests;
