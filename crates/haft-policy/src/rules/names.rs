//! `UnknownName`: a name in a rule that no tool has. Such a rule never matches, so a misspelled deny rule would not deny anything.

use std::fmt;
use std::sync::Arc;

use crate::Policy;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier, class_of_foreign};
use haft_types::spec::{ToolClass, ToolSpec};

/// Minimum similarity (Jaro-Winkler) for suggesting one name for another.
const MIN_SIMILARITY: f64 = 0.7;

/// A name in a rule that no tool, class or parameter has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The rule's list.
    pub list: RuleList,
    /// The rule as written.
    pub rule: String,
    /// The layer of settings that it comes from.
    pub layer: String,
    /// The name that does not exist.
    pub name: String,
    /// The tool that lacks a parameter of this name; `None` if the name should be a tool or a class.
    pub parameter_of: Option<String>,
    /// A similar name that exists.
    pub near: Option<String>,
    /// Whether the name may belong to a server that is currently absent: `server.tool`.
    pub of_server: bool,
}

impl UnknownName {
    /// Describes the unknown name, without the rule: "unknown tool or class `Reed` (did you mean `Read`?)".
    pub fn finding(&self) -> String {
        let name = &self.name;
        let found = match &self.parameter_of {
            Some(tool) => format!("unknown parameter `{name}` of {tool}"),
            None => format!("unknown tool or class `{name}`"),
        };
        match &self.near {
            Some(near) => format!("{found} (did you mean `{near}`?)"),
            None => found,
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, list) = (self.finding(), self.list);
        write!(
            f,
            "{found} in the {list} rule {:?} of {}",
            self.rule, self.layer
        )
    }
}

/// The existing tools, and names of tools that other settings would bring.
struct ToolNameSet<'a> {
    tools: &'a [Arc<ToolSpec>],
    more: &'a [&'a str],
}

impl<'a> ToolNameSet<'a> {
    fn names(&self) -> impl Iterator<Item = &'a str> {
        let names = self.tools.iter().map(|spec| spec.name.as_str());
        names.chain(self.more.iter().copied())
    }

    fn selects(&self, selector: &Selector) -> bool {
        self.names().any(|name| selector.names(name))
    }

    /// Returns the name in the rule that does not exist, and for a parameter its tool.
    fn missing(&self, rule: &Rule) -> Option<(String, Option<&'a ToolSpec>)> {
        let written = rule.text.split('(').next().unwrap_or_default().trim();
        match &rule.selector {
            Selector::Any | Selector::Class(_) => None,
            _ if class_of_foreign(written).is_some() => None,
            selector if !self.selects(selector) => Some((written.to_owned(), None)),
            Selector::Glob(_) => None,
            Selector::Named(names) => {
                let Specifier::Param(pattern) = &rule.specifier else {
                    return None;
                };
                let named =
                    |spec: &&Arc<ToolSpec>| names.iter().any(|name| **name == *spec.name.as_str());
                let specs = || self.tools.iter().filter(named).map(|spec| &**spec);
                pattern.names().find_map(|name| {
                    let spec = specs().find(|spec| !may_have(spec, name))?;
                    Some((name.to_owned(), Some(spec)))
                })
            }
        }
    }

    fn near(&self, name: &str, spec: Option<&'a ToolSpec>) -> Option<String> {
        let candidates: Vec<&str> = if let Some(spec) = spec {
            parameters(spec).collect()
        } else {
            let classes = ToolClass::ALL.map(ToolClass::as_str);
            self.names().chain(classes).collect()
        };
        let like = |known: &&str| strsim::jaro_winkler(name, known);
        candidates
            .into_iter()
            .filter(|known| like(known) > MIN_SIMILARITY)
            .max_by(|a, b| like(a).total_cmp(&like(b)))
            .map(str::to_owned)
    }
}

fn parameters(spec: &ToolSpec) -> impl Iterator<Item = &str> {
    let properties = spec.input_schema.get("properties");
    let properties = properties.and_then(serde_json::Value::as_object);
    properties
        .into_iter()
        .flat_map(|all| all.keys().map(String::as_str))
}

/// Whether a call of the tool may have this argument.
fn may_have(spec: &ToolSpec, name: &str) -> bool {
    spec.input_schema.get("additionalProperties") != Some(&serde_json::Value::Bool(false))
        || parameters(spec).any(|known| known == name)
}

impl Policy {
    /// Returns the names in rules that no tool of `tools` has and that are not in `more`: names of tools that other settings would bring.
    pub fn unknown_names(&self, tools: &[Arc<ToolSpec>], more: &[&str]) -> Vec<UnknownName> {
        let known = ToolNameSet { tools, more };
        let unknown = |rule: &Rule| {
            let (name, spec) = known.missing(rule)?;
            Some(UnknownName {
                list: rule.list,
                rule: rule.text.to_string(),
                layer: rule.layer.to_string(),
                near: known.near(&name, spec),
                of_server: spec.is_none() && (name.contains('.') || name.starts_with("mcp__")),
                parameter_of: spec.map(|spec| spec.name.to_string()),
                name,
            })
        };
        self.rules.all().iter().filter_map(unknown).collect()
    }
}
