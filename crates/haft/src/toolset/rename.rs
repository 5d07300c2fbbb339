//! Other names for tools, such that no name stands for two of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::spec::{BUILTIN, ToolName, ToolSpec};
use crate::toolset::ToolEntry;
use crate::toolset::registry::RegistryError;

/// New names by old ones.
pub(super) type NewNames = BTreeMap<String, ToolName>;

/// Fails if two of these tools would have the same name.
pub(super) fn check(entries: &[Arc<ToolEntry>], names: &NewNames) -> Result<(), RegistryError> {
    let mut taken: BTreeMap<&ToolName, &ToolEntry> = BTreeMap::new();
    for entry in entries {
        let old = &entry.spec.name;
        let name = names.get(old.as_str()).unwrap_or(old);
        if let Some(existing) = taken.insert(name, entry) {
            return Err(RegistryError::Clash {
                name: name.clone(),
                existing: existing.spec.source.clone(),
                new: entry.spec.source.clone(),
            });
        }
    }
    Ok(())
}

/// Returns the tools under their new names. Of tools with the same name, a built-in that keeps its own is the one, then one that the
/// host renamed, then any other.
pub(super) fn rename<'a>(
    entries: impl Iterator<Item = &'a Arc<ToolEntry>>,
    names: &NewNames,
) -> Vec<Arc<ToolEntry>> {
    let mut all: Vec<(u8, Arc<ToolEntry>)> = entries
        .map(|entry| match names.get(entry.spec.name.as_str()) {
            Some(new) => (1, named(entry, new.clone())),
            None if entry.spec.source == BUILTIN => (0, Arc::clone(entry)),
            None => (2, Arc::clone(entry)),
        })
        .collect();
    all.sort_by_key(|(rank, _)| *rank);
    let mut kept: BTreeMap<ToolName, Arc<ToolEntry>> = BTreeMap::new();
    for (_, entry) in all {
        match kept.entry(entry.spec.name.clone()) {
            Entry::Vacant(free) => {
                free.insert(entry);
            }
            Entry::Occupied(taken) => {
                tracing::warn!(tool = %taken.key(), source = entry.spec.source, "tool is left out: another tool has its name");
            }
        }
    }
    kept.into_values().collect()
}

/// Returns the tool with `prefix.` in front of its name; `None`, with a warning, if that is not a tool name.
pub(super) fn prefixed(entry: &Arc<ToolEntry>, prefix: &str) -> Option<Arc<ToolEntry>> {
    let name = format!("{prefix}.{}", entry.spec.name);
    let Ok(name) = ToolName::new(&name) else {
        tracing::warn!(tool = %entry.spec.name, name, "tool is left out: its new name is not a tool name");
        return None;
    };
    Some(named(entry, name))
}

fn named(entry: &ToolEntry, name: ToolName) -> Arc<ToolEntry> {
    let mut spec = ToolSpec::clone(&entry.spec);
    spec.name = name;
    Arc::new(entry.with_spec(spec))
}
