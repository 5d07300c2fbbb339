//! Finds tools by a few words: a snapshot's documents for `haft-search`, and what it found as entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_search::Index;

use crate::spec::{Exposure, ToolSpec};
use crate::toolset::{Snapshot, ToolEntry};

pub mod document;

/// A tool that was found.
#[derive(Debug, Clone)]
pub struct SearchHit<'a> {
    /// It.
    pub entry: &'a Arc<ToolEntry>,
    /// How well it fits; comparable within one answer.
    pub score: f32,
}

/// Whether a caller may be told of a tool: listed ones, and those that are there to be found.
pub fn is_findable(spec: &ToolSpec) -> bool {
    matches!(
        spec.exposure,
        Exposure::Listed | Exposure::Searchable | Exposure::Deferred
    )
}

impl Snapshot {
    /// The index over what callers may be told of; made at the first use, numbered by place in [`Snapshot::entries`].
    pub fn index(&self) -> &Index {
        self.finder.get_or_init(|| {
            let entries = self.entries().iter().enumerate();
            let findable = entries.filter(|(_, entry)| is_findable(entry.spec()));
            Index::new(findable.map(|(place, entry)| (place, document::of_tool(entry.spec()))))
        })
    }

    /// The tools that callers may be told of, in the order of their names.
    pub fn findable(&self) -> impl Iterator<Item = &Arc<ToolEntry>> + Clone {
        self.entries()
            .iter()
            .filter(|entry| is_findable(entry.spec()))
    }

    /// The tools that fit a query best, best first; of one category, where one is named.
    pub fn search(&self, query: &str, category: Option<&str>, limit: usize) -> Vec<SearchHit<'_>> {
        self.search_among(query, limit, |entry| {
            category.is_none_or(|category| category_of(entry) == category)
        })
    }

    /// The tools that fit a query best, best first: at most `limit`, and only those that `keep` accepts.
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

    /// The categories of the tools that callers may be told of, with how many each has.
    pub fn categories(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.findable() {
            *counts.entry(category_of(entry)).or_default() += 1;
        }
        counts
    }
}

/// The category of tools that name none.
pub const OTHER: &str = "other";

/// Under which category a tool is browsed.
pub fn category_of(entry: &ToolEntry) -> &str {
    entry.spec().category.as_deref().unwrap_or(OTHER)
}

#[cfg(test)]
mod tests;
