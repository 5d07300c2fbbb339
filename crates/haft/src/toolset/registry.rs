//! `ToolRegistry`: tools by name, live. Name clashes are refused, and built-in tools are never shadowed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::json::cache::SchemaCache;
use crate::json::schema::SchemaError;
use crate::spec::{Declaration, ToolName, ToolSpec};
use crate::toolset::held::HeldTool;
use crate::toolset::{ToolBackend, ToolEntry, Toolset, ToolsetChanges, ToolsetSnapshot};

pub use crate::spec::BUILTIN;

/// Why a tool was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken.
    #[error(
        "tool `{name}` of {new} clashes with the one of {existing}; rename or prefix one of them"
    )]
    Clash {
        /// The name.
        name: ToolName,
        /// Source of the existing tool.
        existing: String,
        /// Source of the new tool.
        new: String,
    },
    /// A schema cannot be compiled.
    #[error("{which} schema of tool `{name}`: {source}")]
    Schema {
        /// The tool.
        name: ToolName,
        /// `input` or `output`.
        which: &'static str,
        /// The cause.
        source: SchemaError,
    },
    /// A name is not a valid tool name.
    #[error(transparent)]
    Name(#[from] crate::spec::NameError),
    /// A hosted tool has no provider declaration, so it can never be declared to a model.
    #[error("hosted tool `{0}` has no provider declaration")]
    Undeclared(ToolName),
    /// A function does not carry `#[tool]`.
    #[error("function {0} is not a tool; annotate it with #[haft::tool]")]
    NotTool(&'static str),
}

/// The effect of a change of the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryDiff {
    /// New names.
    pub added: Vec<ToolName>,
    /// Names whose spec or runner was replaced.
    pub changed: Vec<ToolName>,
    /// Removed names.
    pub removed: Vec<ToolName>,
}

impl RegistryDiff {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Tools by name. Live: it may change while sessions run; each change creates a new snapshot.
#[derive(Debug)]
pub struct ToolRegistry {
    current: ArcSwap<ToolsetSnapshot>,
    version: watch::Sender<u64>,
    /// The owned map; locked only during changes.
    tools: Mutex<RegistryState>,
}

#[derive(Debug, Default)]
struct RegistryState {
    entries: BTreeMap<ToolName, Arc<ToolEntry>>,
    schemas: SchemaCache,
}

impl Default for ToolRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for ToolRegistry {
    /// Creates an independent registry with the same tools.
    fn clone(&self) -> Self {
        let owned = self.lock_owned();
        Self {
            current: ArcSwap::new(self.current.load_full()),
            version: watch::Sender::new(self.version()),
            tools: Mutex::new(RegistryState {
                entries: owned.entries.clone(),
                schemas: SchemaCache::default(),
            }),
        }
    }
}

impl ToolRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self {
            current: ArcSwap::from_pointee(ToolsetSnapshot::default()),
            version: watch::Sender::new(0),
            tools: Mutex::default(),
        }
    }

    /// Adds tools; adds none of them if one clashes.
    pub(crate) fn add_held(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn HeldTool>>,
    ) -> Result<RegistryDiff, RegistryError> {
        self.change(|owned| {
            for tool in tools {
                let entry = owned.local(tool)?;
                owned.refuse_clash(&entry)?;
                owned
                    .entries
                    .insert(entry.spec.name.clone(), Arc::new(entry));
            }
            Ok(())
        })
    }

    /// Adds a tool that the provider runs.
    ///
    /// # Errors
    /// [`RegistryError::Undeclared`] if the spec has no provider declaration; otherwise as for [`add_all`](Self::add_all).
    pub fn add_hosted(&self, spec: ToolSpec) -> Result<RegistryDiff, RegistryError> {
        self.change(|owned| {
            if spec.declaration == Declaration::Schema {
                return Err(RegistryError::Undeclared(spec.name.clone()));
            }
            let entry = owned.entry(Arc::new(spec), ToolBackend::Hosted)?;
            owned.refuse_clash(&entry)?;
            owned
                .entries
                .insert(entry.spec.name.clone(), Arc::new(entry));
            Ok(())
        })
    }

    /// Adds the tool whose calls become calls of the tool that they name.
    pub(crate) fn add_named(&self, spec: ToolSpec) -> Result<RegistryDiff, RegistryError> {
        self.change(|owned| {
            let entry = owned.entry(Arc::new(spec), ToolBackend::Named)?;
            owned.refuse_clash(&entry)?;
            owned
                .entries
                .insert(entry.spec.name.clone(), Arc::new(entry));
            Ok(())
        })
    }

    /// Adds a tool or replaces the one with the same name and source; never replaces a tool of another source.
    pub(crate) fn upsert_held(
        &self,
        tool: Arc<dyn HeldTool>,
    ) -> Result<RegistryDiff, RegistryError> {
        self.change(|owned| {
            let entry = owned.local(tool)?;
            let same = |old: &Arc<ToolEntry>| old.spec.source == entry.spec.source;
            if !owned.entries.get(&entry.spec.name).is_none_or(same) {
                owned.refuse_clash(&entry)?;
            }
            owned
                .entries
                .insert(entry.spec.name.clone(), Arc::new(entry));
            Ok(())
        })
    }

    /// Removes a tool.
    pub fn remove(&self, name: &str) -> RegistryDiff {
        let removed = self.change(|owned| {
            owned.entries.remove(name);
            Ok(())
        });
        removed.unwrap_or_default()
    }

    /// Replaces all tools of one source at once; changes nothing if one of them clashes with a tool of another source.
    pub(crate) fn replace_held(
        &self,
        source: &str,
        tools: impl IntoIterator<Item = Arc<dyn HeldTool>>,
    ) -> Result<RegistryDiff, RegistryError> {
        self.change(|owned| {
            owned.entries.retain(|_, entry| entry.spec.source != source);
            for tool in tools {
                let entry = owned.local(tool)?;
                owned.refuse_clash(&entry)?;
                owned
                    .entries
                    .insert(entry.spec.name.clone(), Arc::new(entry));
            }
            Ok(())
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut RegistryState) -> Result<(), RegistryError>,
    ) -> Result<RegistryDiff, RegistryError> {
        let mut owned = self.lock_owned();
        let before = owned.entries.clone();
        if let Err(refused) = change(&mut owned) {
            owned.entries = before;
            return Err(refused);
        }
        let difference = difference(&before, &owned.entries);
        if !difference.is_empty() {
            let version = self.current.load().version() + 1;
            let snapshot = ToolsetSnapshot::new(version, owned.entries.values().cloned());
            self.current.store(Arc::new(snapshot));
            self.version.send_replace(version);
        }
        Ok(difference)
    }

    fn lock_owned(&self) -> MutexGuard<'_, RegistryState> {
        self.tools.lock()
    }
}

