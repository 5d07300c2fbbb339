//! Rules for which the user chose "always": stored in haft's state folder, one file per workspace, as a layer of the settings.

use std::path::PathBuf;
use std::sync::Arc;

use haft::approval::{ApprovalRequest, RuleStore, SavedRules};
use haft::clock;
use haft::policy::{Policy, RuleDifference, RuleSet, RuleText};
use haft::toolset::Toolset;
use toml::Value;

use crate::config::layer::SettingsLayer;
use crate::policy_in_force::PolicyInForce;
use crate::problem::Problem;

pub(crate) mod edit;
pub(crate) mod file;

pub use crate::home::rule_file as file;
pub use edit::{RuleChange, SavedRule};
use file::RuleFile;

/// Maximum length of a rule, in bytes.
const MAX_RULE: usize = 4096;

/// Checks whether a rule may be saved with an approval.
#[derive(Debug, Clone)]
pub struct RuleCheck {
    /// The policy in force.
    pub(crate) policy: PolicyInForce,
    /// Every tool, on or off.
    pub(crate) tools: Arc<dyn Toolset>,
    /// The host's own tools, which no caller sees.
    pub(crate) internal: Arc<dyn Toolset>,
    /// The names of tools, including those created elsewhere.
    pub(crate) names: Arc<[String]>,
}

impl RuleCheck {
    /// Returns why a rule cannot be saved, whatever its origin; `None` if it can. At the start, rules are parsed by the same code, and
    /// their names checked against the same tools.
    pub fn refuse(&self, rule: &RuleText) -> Option<String> {
        if rule.rule.len() > MAX_RULE || rule.rule.contains(['\n', '\r']) {
            return Some("a rule is one line of at most 4,096 bytes".to_owned());
        }
        let alone = RuleSet {
            allow: vec![rule.clone()],
            ..RuleSet::default()
        };
        let alone = alone.in_layer(SettingsLayer::Always.as_str());
        let alone = match Policy::clone(&self.policy.now()).with_rules(alone) {
            Ok(alone) => alone,
            Err(error) => return Some(error.to_string()),
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let unknown = alone.unknown_names(&self.tools.snapshot().specs(), &names);
        let unknown = unknown.iter().find(|name| !name.of_server)?;
        Some(format!(
            "{} is not a valid rule here: {}",
            rule.rule,
            unknown.finding()
        ))
    }

    /// Returns what these rules would newly let through under the policy in force, one line each with an example; says so if it is
    /// nothing.
    pub fn newly_allowed(&self, rules: &[RuleText]) -> Vec<String> {
        let old = self.policy.now();
        let new = match old.allowing(rules.iter().cloned()) {
            Ok(new) => new,
            Err(error) => return vec![error.to_string()],
        };
        let found = old.looser_rules(&new);
        if found.is_empty() {
            return vec!["newly allowed: nothing beyond what the rules in force allow".to_owned()];
        }
        found.iter().map(RuleDifference::to_line).collect()
    }

    /// Returns why an approval of the request for good cannot save this rule, or the suggested ones if it is `None`; returns `None` if it
    /// can: the rule is valid, and under it the same call would need no approval.
    pub fn problem(&self, request: &ApprovalRequest, rule: Option<&str>) -> Option<String> {
        if request.is_over_budget() {
            return Some(
                "a budget applies, and no rule can override it: approve it once".to_owned(),
            );
        }
        if request.is_decided_each_time() {
            return Some("this call needs approval each time: no rule is saved".to_owned());
        }
        let rules = request.kept_rules(rule);
        if let Some(problem) = rules.iter().find_map(|rule| self.refuse(rule)) {
            return Some(problem);
        }
        if rules.is_empty() {
            return Some(
                "no rule would allow just this call: approve it once or for the session".to_owned(),
            );
        }
        let (tools, internal) = (self.tools.snapshot(), self.internal.snapshot());
        let name = request.tool.as_str();
        let Some(tool) = tools.entry(name).or_else(|| internal.entry(name)) else {
            return Some(format!("there is no tool {} here", request.tool));
        };
        let named: Vec<String> = rules.iter().map(|rule| rule.rule.clone()).collect();
        match request.is_allowed_with(&self.policy.now(), tool.spec(), rules) {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "the rule {} does not cover this call: haft would ask about it again",
                named.join(" and ")
            )),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// The rule files of all workspaces, in haft's state folder.
#[derive(Debug)]
pub struct RuleFiles {
    /// haft's state folder.
    pub(crate) home: PathBuf,
    /// Checks which rules may be saved.
    pub(crate) check: RuleCheck,
}

impl RuleStore for RuleFiles {
    fn keep(&self, rules: &SavedRules<'_>) -> Result<(), String> {
        let since = clock::rfc3339(clock::now());
        let (by, approval) = (rules.by, rules.approval);
        let reason = format!("always, said {by} on {since} about {approval}");
        let add = |entries: &mut Vec<Value>| {
            for rule in &rules.rules {
                let rule = RuleText {
                    reason: Some(reason.clone()),
                    ..rule.clone()
                };
                let entry = Value::try_from(&rule);
                entries.push(entry.map_err(|e| Problem::failed(e.to_string()))?);
            }
            Ok(())
        };
        let file = RuleFile::of(&self.home, rules.workspace);
        let added = file.change(&self.check, add);
        added.map_err(|problem| problem.to_string())
    }
}

fn head(workspace: &str) -> String {
    let workspace = workspace.replace(char::is_control, " ");
    format!(
        "# Rules that were approved with \"always\" in {workspace}.\n\
         # haft adds to this file; `haft policy rules` lists, edits and removes its rules. With `tool` and `arguments` a rule applies only to\n\
         # calls of that tool with the same remaining arguments; without both lines it applies to every call that it matches.\n"
    )
}
