//! `DeclaredTools`: the tools declared to the model, in the same order for the whole run, so that the provider's cache stays valid.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft::spec::Declaration;
use haft::toolset::{ToolEntry, ToolsetSnapshot};
use haft_wire::declared::Function;
use haft_wire::declarer::VersionedTool;
use haft_wire::{Declarations, Declarer, Dialect, ToolDeclaration};
use serde_json::value::RawValue;

use crate::options::AgentOptions;
use crate::provided::ProviderTool;

/// The declared tools.
#[derive(Debug)]
pub(crate) struct DeclaredTools {
    dialect: Dialect,
    strict: bool,
    /// The provider-defined tools, declared before all others.
    provided: Vec<ProviderTool>,
    declarer: Declarer,
    /// By name: the declaration, and the hash of its spec.
    known: HashMap<String, HashedTool>,
    order: Vec<String>,
    seen: Option<u64>,
    now: Arc<Declarations>,
}

#[derive(Debug)]
struct HashedTool {
    hash: String,
    tool: ToolDeclaration,
}

impl DeclaredTools {
    /// Creates an offer that declares nothing yet; tools that were declared before come first, in their order.
    pub(crate) fn new(dialect: Dialect, options: &AgentOptions, order: Vec<String>) -> Self {
        let mut provided = options.provided.clone();
        provided.retain(|tool| tool.dialect() == dialect);
        Self {
            dialect,
            strict: options.strict,
            provided,
            declarer: Declarer::new(dialect),
            known: HashMap::new(),
            order,
            seen: None,
            now: Arc::new(Declarations::none(dialect)),
        }
    }

    /// Returns the latest declarations.
    pub(crate) fn now(&self) -> &Arc<Declarations> {
        &self.now
    }

    /// Returns the provider-defined tools that are answered here.
    pub(crate) fn provided(&self) -> &[ProviderTool] {
        &self.provided
    }

    /// Updates to the current tools: removed ones are left out, new ones come last. Returns the names if they changed.
    pub(crate) fn refresh(&mut self, tools: &ToolsetSnapshot) -> Option<Vec<String>> {
        self.refresh_some(tools, &|_| true)
    }

    fn refresh_some(
        &mut self,
        tools: &ToolsetSnapshot,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        if self.seen == Some(tools.version()) {
            return None;
        }
        self.seen = Some(tools.version());
        let (entries, _) = tools.for_provider(self.dialect.as_str());
        let entries: HashMap<&str, &Arc<ToolEntry>> = entries
            .into_iter()
            .map(|entry| (entry.spec().name.as_str(), entry))
            .filter(|(name, _)| is_wanted(name))
            .collect();
        let before = self.order.clone();
        self.order
            .retain(|name| entries.contains_key(name.as_str()));
        let listed: HashSet<&str> = self.order.iter().map(String::as_str).collect();
        let mut new: Vec<String> = entries
            .keys()
            .filter(|name| !listed.contains(*name))
            .map(|name| (*name).to_owned())
            .collect();
        new.sort_unstable();
        self.order.append(&mut new);
        for name in &self.order {
            if let Some(entry) = entries.get(name.as_str()) {
                learn(&mut self.known, entry, self.dialect, self.strict);
            }
        }
        let usable = |tool: &&ProviderTool| tools.entry(tool.needs()).is_some();
        let provided = self.provided.iter().filter(usable);
        let provided: Vec<(&str, ToolDeclaration)> = provided
            .filter_map(|tool| Some((tool.as_str(), tool.declared()?)))
            .collect();
        let all = self.order.iter().filter_map(|name| self.known.get(name));
        let all = all.map(|known| VersionedTool {
            version: &known.hash,
            tool: &known.tool,
        });
        let first = provided
            .iter()
            .map(|(version, tool)| VersionedTool { version, tool });
        self.now = self.declarer.declare(&first.chain(all).collect::<Vec<_>>());
        for lost in self.now.lost.iter() {
            tracing::debug!(
                tool = lost.tool,
                at = lost.at,
                what = lost.what,
                "declared with less than its schema"
            );
        }
        (self.order != before).then(|| self.order.clone())
    }
}

/// Returns the tools as a model of the dialect gets them from an agent with no options; with a name, that tool alone.
pub fn declarations(
    tools: &ToolsetSnapshot,
    dialect: Dialect,
    only: Option<&str>,
) -> Arc<Declarations> {
    let mut offer = DeclaredTools::new(dialect, &AgentOptions::default(), Vec::new());
    offer.refresh_some(tools, &|name| only.is_none_or(|only| only == name));
    Arc::clone(offer.now())
}

/// Records how a tool is declared, unless that is already known.
fn learn(
    known: &mut HashMap<String, HashedTool>,
    entry: &ToolEntry,
    dialect: Dialect,
    strict: bool,
) {
    let (name, hash) = (entry.spec().name.as_str(), entry.spec_hash());
    if known.get(name).is_some_and(|known| known.hash == hash) {
        return;
    }
    match declared(entry, dialect, strict) {
        Ok(tool) => {
            let hash = hash.to_owned();
            known.insert(name.to_owned(), HashedTool { hash, tool });
        }
        Err(error) => {
            tracing::warn!(tool = name, %error, "the tool cannot be declared and is left out");
            known.remove(name);
        }
    }
}

fn declared(
    entry: &ToolEntry,
    dialect: Dialect,
    strict: bool,
) -> serde_json::Result<ToolDeclaration> {
    let spec = entry.spec();
    if let Declaration::Provider { specs, .. } = &spec.declaration
        && let Some(own) = specs.get(dialect.as_str())
    {
        let spec = RawValue::from_string(own.to_string())?;
        return Ok(ToolDeclaration::Provider { dialect, spec });
    }
    let parameters = RawValue::from_string(spec.input_schema.to_string())?;
    Ok(ToolDeclaration::Function(Function {
        name: spec.name.to_string(),
        description: spec.description.clone(),
        parameters: parameters.into(),
        strict,
        deferred: false,
    }))
}
