//! What a change of rules lets through: decided from the rules themselves, with an example of each.
//!
//! A verdict can only become looser if a deny or ask rule is gone whose effects the rules that are left do not cover, or an allow rule came
//! whose effects were not allowed before. So each such rule is compared with the others, kind of effect by kind of effect: the texts that
//! it matches are a regular language, and whether one lies in the union of others is decided (`inclusion.rs`), not tried. What cannot be
//! decided counts as looser.

mod automaton;
mod cells;
mod comparison;
mod example;
mod glob_language;
mod host_language;
mod inclusion;
mod language;
mod parts;
mod path_language;
mod private_places;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::Policy;
use crate::commands::phrase::clip;
use crate::rules::rule::{Rule, RuleList};
use comparison::PolicyComparison;
use haft_types::permission::Verdict;

/// How a rule's effects are judged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictChange {
    /// A new allow rule covers effects that no rule allowed before.
    NewlyAllowed,
    /// A deny rule is gone, and no deny or ask rule covers all of its effects.
    NoLongerDenied,
    /// A deny rule is gone, and ask rules cover what no deny rule covers.
    AskedNow,
    /// An ask rule is gone, and no deny or ask rule covers all of its effects.
    NoLongerAsked,
    /// Programs in the jail see or change files that a deny rule kept from them.
    OpenToPrograms,
    /// The reverse of the second and third.
    NewlyDenied,
    /// The reverse of the fourth.
    NewlyAsked,
    /// The reverse of the first.
    NoLongerAllowed,
}

impl VerdictChange {
    /// Whether something may run that was asked about or denied, or is asked about that was denied.
    pub fn is_looser(self) -> bool {
        self < Self::NewlyDenied
    }

    /// Returns the words on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewlyAllowed => "newly allowed",
            Self::NoLongerDenied => "no longer denied",
            Self::AskedNow => "asked now, was denied",
            Self::NoLongerAsked => "no longer asked about by a rule",
            Self::OpenToPrograms => "open to programs in the jail",
            Self::NewlyDenied => "newly denied",
            Self::NewlyAsked => "newly asked about",
            Self::NoLongerAllowed => "no longer allowed by a rule",
        }
    }
}

impl fmt::Display for VerdictChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule that judges effects differently, with one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleDifference {
    /// How.
    pub change: VerdictChange,
    /// The list of the rule that came or is gone.
    pub list: RuleList,
    /// The rule as written.
    pub rule: String,
    /// The layer of settings that it comes from.
    pub layer: String,
    /// The tool, if the rule covers only calls like one that was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like_call_of: Option<String>,
    /// What happens in the example: `running`, `reading`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// A shortest value with which it happens: a command, a path, a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The tool of the example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The verdict on the example under the old policy, guards and profile included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Verdict>,
    /// The verdict on the example under the new policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Verdict>,
    /// Whether it could not be decided within the limits, and therefore counts as a difference.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

impl RuleDifference {
    /// Creates a difference without an example.
    fn of(change: VerdictChange, rule: &Rule) -> Self {
        Self {
            change,
            list: rule.list,
            rule: clip(&rule.text),
            layer: rule.layer.to_string(),
            like_call_of: rule.kept_for.as_ref().map(|kept| kept.tool.to_string()),
            what: None,
            example: None,
            tool: None,
            before: None,
            after: None,
            undecided: false,
        }
    }

    /// Describes it in one line.
    pub fn to_line(&self) -> String {
        let mut line = format!("{}: {}", self.change, self.rule);
        if let Some(tool) = &self.like_call_of {
            let _ = write!(line, " for calls of {tool} like the one approved");
        }
        if self.undecided {
            line.push_str(" (not decided within the limits: counts as looser)");
        }
        if let Some(what) = &self.what {
            let _ = write!(line, ", e.g. {what}");
            let value = self.example.as_deref().filter(|value| !value.is_empty());
            if let Some(shown) = value.or(self.tool.as_deref()) {
                let _ = write!(line, " `{shown}`");
            }
        }
        if let (Some(before), Some(after)) = (self.before, self.after) {
            let _ = write!(line, " ({before} before, {after} now)");
        }
        line
    }
}

impl Policy {
    /// Returns what the rules of another policy judge differently from this one's, the looser first. Profile, guards and other settings
    /// are not compared: of two policies that differ in rules alone, each verdict of the new one that is looser has a cause here.
    pub fn rule_differences(&self, new: &Self) -> Vec<RuleDifference> {
        let mut found = PolicyComparison::new(self, new).looser();
        let stricter = PolicyComparison::new(new, self).looser().into_iter();
        found.extend(stricter.filter_map(reversed));
        found.sort_by_key(|one| one.change);
        found
    }

    /// Returns what the rules of another policy let through that this one's do not.
    pub fn looser_rules(&self, new: &Self) -> Vec<RuleDifference> {
        let mut found = PolicyComparison::new(self, new).looser();
        found.sort_by_key(|one| one.change);
        found
    }
}

/// Returns a difference as it is seen from the other policy; `None` if another one says the same.
fn reversed(one: RuleDifference) -> Option<RuleDifference> {
    let change = match one.change {
        VerdictChange::NewlyAllowed => VerdictChange::NoLongerAllowed,
        VerdictChange::NoLongerDenied | VerdictChange::AskedNow => VerdictChange::NewlyDenied,
        VerdictChange::NoLongerAsked => VerdictChange::NewlyAsked,
        _ => return None,
    };
    Some(RuleDifference {
        change,
        before: one.after,
        after: one.before,
        ..one
    })
}
