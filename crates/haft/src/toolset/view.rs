//! Views: narrower or renamed views of a toolset. A view changes entries and never wraps a tool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::json::bind::{BindError, Binding};
use crate::spec::{BUILTIN, Exposure, NameError, Overflow, ToolName, ToolSpec};

use crate::toolset::lazy::{self, LazyListing};
use crate::toolset::registry::RegistryError;
use crate::toolset::rename;
use crate::toolset::{EXPAND_TOOLS, ToolEntry, Toolset, ToolsetSnapshot};

pub use crate::toolset::DerivedToolset;
pub use crate::toolset::replaceable::ReplaceableToolset;

/// Shortcuts to create views of any toolset.
pub trait ToolsetExt: Toolset + Sized + 'static {
    /// Keeps only these tools. Logs a warning for unknown names.
    fn only<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> DerivedToolset {
        let names = known(&self, names);
        DerivedToolset::new([Arc::new(self) as _], move |all| {
            pick(all, |name| names.contains(name))
        })
    }

    /// Keeps all but these tools. Logs a warning for unknown names.
    fn except<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> DerivedToolset {
        let names = known(&self, names);
        DerivedToolset::new([Arc::new(self) as _], move |all| {
            pick(all, |name| !names.contains(name))
        })
    }

    /// Keeps only the tools whose names match, including tools added later.
    fn matching(self, fits: impl Fn(&str) -> bool + Send + Sync + 'static) -> DerivedToolset {
        DerivedToolset::new([Arc::new(self) as _], move |all| pick(all, &fits))
    }

    /// Keeps only the tools that this process runs, no provider's tools.
    fn local(self) -> DerivedToolset {
        DerivedToolset::new([Arc::new(self) as _], |all| {
            let entries = all.iter().flat_map(|s| s.entries());
            entries.filter(|e| e.is_local()).cloned().collect()
        })
    }

    /// Lists only a few of the tools: the others are found by search and called through [`CALL_TOOL`](super::lazy::CALL_TOOL) or by
    /// their own names. A call through `call_tool` is judged, recorded and answered as a call of the tool that it names.
    ///
    /// # Errors
    /// The toolset has a tool named `call_tool`.
    fn lazily(self, lazy: LazyListing) -> Result<DerivedToolset, RegistryError> {
        lazy::lazily(Arc::new(self), lazy)
    }

    /// Defers tools if more than `most` are listed, except those for which `stays` returns true: search finds them, and they become
    /// callable once the run expands them. Without [`EXPAND_TOOLS`] among the tools, nothing changes.
    fn deferring(
        self,
        most: usize,
        stays: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> DerivedToolset {
        DerivedToolset::new([Arc::new(self) as _], move |all| {
            let entries = || all.iter().flat_map(|s| s.entries());
            let expands = entries().any(|e| e.spec.name.as_str() == EXPAND_TOOLS);
            let listed = entries().filter(|e| e.spec.exposure == Exposure::Listed);
            if !expands || listed.count() <= most {
                return entries().cloned().collect();
            }
            entries().map(|e| deferred(e, &stays)).collect()
        })
    }

    /// Puts `prefix.` in front of every name.
    ///
    /// # Errors
    /// [`NameError`] if `prefix` is not a valid tool name.
    fn prefixed(self, prefix: &str) -> Result<DerivedToolset, NameError> {
        ToolName::new(prefix)?;
        let prefix = prefix.to_owned();
        let named = move |all: &[Arc<ToolsetSnapshot>]| {
            let entries = all.iter().flat_map(|s| s.entries());
            entries
                .filter_map(|e| rename::prefixed(e, &prefix))
                .collect()
        };
        Ok(DerivedToolset::new([Arc::new(self) as _], named))
    }

    /// Renames some tools. Logs a warning for unknown names.
    ///
    /// No name ever stands for two tools: of tools that appear later under a name chosen here, a built-in is kept, then the renamed
    /// tool, and the others are left out with a warning.
    ///
    /// # Errors
    /// A new name is not a valid tool name, or two tools would have it.
    fn renamed<A: AsRef<str>, B: AsRef<str>>(
        self,
        names: impl IntoIterator<Item = (A, B)>,
    ) -> Result<DerivedToolset, RegistryError> {
        let mut new_names = BTreeMap::new();
        for (old, new) in names {
            new_names.insert(old.as_ref().to_owned(), ToolName::new(new.as_ref())?);
        }
        known(&self, new_names.keys());
        rename::check(self.snapshot().entries(), &new_names)?;
        Ok(DerivedToolset::new([Arc::new(self) as _], move |all| {
            let entries = all.iter().flat_map(|s| s.entries());
            rename::rename(entries, &new_names)
        }))
    }

    /// Applies the host's settings to the tools.
    ///
    /// # Errors
    /// A value that settings fill in does not fit the schema of its tool.
    fn configured(
        self,
        settings: BTreeMap<String, ToolSettings>,
        locale: Option<&str>,
    ) -> Result<DerivedToolset, BindError> {
        known(&self, settings.keys());
        let snapshot = self.snapshot();
        for entry in snapshot.entries() {
            // Report a binding that does not fit to the host now, rather than at the first call.
            settings
                .get(entry.spec.name.as_str())
                .map(|s| configured(entry, s, None))
                .transpose()?;
        }
        let locale = locale.map(str::to_owned);
        let plain = ToolSettings::default();
        let configure = move |all: &[Arc<ToolsetSnapshot>]| {
            let entries = all.iter().flat_map(|s| s.entries());
            let apply = |e: &Arc<ToolEntry>| {
                let settings = settings.get(e.spec.name.as_str()).unwrap_or(&plain);
                // A tool whose changed schema no longer fits its binding is left out, not offered unbound.
                configured(e, settings, locale.as_deref()).ok()
            };
            entries.filter_map(apply).collect()
        };
        Ok(DerivedToolset::new([Arc::new(self) as _], configure))
    }
}

