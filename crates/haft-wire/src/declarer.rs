//! `Declarer`: writes declarations, and rewrites only those that changed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::declarations::{DeclarationKind, Declarations, EncodedDeclaration};
use crate::declared::ToolDeclaration;
use crate::dialect::Dialect;
use crate::dispatch::fragment;
use crate::names::ToolNames;

/// A tool to declare, at one point in time.
#[derive(Debug, Clone, Copy)]
pub struct VersionedTool<'t> {
    /// Distinguishes what a name referred to at different times: the hash of the tool's spec. Two tools never share one.
    pub version: &'t str,
    /// The tool.
    pub tool: &'t ToolDeclaration,
}

/// Writes the declarations of one dialect, and keeps each one: when one tool of a thousand changes, only that one is written.
#[derive(Debug)]
pub struct Declarer {
    last: Arc<Declarations>,
}

impl Declarer {
    /// Creates a declarer that has written nothing yet.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            last: Arc::new(Declarations::none(dialect)),
        }
    }

    /// Returns the last declarations, for a host that knows that its tools have not changed since.
    pub fn last(&self) -> Arc<Declarations> {
        Arc::clone(&self.last)
    }

    /// Returns the declarations of these tools, in this order; the same bytes for the same tools. Tools that the dialect cannot express
    /// are left out and listed in [`Declarations::lost`].
    pub fn declare(&mut self, tools: &[VersionedTool<'_>]) -> Arc<Declarations> {
        let old = &self.last.written;
        let others: Vec<usize> = tools
            .iter()
            .enumerate()
            .filter(|(at, entry)| old.get(*at).is_none_or(|old| old.version != entry.version))
            .map(|(at, _)| at)
            .collect();
        if others.is_empty() && old.len() == tools.len() {
            return self.last();
        }
        if let Some(declared) = self.replaced(tools, &others) {
            self.last = Arc::new(declared);
            return self.last();
        }
        // A tool that is no longer at its old position may have moved to another one.
        let left = others.iter().copied().chain(tools.len()..old.len());
        let left: HashMap<&str, &Arc<EncodedDeclaration>> = left
            .filter_map(|at| old.get(at))
            .map(|old| (old.version.as_str(), old))
            .collect();
        let mut kept: Vec<Option<&Arc<EncodedDeclaration>>> = tools
            .iter()
            .enumerate()
            .map(|(at, _)| old.get(at))
            .collect();
        for at in &others {
            kept[*at] = left.get(tools[*at].version).copied();
        }
        self.last = Arc::new(self.written(tools, &kept));
        self.last()
    }

    /// Declares tools some of which were replaced by others with the same names; `None` if a name or their number
    /// changed.
    fn replaced(&self, tools: &[VersionedTool<'_>], others: &[usize]) -> Option<Declarations> {
        let last = &self.last;
        if last.written.len() != tools.len() {
            return None;
        }
        let mut new = Vec::with_capacity(others.len());
        for at in others {
            let (entry, old) = (&tools[*at], last.written.get(*at)?);
            let own = entry.tool.names();
            if own != old.own {
                return None;
            }
            let written = write(last.dialect, entry, own, &last.names);
            new.push((*at, Arc::new(written)));
        }
        if let Some(declared) = last.replaced(&new) {
            return Some(declared);
        }
        Some(Declarations::join(
            last.dialect,
            Arc::clone(&last.names),
            last.written.with(&new),
        ))
    }

    /// Declares these tools, reusing the kept declarations.
    fn written(
        &self,
        tools: &[VersionedTool<'_>],
        kept: &[Option<&Arc<EncodedDeclaration>>],
    ) -> Declarations {
        let (old, dialect) = (&self.last.written, self.last.dialect);
        let own: Vec<Cow<'_, [String]>> = tools
            .iter()
            .zip(kept)
            .map(|(entry, kept)| match kept {
                Some(kept) => Cow::Borrowed(kept.own.as_slice()),
                None => Cow::Owned(entry.tool.names()),
            })
            .collect();
        let same = |(own, old): (&Cow<'_, [String]>, &Arc<EncodedDeclaration>)| {
            std::ptr::eq(own.as_ref(), old.own.as_slice()) || **own == *old.own
        };
        let same = old.len() == tools.len() && own.iter().zip(old.iter()).all(same);
        let names = if same {
            Arc::clone(&self.last.names)
        } else {
            let all = own.iter().flat_map(|own| own.iter().map(String::as_str));
            Arc::new(ToolNames::new(dialect, all))
        };
        let mut written = Vec::with_capacity(tools.len());
        for ((entry, kept), own) in tools.iter().zip(kept).zip(own) {
            let fits = |kept: &&&Arc<EncodedDeclaration>| same || kept.has_names(&names);
            written.push(match kept.as_ref().filter(fits) {
                Some(kept) => Arc::clone(kept),
                None => Arc::new(write(dialect, entry, own.into_owned(), &names)),
            });
        }
        Declarations::join(dialect, names, written.into())
    }
}

/// Writes one tool with these names.
fn write(
    dialect: Dialect,
    entry: &VersionedTool<'_>,
    own: Vec<String>,
    names: &ToolNames,
) -> EncodedDeclaration {
    let wire = |name: &String| names.wire(name).unwrap_or_default().to_owned();
    EncodedDeclaration {
        version: entry.version.to_owned(),
        wire: own.iter().map(wire).collect(),
        own,
        sort: sort(entry.tool),
        fragment: fragment(dialect, entry.tool, names),
    }
}

/// Returns how a choice of tools refers to this one.
fn sort(tool: &ToolDeclaration) -> DeclarationKind {
    match tool {
        ToolDeclaration::Function(_) => DeclarationKind::Function,
        ToolDeclaration::Namespace { .. } => DeclarationKind::Namespace,
        ToolDeclaration::Freeform(_) => DeclarationKind::Freeform,
        ToolDeclaration::Provider { spec, .. } => DeclarationKind::Provider(words(spec)),
        ToolDeclaration::ToolSearch(_) => DeclarationKind::Provider(vec!["tool_search".to_owned()]),
    }
}

/// Returns the type of a provider's declaration, and its name or label, if it has them.
fn words(spec: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct SpecLabels {
        #[serde(rename = "type")]
        kind: Option<String>,
        #[serde(alias = "server_label")]
        name: Option<String>,
    }
    serde_json::from_str(spec.get()).map_or_else(
        |_| Vec::new(),
        |words: SpecLabels| [words.kind, words.name].into_iter().flatten().collect(),
    )
}
