//! `Toolset`: a source of tools; `ToolEntry`: a spec and what runs it. Toolsets find tools, the executor runs them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;
use haft_search::Index;
use hashbrown::HashMap;
use serde_json::{Map, Value};

use crate::json::bind::Binding;
use crate::json::schema::Schema;
use crate::spec::{Declaration, Exposure, ToolName, ToolSpec};
use haft_types::opaque_debug;

pub mod lazy;
pub mod list;
pub mod page;
mod changes;
pub(crate) mod held;
pub mod registry;
mod rename;
mod replaceable;
pub mod search;
pub mod view;

pub use changes::ToolsetChanges;
use held::HeldTool;

/// The name of the tool that lists deferred tools and makes them callable for the rest of a run.
pub const EXPAND_TOOLS: &str = "tool_expand_tools";

/// What runs a tool.
#[derive(Clone)]
pub(crate) enum ToolBackend {
    /// This process.
    Local(Arc<dyn HeldTool>),
    /// The provider; never called here.
    Hosted,
    /// The tool that a call's arguments name ([`lazy::CALL_TOOL`]): the call becomes a call of that tool.
    Named,
}

impl fmt::Debug for ToolBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local(_) => "Local",
            Self::Hosted => "Hosted",
            Self::Named => "Named",
        })
    }
}

/// A spec and what runs it, with the data compiled from the spec. Views rename tools by changing the entry, never by wrapping the tool.
#[derive(Debug)]
pub struct ToolEntry {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) run: ToolBackend,
    /// Checks complete arguments, including bound values.
    pub(crate) input: Arc<Schema>,
    pub(crate) output: Option<Arc<Schema>>,
    /// Arguments that the host fills in.
    pub(crate) bound: Option<Arc<Binding>>,
    pub(crate) hash: OnceLock<String>,
    pub(crate) fragment: OnceLock<bytes::Bytes>,
}

impl ToolEntry {
    /// Returns the tool's spec.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// Returns the hash of the spec; computed on first use.
    pub fn spec_hash(&self) -> &str {
        self.hash.get_or_init(|| self.spec.hash())
    }

    /// Returns whether the provider runs it.
    pub fn is_hosted(&self) -> bool {
        matches!(self.run, ToolBackend::Hosted)
    }

    /// Returns whether this process runs it.
    pub fn is_local(&self) -> bool {
        matches!(self.run, ToolBackend::Local(_))
    }

    /// Returns the arguments that the host fills in, in the form that users may see.
    pub(crate) fn bound_as_written(&self) -> Map<String, Value> {
        let bound = self.bound.as_ref();
        bound.map_or_else(Map::new, |bound| bound.written().clone())
    }

    /// Returns the same tool with another spec, whose schemas must be the ones already compiled.
    pub(crate) fn with_spec(&self, spec: ToolSpec) -> Self {
        Self {
            spec: Arc::new(spec),
            run: self.run.clone(),
            input: Arc::clone(&self.input),
            output: self.output.clone(),
            bound: self.bound.clone(),
            hash: OnceLock::new(),
            fragment: OnceLock::new(),
        }
    }
}

/// All entries of a toolset at one moment, sorted by name.
#[derive(Debug, Default)]
pub struct ToolsetSnapshot {
    version: u64,
    entries: Vec<Arc<ToolEntry>>,
    index: HashMap<ToolName, Arc<ToolEntry>, RandomState>,
    pub(crate) list: OnceLock<bytes::Bytes>,
    /// Shared by snapshots of the same tools, whichever are expanded.
    pub(crate) finder: Arc<OnceLock<Index>>,
}

impl ToolsetSnapshot {
    /// Creates a snapshot of these entries; of several with the same name, the first is kept.
    pub(crate) fn new(version: u64, entries: impl IntoIterator<Item = Arc<ToolEntry>>) -> Self {
        let mut index: HashMap<ToolName, Arc<ToolEntry>, RandomState> = HashMap::default();
        let mut kept = Vec::new();
        for entry in entries {
            if index
                .try_insert(entry.spec.name.clone(), Arc::clone(&entry))
                .is_ok()
            {
                kept.push(entry);
            }
        }
        kept.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Self {
            version,
            entries: kept,
            index,
            list: OnceLock::new(),
            finder: Arc::default(),
        }
    }

    /// Returns the same tools, with versions counted from `base`.
    pub(crate) fn counted_from(&self, base: u64) -> Self {
        Self {
            finder: Arc::clone(&self.finder),
            ..Self::new(base + self.version, self.entries.iter().cloned())
        }
    }

    /// Returns the same tools, with the deferred ones among these names listed.
    pub(crate) fn with_listed(&self, names: &BTreeSet<ToolName>) -> Self {
        let entries = self.entries.iter().map(|entry| {
            let spec = entry.spec();
            if spec.exposure != Exposure::Deferred || !names.contains(&spec.name) {
                return Arc::clone(entry);
            }
            Arc::new(entry.with_spec(ToolSpec {
                exposure: Exposure::Listed,
                ..ToolSpec::clone(spec)
            }))
        });
        // Names are only ever added, so the sum increases with every change of either.
        Self {
            finder: Arc::clone(&self.finder),
            ..Self::new(self.version + names.len() as u64, entries)
        }
    }

    /// Returns the version, which increases with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns all entries, including those not listed, sorted by name.
    pub fn entries(&self) -> &[Arc<ToolEntry>] {
        &self.entries
    }

    /// Returns the entry of a name.
    pub fn entry(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.index.get(name)
    }

