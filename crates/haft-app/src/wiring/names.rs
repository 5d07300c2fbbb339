//! Checks the names in rules against the existing tools.

use std::sync::Arc;

use haft::policy::{List, Policy, RulesError, UnknownName};
use haft::toolset::Toolset;

use crate::config::Settings;
use crate::config::layer::Layer;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::parts::{self, Knowledge, ToolCatalogue};
use crate::wiring::policy::{Ground, build, problem};
use crate::wiring::{selection, skills};

/// Checks for rules whose tool does not exist: a misspelt name is an error, the name of a server's tool a warning. A
/// deny or ask rule that can never match is an error, too: the calls that it seems to restrict are unrestricted. For a
/// saved rule, an unknown name is only a warning, since the rule then covers nothing.
pub(crate) fn check_names(
    policy: &Policy,
    settings: &Settings,
    tools: &ToolCatalogue,
) -> Result<Vec<String>, Problem> {
    let unknown = unknown_in_catalogue(policy, tools);
    // A saved rule only allows: if it names no tool, it covers nothing.
    let is_kept =
        |name: &UnknownName| name.list == List::Allow && name.layer == Layer::Always.as_str();
    let wrong = unknown
        .iter()
        .find(|name| !name.of_server && !is_kept(name));
    if let Some(name) = wrong {
        let unknown = RulesError::Unknown(Box::new(name.clone()));
        return Err(problem(&unknown, settings));
    }
    let mut never = policy.rules_that_never_match().into_iter();
    if let Some(open) = never.find(|rule| rule.list != List::Allow) {
        let never = RulesError::NeverMatches(Box::new(open));
        return Err(problem(&never, settings));
    }
    let line = |name: &UnknownName| {
        if is_kept(name) {
            format!("{name}: it covers nothing; `haft policy rules` shows and removes it")
        } else {
            name.to_string()
        }
    };
    Ok(unknown.iter().map(line).collect())
}

/// What `policy check` finds in the names of rules, and an error in the settings besides.
pub(crate) struct Names {
    /// Names that no standard tool has, on or off.
    pub(crate) unknown: Vec<UnknownName>,
    /// Why the tools cannot be wired as the settings say. The names were still compared.
    pub(crate) fault: Option<Problem>,
}

/// Compares the names in rules with the standard tools; for `policy check`, which wires nothing else.
pub(crate) fn names(at: &Site, settings: &Settings) -> Result<Names, Problem> {
    let ground = build(at, settings, &[])?;
    let (tools, fault) = match wire_catalogue(at, settings, &ground) {
        Ok(tools) => (tools, None),
        Err(fault) => (
            parts::unwired_catalogue(at, &ground.workspace)?,
            Some(fault),
        ),
    };
    let unknown = unknown_in_catalogue(&ground.policy, &tools);
    Ok(Names { unknown, fault })
}

fn wire_catalogue(
    at: &Site,
    settings: &Settings,
    ground: &Ground,
) -> Result<ToolCatalogue, Problem> {
    let confined = parts::Confinement::of(at, settings, ground)?;
    let skills = Arc::new(skills::set(at, settings));
    let knowledge = Knowledge {
        skills: &skills,
        memory: None,
        own: &[],
    };
    parts::standard(at, settings, ground, &confined, knowledge)
}

fn unknown_in_catalogue(policy: &Policy, tools: &ToolCatalogue) -> Vec<UnknownName> {
    policy.unknown_names(&tools.registry.snapshot().specs(), &known(tools))
}

/// Returns the names of all tools, including those that other settings would add.
pub(crate) fn known(tools: &ToolCatalogue) -> Vec<&str> {
    let mut names: Vec<&str> = tools.names().collect();
    for name in selection::optional_tools() {
        names.push(name);
    }
    names
}