impl<T: Toolset + Sized + 'static> ToolsetExt for T {}

/// Combines the tools of several toolsets. If two share a name, the earlier toolset's tool is kept; a built-in is always kept.
pub fn merged(toolsets: impl IntoIterator<Item = Arc<dyn Toolset>>) -> DerivedToolset {
    DerivedToolset::new(toolsets, |all| {
        let entries = || all.iter().flat_map(|s| s.entries()).cloned();
        let builtin = |e: &Arc<ToolEntry>| e.spec.source == BUILTIN;
        entries()
            .filter(builtin)
            .chain(entries().filter(|e| !builtin(e)))
            .collect()
    })
}

/// What settings may change about a tool (`tools.NAME.*`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSettings {
    /// A different description.
    pub description: Option<String>,
    /// Descriptions by language; they take precedence over the tool's own.
    pub i18n: BTreeMap<String, String>,
    /// Arguments that the host fills in.
    pub bind: Map<String, Value>,
    /// The same arguments as users may see them, with a reference to a secret instead of the secret. Without it, users see a hash of
    /// each value.
    pub bind_written: Option<Map<String, Value>>,
    /// A different deadline.
    pub timeout: Option<Duration>,
    /// How to handle a large result.
    pub overflow: Option<Overflow>,
    /// A different inline limit, in tokens.
    pub inline_tokens: Option<usize>,
    /// A different exposure.
    pub exposure: Option<Exposure>,
}

fn configured(
    entry: &Arc<ToolEntry>,
    settings: &ToolSettings,
    locale: Option<&str>,
) -> Result<Arc<ToolEntry>, BindError> {
    let mut spec = ToolSpec::clone(&entry.spec);
    if let Some(description) = &settings.description {
        spec.description.clone_from(description);
        spec.i18n.clear();
    }
    spec.i18n.extend(settings.i18n.clone());
    if let Some(locale) = locale {
        let description = spec.description_in(locale).to_owned();
        spec.description = description;
    }
    spec.timeout = settings.timeout.or(spec.timeout);
    spec.overflow = settings.overflow.or(spec.overflow);
    spec.inline_tokens = settings.inline_tokens.or(spec.inline_tokens);
    spec.exposure = settings.exposure.unwrap_or(spec.exposure);
    let mut bound = Binding::new(&spec.input_schema, settings.bind.clone())?;
    if let Some(written) = &settings.bind_written {
        bound = bound.written_as(written.clone());
    }
    if !bound.is_empty() {
        spec.input_schema = Arc::new(bound.caller_schema(&spec.input_schema));
    }
    if spec == *entry.spec {
        return Ok(Arc::clone(entry));
    }
    let mut changed = entry.with_spec(spec);
    if !bound.is_empty() {
        changed.bound = Some(Arc::new(bound));
    }
    Ok(Arc::new(changed))
}

fn pick(all: &[Arc<ToolsetSnapshot>], wanted: impl Fn(&str) -> bool) -> Vec<Arc<ToolEntry>> {
    let entries = all.iter().flat_map(|s| s.entries());
    entries
        .filter(|e| wanted(e.spec.name.as_str()))
        .cloned()
        .collect()
}

/// Returns the entry, deferred if it is listed and need not stay so.
fn deferred(entry: &Arc<ToolEntry>, stays: impl Fn(&str) -> bool) -> Arc<ToolEntry> {
    let spec = &entry.spec;
    let name = spec.name.as_str();
    if spec.exposure != Exposure::Listed || name == EXPAND_TOOLS || stays(name) {
        return Arc::clone(entry);
    }
    Arc::new(entry.with_spec(ToolSpec {
        exposure: Exposure::Deferred,
        ..ToolSpec::clone(spec)
    }))
}

/// Returns the names as a set, and logs a warning for those that the toolset does not have now.
fn known<S: AsRef<str>>(
    tools: &impl Toolset,
    names: impl IntoIterator<Item = S>,
) -> BTreeSet<String> {
    let names: BTreeSet<String> = names.into_iter().map(|n| n.as_ref().to_owned()).collect();
    for unknown in unknown(tools, &names) {
        tracing::warn!(tool = unknown, "view names a tool that does not exist");
    }
    names
}

/// Returns the names that a toolset does not have.
pub fn unknown<'a, S: AsRef<str> + 'a>(
    tools: &impl Toolset,
    names: impl IntoIterator<Item = &'a S>,
) -> Vec<&'a str> {
    let snapshot = tools.snapshot();
    let names = names.into_iter().map(AsRef::as_ref);
    names
        .filter(|name| snapshot.entry(name).is_none())
        .collect()
}
