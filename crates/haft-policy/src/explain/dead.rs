//! `DeadRule`: a rule that decides no call, because it matches nothing or because another rule decides first.

use serde::Serialize;

use crate::Policy;
use crate::guards::{Guard, WorkspaceEdge};
use crate::rules::rule::{Rule, RuleList, Selector, Specifier};
use crate::rules::{RuleFinding, finding};
use haft_files::paths::PathView;
use haft_types::spec::ToolClass;

/// Why a rule decides no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadCause {
    /// Its text matches nothing.
    NeverMatches,
    /// A rule in a list that is checked earlier covers every call that it covers.
    Shadowed,
    /// The same rule occurs earlier.
    Repeated,
    /// It allows paths outside the workspace, where no rule allows anything.
    Outside,
}

/// A rule that decides no call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadRule {
    /// Its position among the rules of [`PolicyView`](crate::PolicyView).
    pub at: usize,
    /// The cause as a category.
    pub cause: DeadCause,
    /// The cause in a sentence.
    pub problem: String,
    /// How to fix it.
    pub advice: String,
    /// The position of the rule that decides instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<usize>,
}

impl Policy {
    /// Returns the rules that decide no call. Rules are compared in pairs, so this misses a rule that several others cover together, and
    /// one whose patterns are too complex to compare.
    pub fn dead_rules(&self) -> Vec<DeadRule> {
        let rules = self.rules.all();
        let each = rules.iter().enumerate();
        each.filter_map(|(at, rule)| self.dead(at, rule, rules.get(..at).unwrap_or_default()))
            .collect()
    }

    /// Returns the rules that can never match a call. One that should deny or ask leaves open what it seems to close.
    pub fn rules_that_never_match(&self) -> Vec<RuleFinding> {
        self.rules.all().iter().filter_map(finding).collect()
    }

    /// Says why a rule is dead, if it is. `before` holds the rules that are checked before this one.
    fn dead(&self, at: usize, rule: &Rule, before: &[Rule]) -> Option<DeadRule> {
        if let Some(never) = &rule.never {
            return Some(DeadRule {
                at,
                cause: DeadCause::NeverMatches,
                problem: never.why.clone(),
                advice: never.form.clone(),
                by: None,
            });
        }
        let is_wider = |earlier: &Rule| earlier.list != rule.list && self.shadows(earlier, rule);
        if let Some(by) = before.iter().position(is_wider) {
            let wider = &before[by];
            return Some(DeadRule {
                at,
                cause: DeadCause::Shadowed,
                problem: format!(
                    "the {} rule {} of {} already decides everything that it covers",
                    wider.list, wider.text, wider.layer
                ),
                advice: format!("remove it, or narrow the {} rule", wider.list),
                by: Some(by),
            });
        }
        let is_same = |earlier: &Rule| {
            let same_calls = earlier.kept_for.is_none() || earlier.kept_for == rule.kept_for;
            earlier.list == rule.list && earlier.text == rule.text && same_calls
        };
        if let Some(by) = before.iter().position(is_same) {
            return Some(DeadRule {
                at,
                cause: DeadCause::Repeated,
                problem: format!("{} contains the same rule", before[by].layer),
                advice: "remove one of the two".to_owned(),
                by: Some(by),
            });
        }
        self.is_outside(rule).then(|| DeadRule {
            at,
            cause: DeadCause::Outside,
            problem: "its paths are outside the workspace, where file tools have no access and commands need approval".to_owned(),
            advice: "name a path in the workspace, or start haft with --workspace there".to_owned(),
            by: None,
        })
    }

    /// Whether this deny or ask rule decides every call that the other rule, from a later list, covers.
    pub(crate) fn shadows(&self, wide: &Rule, narrow: &Rule) -> bool {
        let bare = wide.specifier == Specifier::All;
        let names_same = match (&wide.selector, &narrow.selector) {
            (Selector::Any, _) => bare,
            (Selector::Class(class), Selector::Class(other)) => class == other,
            (Selector::Class(class), Selector::Named(names)) => bare && self.are_of(*class, names),
            (Selector::Named(names), Selector::Named(others)) => {
                others.iter().all(|other| names.contains(other))
            }
            (Selector::Glob(glob), Selector::Named(names)) => {
                bare && names.iter().all(|name| glob.matches(name))
            }
            (Selector::Glob(glob), Selector::Glob(other)) => bare && glob.covers(other),
            _ => false,
        };
        if !names_same || bare {
            return names_same;
        }
        // What an ask rule covers beyond its pattern (parent folders, files that commands name) is equal only for equal patterns.
        if narrow.list == RuleList::Ask || wide.specifier == narrow.specifier {
            return wide.specifier == narrow.specifier;
        }
        match (&wide.specifier, &narrow.specifier) {
            (Specifier::Command(wide), Specifier::Command(narrow)) => wide.covers(narrow),
            (Specifier::Path(wide), Specifier::Path(narrow)) => wide.covers(narrow),
            (Specifier::Domain(wide), Specifier::Domain(narrow)) => wide.covers(narrow),
            (Specifier::Network(wide), Specifier::Network(narrow)) => wide.covers(narrow),
            (Specifier::Sign(wide), Specifier::Sign(narrow)) => wide.covers(narrow),
            (Specifier::Param(wide), Specifier::Param(narrow)) => wide.covers(narrow),
            _ => false,
        }
    }

    fn are_of(&self, class: ToolClass, names: &[Box<str>]) -> bool {
        let mut classes = names.iter().map(|name| self.places.classes.of(name));
        classes.all(|own| own == Some(class))
    }

    /// Whether this allow rule names only paths outside the workspace, where a guard overrides it.
    fn is_outside(&self, rule: &Rule) -> bool {
        let guarded = self
            .guards
            .iter()
            .any(|guard| guard.name() == WorkspaceEdge.name());
        match (&rule.specifier, &self.places.workspace) {
            (Specifier::Path(pattern), Some(workspace))
                if guarded && rule.list == RuleList::Allow =>
            {
                pattern.is_absolute() && !pattern.may_lie_below(&PathView::new(workspace, None))
            }
            _ => false,
        }
    }
}
