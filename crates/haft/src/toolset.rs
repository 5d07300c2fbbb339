//! `Toolset`: where tools are found; `ToolEntry`: a spec and who runs it. Toolsets find, the executor runs.

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
use crate::opaque::opaque_debug;
use crate::spec::{Declaration, Exposure, ToolName, ToolSpec};
use crate::tool::Tool;

pub mod into_tool;
pub mod lazy;
pub mod list;
pub mod page;
mod changes;
pub mod registry;
mod replaceable;
pub mod search;
pub mod view;

pub use changes::Changes;

/// The name of the tool that has deferred tools listed and callable for the rest of a run.
pub const EXPAND_TOOLS: &str = "tool_expand_tools";

/// Who runs a tool.
#[derive(Clone)]
pub enum ToolBackend {
    /// This process.
    Local(Arc<dyn Tool>),
    /// The provider; never called here.
    Hosted,
    /// The tool that a call's arguments name ([`lazy::CALL_TOOL`]): the call is one of that tool.
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

/// A spec and who runs it, with what is compiled once from the spec. Views rename by changing the entry, never by wrapping the tool.
#[derive(Debug)]
pub struct ToolEntry {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) run: ToolBackend,
    /// Checks whole arguments, bound values included.
    pub(crate) input: Arc<Schema>,
    pub(crate) output: Option<Arc<Schema>>,
    /// Arguments that the host fills in.
    pub(crate) bound: Option<Arc<Binding>>,
    pub(crate) hash: OnceLock<String>,
    pub(crate) fragment: OnceLock<bytes::Bytes>,
}

impl ToolEntry {
    /// What the tool says of itself.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// The hash of what is told about it; made at the first use.
    pub fn spec_hash(&self) -> &str {
        self.hash.get_or_init(|| self.spec.hash())
    }

    /// Whether the provider runs it.
    pub fn is_hosted(&self) -> bool {
        matches!(self.run, ToolBackend::Hosted)
    }

    /// Whether this process runs it.
    pub fn is_local(&self) -> bool {
        matches!(self.run, ToolBackend::Local(_))
    }

    /// The arguments that the host fills in, as people may see them.
    pub(crate) fn bound_as_written(&self) -> Map<String, Value> {
        let bound = self.bound.as_ref();
        bound.map_or_else(Map::new, |bound| bound.written().clone())
    }

    /// The same tool under another spec; its schemas must be those compiled already.
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

/// All entries of a toolset at one moment, in the order of their names.
#[derive(Debug, Default)]
pub struct Snapshot {
    version: u64,
    entries: Vec<Arc<ToolEntry>>,
    index: HashMap<ToolName, Arc<ToolEntry>, RandomState>,
    pub(crate) list: OnceLock<bytes::Bytes>,
    /// Shared by snapshots of the same tools, whichever of them are expanded.
    pub(crate) finder: Arc<OnceLock<Index>>,
}

impl Snapshot {
    /// A snapshot of these entries; of two with one name the first stays.
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

    /// The same tools, with versions counted from this one on.
    pub(crate) fn counted_from(&self, base: u64) -> Self {
        Self {
            finder: Arc::clone(&self.finder),
            ..Self::new(base + self.version, self.entries.iter().cloned())
        }
    }

    /// The same tools with these, where they are deferred, among the listed ones.
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
        // Names are only ever added, so the sum rises with every change of either.
        Self {
            finder: Arc::clone(&self.finder),
            ..Self::new(self.version + names.len() as u64, entries)
        }
    }

    /// Which change this is; rises with each.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All entries, also those not shown, in the order of their names.
    pub fn entries(&self) -> &[Arc<ToolEntry>] {
        &self.entries
    }

    /// The entry of a name.
    pub fn entry(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.index.get(name)
    }

    /// The specs of all entries, in the order of their names: what a policy compares its rules with.
    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.entries
            .iter()
            .map(|entry| Arc::clone(entry.spec()))
            .collect()
    }

    /// The entries shown to callers.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<ToolEntry>> + Clone {
        self.entries
            .iter()
            .filter(|entry| entry.spec.exposure == Exposure::Listed)
    }

    /// The entries that a provider's model can be told of, and the names of those dropped because they have no declaration for it.
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

    /// The names nearest to one that does not exist, best first; at most three, of tools alone that callers find and may call as they
    /// are. A tool that is also called that comes first; case, dashes and underscores do not count.
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
                (if alias { ALIAS } else { likeness }, known)
            })
            .filter(|(score, _)| *score > 0.75)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(3).map(|(_, known)| known).collect()
    }
}

/// More than any likeness of names.
const ALIAS: f64 = 2.0;

/// A name without case, dashes and underscores.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Where tools are found.
pub trait Toolset: Send + Sync {
    /// All entries now; cheap.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// The snapshot's version, without the snapshot.
    fn version(&self) -> u64 {
        self.snapshot().version()
    }

    /// Tells when the snapshot changes; never misses a change.
    fn changes(&self) -> Changes;
}

opaque_debug!(Toolset);

impl<T: Toolset + ?Sized> Toolset for Arc<T> {
    fn snapshot(&self) -> Arc<Snapshot> {
        (**self).snapshot()
    }

    fn version(&self) -> u64 {
        (**self).version()
    }

    fn changes(&self) -> Changes {
        (**self).changes()
    }
}

/// A view never wider than `outer`: the tools of `inner` that `outer` has, too, under the same entry's runner.
pub(crate) fn within(
    outer: &Arc<dyn Toolset>,
    inner: Option<Arc<dyn Toolset>>,
) -> Arc<dyn Toolset> {
    let Some(inner) = inner else {
        return Arc::clone(outer);
    };
    Arc::new(Derived::new([Arc::clone(outer), inner], |all| {
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

type Derive = dyn Fn(&[Arc<Snapshot>]) -> Vec<Arc<ToolEntry>> + Send + Sync;

/// A view: computed once for each version of its sources.
pub struct Derived {
    sources: Vec<Arc<dyn Toolset>>,
    derive: Box<Derive>,
    cached: ArcSwapOption<(Vec<u64>, Arc<Snapshot>)>,
}

impl Derived {
    pub(crate) fn new(
        sources: impl IntoIterator<Item = Arc<dyn Toolset>>,
        derive: impl Fn(&[Arc<Snapshot>]) -> Vec<Arc<ToolEntry>> + Send + Sync + 'static,
    ) -> Self {
        let sources = sources.into_iter().collect();
        Self {
            sources,
            derive: Box::new(derive),
            cached: ArcSwapOption::empty(),
        }
    }
}

impl Toolset for Derived {
    fn snapshot(&self) -> Arc<Snapshot> {
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
        // Sources only ever count up, so the sum rises with every change of any of them.
        let snapshot = Arc::new(Snapshot::new(
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

    fn changes(&self) -> Changes {
        self.sources
            .iter()
            .map(Toolset::changes)
            .fold(Changes::default(), Changes::and)
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Derived")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}