impl RegistryState {
    fn local(&self, tool: Arc<dyn HeldTool>) -> Result<ToolEntry, RegistryError> {
        self.entry(Arc::clone(tool.spec()), ToolBackend::Local(tool))
    }

    fn entry(&self, spec: Arc<ToolSpec>, run: ToolBackend) -> Result<ToolEntry, RegistryError> {
        let compile = |which, schema| {
            let failed = |source| RegistryError::Schema {
                name: spec.name.clone(),
                which,
                source,
            };
            self.schemas.get(schema).map_err(failed)
        };
        let input = compile("input", &spec.input_schema)?;
        let output = spec.output_schema.as_ref();
        let output = output.map(|schema| compile("output", schema)).transpose()?;
        let (hash, fragment) = (OnceLock::new(), OnceLock::new());
        Ok(ToolEntry {
            spec,
            run,
            input,
            output,
            bound: None,
            hash,
            fragment,
        })
    }

    fn refuse_clash(&self, entry: &ToolEntry) -> Result<(), RegistryError> {
        match self.entries.get(&entry.spec.name) {
            None => Ok(()),
            Some(existing) => Err(RegistryError::Clash {
                name: entry.spec.name.clone(),
                existing: existing.spec.source.clone(),
                new: entry.spec.source.clone(),
            }),
        }
    }
}

/// Returns the difference between two maps. Replacing an entry by one with an equal spec and runner is not a change.
fn difference(
    before: &BTreeMap<ToolName, Arc<ToolEntry>>,
    after: &BTreeMap<ToolName, Arc<ToolEntry>>,
) -> RegistryDiff {
    let mut found = RegistryDiff::default();
    for (name, entry) in after {
        match before.get(name) {
            None => found.added.push(name.clone()),
            Some(old) if Arc::ptr_eq(old, entry) => {}
            Some(old) if old.spec == entry.spec && same_runner(&old.run, &entry.run) => {}
            Some(_) => found.changed.push(name.clone()),
        }
    }
    found.removed = before
        .keys()
        .filter(|name| !after.contains_key(*name))
        .cloned()
        .collect();
    found
}

fn same_runner(a: &ToolBackend, b: &ToolBackend) -> bool {
    match (a, b) {
        (ToolBackend::Local(a), ToolBackend::Local(b)) => a.is_same(&**b),
        (ToolBackend::Hosted, ToolBackend::Hosted) | (ToolBackend::Named, ToolBackend::Named) => {
            true
        }
        (ToolBackend::Local(_) | ToolBackend::Hosted | ToolBackend::Named, _) => false,
    }
}

impl Toolset for ToolRegistry {
    fn snapshot(&self) -> Arc<ToolsetSnapshot> {
        self.current.load_full()
    }

    fn version(&self) -> u64 {
        self.current.load().version()
    }

    fn changes(&self) -> ToolsetChanges {
        ToolsetChanges::of(self.version.subscribe())
    }
}
