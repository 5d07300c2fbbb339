//! A toolset that lists only a few tools: search finds the others, and `call_tool` calls them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;

use crate::spec::{Annotations, BUILTIN, Exposure, ToolName, ToolSpec};
use crate::toolset::registry::{RegistryError, ToolRegistry};
use crate::toolset::search::{category_of, is_findable};
use crate::toolset::{DerivedToolset, ToolEntry, Toolset};

/// The tool whose calls become calls of the tool that they name.
pub const CALL_TOOL: &str = "call_tool";

/// Maximum number of categories, and of servers, that are named.
const MAX_NAMED: usize = 24;
/// Maximum total size of their names, in bytes.
const MAX_BYTES: usize = 480;

/// Which tools stay listed, and which of them finds the others.
#[derive(Debug, Clone, Default)]
pub struct LazyListing {
    /// Name of the tool that finds the others; its description ends with what there is to find.
    pub finder: String,
    /// The finder's description before that, if it differs from its own.
    pub finder_description: Option<String>,
    /// Names of the tools that stay listed, including the finder.
    pub listed: BTreeSet<String>,
}

/// Returns a view of these tools that lists only some of them.
pub(super) fn lazily(
    tools: Arc<dyn Toolset>,
    lazy: LazyListing,
) -> Result<DerivedToolset, RegistryError> {
    let own = ToolRegistry::new();
    own.add_named(spec()?)?;
    let clash = tools.snapshot().entry(CALL_TOOL).cloned();
    if let Some(entry) = clash {
        return Err(RegistryError::Clash {
            name: entry.spec.name.clone(),
            existing: entry.spec.source.clone(),
            new: BUILTIN.to_owned(),
        });
    }
    Ok(DerivedToolset::new(
        [tools, Arc::new(own) as _],
        move |all| {
            let entries: Vec<&Arc<ToolEntry>> = all.iter().flat_map(|s| s.entries()).collect();
            let behind = describe_hidden(entries.iter().copied().filter(|entry| {
                is_findable(&entry.spec)
                    && !lazy.listed.contains(entry.spec.name.as_str())
                    && entry.is_local()
            }));
            let exposed = entries
                .into_iter()
                .map(|entry| exposed(entry, &lazy, &behind));
            exposed.collect()
        },
    ))
}

fn exposed(entry: &Arc<ToolEntry>, lazy: &LazyListing, behind: &str) -> Arc<ToolEntry> {
    let spec = &entry.spec;
    let name = spec.name.as_str();
    if !is_findable(spec) || !entry.is_local() {
        return Arc::clone(entry);
    }
    if name == lazy.finder {
        let own = lazy
            .finder_description
            .as_ref()
            .unwrap_or(&spec.description);
        return Arc::new(entry.with_spec(ToolSpec {
            description: format!("{own}{behind}"),
            exposure: Exposure::Listed,
            // Its description explains the answer, too, and in a short list its schema would be the longest.
            output_schema: None,
            ..ToolSpec::clone(spec)
        }));
    }
    let exposure = if lazy.listed.contains(name) {
        Exposure::Listed
    } else {
        Exposure::Searchable
    };
    if exposure == spec.exposure {
        return Arc::clone(entry);
    }
    Arc::new(entry.with_spec(ToolSpec {
        exposure,
        ..ToolSpec::clone(spec)
    }))
}

/// Describes what there is to find: the number of tools per category and per server, sorted by name.
fn describe_hidden<'a>(entries: impl Iterator<Item = &'a Arc<ToolEntry>>) -> String {
    let (mut categories, mut servers) = (BTreeMap::new(), BTreeMap::new());
    let mut all = 0_usize;
    for entry in entries {
        all += 1;
        match entry.spec.source.strip_prefix("mcp:") {
            Some(server) => *servers.entry(server).or_insert(0_usize) += 1,
            None => *categories.entry(category_of(entry)).or_insert(0) += 1,
        }
    }
    let mut text = format!(" {all} tools are behind it.");
    named(&mut text, "By category", &categories);
    named(&mut text, "By server", &servers);
    text
}

fn named(text: &mut String, what: &str, counts: &BTreeMap<&str, usize>) {
    if counts.is_empty() {
        return;
    }
    let _ = write!(text, " {what}: ");
    let (mut shown, mut bytes) = (0, 0);
    for (name, count) in counts {
        bytes += name.len();
        if shown == MAX_NAMED || bytes > MAX_BYTES {
            break;
        }
        let separator = if shown == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{name} {count}");
        shown += 1;
    }
    match counts.len() - shown {
        0 => text.push('.'),
        more => {
            let _ = write!(text, " and {more} more.");
        }
    }
}

fn spec() -> Result<ToolSpec, RegistryError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "tool": {
                "type": "string",
                "minLength": 1,
                "description": "the exact name, as tool_search gave it",
            },
            "arguments": {
                "type": "object",
                "description": "what its input schema asks for",
            },
        },
        "required": ["tool"],
        "additionalProperties": false,
    });
    let description = "Call a tool by its name, with its own arguments: every tool that tool_search finds can be called so. \
        describe_tools gives its input schema.";
    Ok(ToolSpec {
        title: Some("Call a tool".to_owned()),
        source: BUILTIN.to_owned(),
        annotations: Annotations {
            // It does whatever the named tool does.
            destructive_hint: Some(true),
            open_world_hint: Some(true),
            read_only_hint: Some(false),
            ..Annotations::default()
        },
        ..ToolSpec::new(ToolName::new(CALL_TOOL)?, description, schema)
    })
}

#[cfg(test)]
mod tests;