    /// Returns the specs of all entries, sorted by name, for the policy to check its rules against.
    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.entries
            .iter()
            .map(|entry| Arc::clone(entry.spec()))
            .collect()
    }

    /// Returns the entries listed to clients.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<ToolEntry>> + Clone {
        self.entries
            .iter()
            .filter(|entry| entry.spec.exposure == Exposure::Listed)
    }

    /// Returns the entries that can be declared to a provider's model, and the names of those that have no declaration for it.
    pub fn for_provider(&self, provider: &str) -> (Vec<&Arc<ToolEntry>>, Vec<ToolName>) {
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for entry in self.listed() {
            match &entry.spec.declaration {
                Declaration::Provider { specs, .. } if !specs.contains_key(provider) => {
                    tracing::warn!(tool = %entry.spec.name, provider, "tool has no declaration for this provider and is left out");
                    dropped.push(entry.spec.name.clone());
                }
                Declaration::Provider { .. } | Declaration::Schema => kept.push(entry),
            }
        }
        (kept, dropped)
    }

    /// Returns up to three names nearest to one that does not exist, best first, among the tools that callers can find and call
    /// directly. A tool with that name as an alias comes first; case, dashes and underscores are ignored.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let wanted = plain(name);
        let mut scored: Vec<(f64, &str)> = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.spec.exposure, Exposure::Listed | Exposure::Searchable))
            .map(|entry| {
                let spec = &entry.spec;
                let known = spec.name.as_str();
                let alias = spec.aliases.iter().any(|alias| plain(alias) == wanted);
                let likeness = strsim::jaro_winkler(&wanted, &plain(known));
                (if alias { ALIAS_SCORE } else { likeness }, known)
            })
            .filter(|(score, _)| *score > 0.75)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, known)| known).collect()
    }
}

/// Score of an alias match: higher than any similarity.
const ALIAS_SCORE: f64 = 2.0;

/// Normalizes a name: removes dashes and underscores, and folds case.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// A source of tools.
pub trait Toolset: Send + Sync {
    /// Returns all current entries; cheap.
    fn snapshot(&self) -> Arc<ToolsetSnapshot>;

    /// Returns the snapshot's version without the snapshot.
    fn version(&self) -> u64 {
        self.snapshot().version()
    }

    /// Returns a receiver of changes, which never misses one.
    fn changes(&self) -> ToolsetChanges;
}

opaque_debug!(Toolset);

impl<T: Toolset + ?Sized> Toolset for Arc<T> {
    fn snapshot(&self) -> Arc<ToolsetSnapshot> {
        (**self).snapshot()
    }

    fn version(&self) -> u64 {
        (**self).version()
    }

    fn changes(&self) -> ToolsetChanges {
        (**self).changes()
    }
}

/// Returns a view no wider than `outer`: the tools of `inner` that `outer` also has, with the entries of `outer`.
pub(crate) fn within(
    outer: &Arc<dyn Toolset>,
    inner: Option<Arc<dyn Toolset>>,
) -> Arc<dyn Toolset> {
    let Some(inner) = inner else {
        return Arc::clone(outer);
    };
    Arc::new(DerivedToolset::new([Arc::clone(outer), inner], |all| {
        let [outer, inner] = all else {
            return Vec::new();
        };
        let entries = inner
            .entries()
            .iter()
            .filter_map(|e| outer.entry(e.spec.name.as_str()));
        entries.cloned().collect()
    }))
}

type DeriveFn = dyn Fn(&[Arc<ToolsetSnapshot>]) -> Vec<Arc<ToolEntry>> + Send + Sync;

/// A view, computed once per version of its sources.
pub struct DerivedToolset {
    sources: Vec<Arc<dyn Toolset>>,
    derive: Box<DeriveFn>,
    cached: ArcSwapOption<(Vec<u64>, Arc<ToolsetSnapshot>)>,
}

impl DerivedToolset {
    pub(crate) fn new(
        sources: impl IntoIterator<Item = Arc<dyn Toolset>>,
        derive: impl Fn(&[Arc<ToolsetSnapshot>]) -> Vec<Arc<ToolEntry>> + Send + Sync + 'static,
    ) -> Self {
        let sources = sources.into_iter().collect();
        Self {
            sources,
            derive: Box::new(derive),
            cached: ArcSwapOption::empty(),
        }
    }
}

impl Toolset for DerivedToolset {
    fn snapshot(&self) -> Arc<ToolsetSnapshot> {
        if let Some(cached) = &*self.cached.load()
            && self
                .sources
                .iter()
                .map(Toolset::version)
                .eq(cached.0.iter().copied())
        {
            return Arc::clone(&cached.1);
        }
        let sources: Vec<_> = self.sources.iter().map(Toolset::snapshot).collect();
        let versions: Vec<u64> = sources.iter().map(|s| s.version()).collect();
        // The versions of sources only increase, so the sum increases with every change of any of them.
        let snapshot = Arc::new(ToolsetSnapshot::new(
            versions.iter().sum(),
            (self.derive)(&sources),
        ));
        self.cached
            .store(Some(Arc::new((versions, Arc::clone(&snapshot)))));
        snapshot
    }

    fn version(&self) -> u64 {
        self.sources.iter().map(Toolset::version).sum()
    }

    fn changes(&self) -> ToolsetChanges {
        self.sources
            .iter()
            .map(Toolset::changes)
            .fold(ToolsetChanges::default(), ToolsetChanges::and)
    }
}

impl fmt::Debug for DerivedToolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedToolset")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}
