//! `DeadRule`: a rule that decides nothing whatever is called, because it matches nothing or because another one decides before it.

use serde::Serialize;

use super::Policy;
use super::guard::{Guard, WorkspaceEdge};
use super::paths::PathView;
use super::rule::{List, Rule, Selector, Specifier};
use crate::spec::ToolClass;

/// Why a rule decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadCause {
    /// Its text matches nothing.
    NeverMatches,
    /// A rule of a list that is read before its own covers all that it covers.
    Shadowed,
    /// The same rule stands before it.
    Repeated,
    /// It allows paths outside the workspace, where no rule allows anything.
    Outside,
}

/// A rule that decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadRule {
    /// Its position among the rules of [`PolicyView`](super::PolicyView).
    pub at: usize,
    /// Why, in a word.
    pub cause: DeadCause,
    /// Why, in a sentence.
    pub problem: String,
    /// What to do.
    pub advice: String,
    /// The position of the rule that decides in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<usize>,
}

impl Policy {
    /// The rules that decide nothing. Only what two rules show by themselves is found: a rule that several others cover together is
    /// not named, and neither is one whose patterns are too intricate to compare.
    pub fn dead_rules(&self) -> Vec<DeadRule> {
        let rules = self.rules.all();
        let each = rules.iter().enumerate();
        each.filter_map(|(at, rule)| self.dead(at, rule, rules.get(..at).unwrap_or_default()))
            .collect()
    }

    /// `before` are the rules that are read before this one.
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
                    "the {} rule {} of {} decides all that it covers",
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
                problem: format!("{} holds the same rule", before[by].layer),
                advice: "remove one of the two".to_owned(),
                by: Some(by),
            });
        }
        self.is_outside(rule).then(|| DeadRule {
            at,
            cause: DeadCause::Outside,
            problem: "its paths lie outside the workspace, where file tools reach nothing and commands are asked about".to_owned(),
            advice: "name a path of the workspace, or start haft with --workspace there".to_owned(),
            by: None,
        })
    }

    /// Does this deny or ask rule decide every call that the other, of a later list, covers?
    pub(super) fn shadows(&self, wide: &Rule, narrow: &Rule) -> bool {
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
        // What an ask rule covers beside its pattern (folders above, files that commands name) is the same for the same pattern alone.
        if narrow.list == List::Ask || wide.specifier == narrow.specifier {
            return wide.specifier == narrow.specifier;
        }
        match (&wide.specifier, &narrow.specifier) {
            (Specifier::Command(wide), Specifier::Command(narrow)) => wide.covers(narrow),
            (Specifier::Path(wide), Specifier::Path(narrow)) => wide.covers(narrow),
            (Specifier::Domain(wide), Specifier::Domain(narrow)) => wide.covers(narrow),
            (Specifier::Network(wide), Specifier::Network(narrow)) => wide.covers(narrow),
            _ => false,
        }
    }

    fn are_of(&self, class: ToolClass, names: &[Box<str>]) -> bool {
        let mut classes = names.iter().map(|name| self.places.classes.of(name));
        classes.all(|own| own == Some(class))
    }

    /// Does an allow rule name paths outside the workspace alone, where a guard stands over it?
    fn is_outside(&self, rule: &Rule) -> bool {
        let guarded = self
            .guards
            .iter()
            .any(|guard| guard.name() == WorkspaceEdge.name());
        match (&rule.specifier, &self.places.workspace) {
            (Specifier::Path(pattern), Some(workspace)) if guarded && rule.list == List::Allow => {
                pattern.is_absolute() && !pattern.may_lie_below(&PathView::new(workspace, None))
            }
            _ => false,
        }
    }
}
