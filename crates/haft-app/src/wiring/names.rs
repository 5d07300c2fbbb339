//! Checks the names in rules against the existing tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft::policy::{Policy, RuleFinding, RuleList, RulesError, UnknownName};
use haft::toolset::Toolset;

use crate::config::Settings;
use crate::config::layer::SettingsLayer;
use crate::notices::Notices;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::parts::{self, HostResources, ToolCatalogue};
use crate::wiring::policy::{PolicyInputs, build, problem};
use crate::wiring::{selection, skills};

/// Maximum number of warnings about names: a folder that is not trusted may have thousands of rules.
const MAX_WARNED: usize = 20;

/// Returns the names of the tools that are on. A name in a rule that no tool can have is an error; a name that only a
/// server's tool could have, in rules or settings, is a warning.
pub(crate) fn enabled_tools(
    notices: &Notices,
    settings: &Settings,
    policy: &Policy,
    all: &ToolCatalogue,
) -> Result<BTreeSet<String>, Problem> {
    for unknown in check_names(policy, settings, all)? {
        notices.warn(&unknown);
    }
    for absent in parts::missing_server_tools(all, settings) {
        notices.warn(&absent);
    }
    parts::on(all, settings)
}

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
    let is_kept = |name: &UnknownName| {
        name.list == RuleList::Allow && name.layer == SettingsLayer::Always.as_str()
    };
    let wrong = unknown
        .iter()
        .find(|name| !name.of_server && !is_kept(name));
    if let Some(name) = wrong {
        let unknown = RulesError::Unknown(Box::new(name.clone()));
        return Err(problem(&unknown, settings));
    }
    let mut never = policy.rules_that_never_match().into_iter();
    // An allow rule of another agent's list may name what haft has not; one of haft's own forms is a mistake.
    let is_mistake = |rule: &RuleFinding| {
        let saved = rule.layer == SettingsLayer::Always.as_str();
        rule.list != RuleList::Allow || rule.has_closed_forms() && !saved
    };
    if let Some(open) = never.find(is_mistake) {
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
    let mut lines: Vec<String> = unknown.iter().take(MAX_WARNED).map(line).collect();
    let more = unknown.len().saturating_sub(MAX_WARNED);
    if more > 0 {
        lines.push(format!(
            "{more} more rules name tools that are not known: `haft policy check` lists them"
        ));
    }
    Ok(lines)
}

/// What `policy check` finds in the names of rules, and an error in the settings besides.
pub(crate) struct NameCheck {
    /// Names that no standard tool has, on or off.
    pub(crate) unknown: Vec<UnknownName>,
    /// Why the tools cannot be wired as the settings say. The names were still compared.
    pub(crate) fault: Option<Problem>,
}

/// Compares the names in rules with the standard tools; for `policy check`, which wires nothing else.
pub(crate) fn names(at: &Site, settings: &Settings) -> Result<NameCheck, Problem> {
    let ground = build(at, settings, &[])?;
    let (tools, fault) = match wire_catalogue(at, settings, &ground) {
        Ok(tools) => (tools, None),
        Err(fault) => (
            parts::unwired_catalogue(at, &ground.workspace)?,
            Some(fault),
        ),
    };
    let unknown = unknown_in_catalogue(&ground.policy, &tools);
    Ok(NameCheck { unknown, fault })
}

fn wire_catalogue(
    at: &Site,
    settings: &Settings,
    ground: &PolicyInputs,
) -> Result<ToolCatalogue, Problem> {
    let confined = parts::CommandConfinement::of(at, settings, ground)?;
    let skills = Arc::new(skills::set(at, settings));
    let knowledge = HostResources {
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
