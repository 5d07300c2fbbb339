//! `Restriction`: the rules that an active skill narrows a run to, matched like the policy's own rules; it only ever denies.

use crate::Policy;
use crate::commands::phrase::{clip, phrase};
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier, class_of_foreign};
use crate::rules::subject::{ClaimSide, Subject};
use crate::rules::{RuleText, read};
use haft_types::permission::Effect;
use haft_types::spec::{BUILTIN, ToolSpec};

/// Maximum number of rules named in a sentence.
const MAX_NAMED: usize = 12;

/// The rules that a skill narrows a run to: one of them must cover a call (if the skill has such a list), and none of those it
/// excludes may. A rule that cannot be parsed covers nothing in the first list, and its whole tool in the second.
#[derive(Debug, Clone, Default)]
pub struct Restriction {
    only: Option<Vec<Rule>>,
    excludes: Vec<Rule>,
    unread: Vec<String>,
}

impl Restriction {
    /// Whether it restricts nothing.
    pub fn is_empty(&self) -> bool {
        self.only.is_none() && self.excludes.is_empty()
    }

    /// Returns the rules that could not be parsed, as written.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Whether the tool may be shown: false if every call of it would be denied.
    pub fn shows(&self, spec: &ToolSpec) -> bool {
        let selects = |rule: &Rule| rule.selector.selects(spec);
        let whole = |rule: &Rule| rule.specifier == Specifier::All && selects(rule);
        is_free(spec)
            || (self
                .only
                .as_ref()
                .is_none_or(|only| only.iter().any(selects))
                && !self.excludes.iter().any(whole))
    }

    /// Describes what part of the call lies outside the restriction; `None` if all of it lies within.
    fn outside(&self, call: &JudgedCall<'_>, places: &PolicyContext) -> Option<String> {
        if is_free(call.spec) {
            return None;
        }
        let stated = call.permissions.iter().map(|permission| &permission.effect);
        let mut all = std::iter::once(&Effect::Call).chain(stated.clone());
        if let Some(effect) = all.find(|effect| self.is_excluded(call, effect, places)) {
            return Some(phrase(call, effect));
        }
        let only = self.only.as_ref()?;
        let selecting = || only.iter().filter(|rule| rule.selector.selects(call.spec));
        // A rule without specifier permits every call of its tools; the policy still judges them.
        if selecting().any(|rule| rule.specifier == Specifier::All) {
            return None;
        }
        if selecting().next().is_none() {
            return Some(phrase(call, &Effect::Call));
        }
        let mut effects = stated.peekable();
        if effects.peek().is_none() {
            let uncovered = !covers(only, call, &Effect::Call, places);
            return uncovered.then(|| phrase(call, &Effect::Call));
        }
        effects
            .find(|effect| !covers(only, call, effect, places))
            .map(|effect| phrase(call, effect))
    }

    fn is_excluded(&self, call: &JudgedCall<'_>, effect: &Effect, places: &PolicyContext) -> bool {
        if self.excludes.is_empty() {
            return false;
        }
        let subject = Subject::narrowed(call, effect, places);
        let covers =
            |rule: &Rule| concerns(rule, call) && subject.covered_by(rule, ClaimSide::Path);
        self.excludes.iter().any(covers)
    }

    /// Lists its rules as written, for a sentence.
    fn listed(&self) -> String {
        let mut parts = Vec::new();
        if let Some(only) = &self.only {
            parts.push(match only.len() {
                0 => "no tool".to_owned(),
                _ => texts(only),
            });
        }
        if !self.excludes.is_empty() {
            parts.push(format!("not {}", texts(&self.excludes)));
        }
        parts.join(", ")
    }
}

/// Whether the rule may apply to calls of the tool. Class rules are checked effect by effect.
fn concerns(rule: &Rule, call: &JudgedCall<'_>) -> bool {
    matches!(rule.selector, Selector::Class(_)) || rule.selector.selects(call.spec)
}

/// Whether a rule covers the effect as an allow rule would, and a rule covers the target of its links.
fn covers(rules: &[Rule], call: &JudgedCall<'_>, effect: &Effect, places: &PolicyContext) -> bool {
    let subject = Subject::narrowed(call, effect, places);
    let any = |side| {
        rules
            .iter()
            .any(|rule| concerns(rule, call) && subject.covered_by(rule, side))
    };
    any(ClaimSide::Path) && (!subject.has_target() || any(ClaimSide::Target))
}

fn texts(rules: &[Rule]) -> String {
    let mut texts: Vec<String> = rules
        .iter()
        .take(MAX_NAMED)
        .map(|rule| clip(&rule.text))
        .collect();
    if rules.len() > MAX_NAMED {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

/// Whether no skill can remove the tool: a run needs such tools to load the next skill, find a tool, read the rest of a truncated
/// result, or keep its list. What another server's tool claims about itself does not count.
fn is_free(spec: &ToolSpec) -> bool {
    spec.source == BUILTIN && spec.stays_in_run
}

impl Policy {
    /// Parses a skill's restriction: only these rules if there is such a list, and none of `excludes`. Names that other programs
    /// use for a class of tools (`Write`, `Grep`) mean that class.
    pub fn restriction(&self, only: Option<&[String]>, excludes: &[String]) -> Restriction {
        let mut unread = Vec::new();
        let only = only.map(|rules| {
            let read = rules
                .iter()
                .map(|text| self.narrowing(RuleList::Allow, text, &mut unread));
            read.collect::<Vec<_>>().into_iter().flatten().collect()
        });
        let mut never = Vec::new();
        for text in excludes {
            if let Some(rule) = self.narrowing(RuleList::Deny, text, &mut unread) {
                never.push(rule);
            } else {
                let tool = text.split('(').next().unwrap_or_default().trim();
                never.extend(self.narrowing(RuleList::Deny, tool, &mut Vec::new()));
            }
        }
        Restriction {
            only,
            excludes: never,
            unread,
        }
    }

    fn narrowing(&self, list: RuleList, text: &str, unread: &mut Vec<String>) -> Option<Rule> {
        let text = text.trim();
        let tool = text.split('(').next().unwrap_or_default().trim();
        let ours = class_of_foreign(tool).map(|class| text.replacen(tool, class, 1));
        let rule = RuleText::new(ours.as_deref().unwrap_or(text));
        let Ok(mut rule) = read(list, &rule, &self.places) else {
            unread.push(clip(text));
            return None;
        };
        if rule.specifier == Specifier::Nothing {
            unread.push(clip(text));
            if list == RuleList::Deny {
                rule.specifier = Specifier::All;
            }
        }
        rule.text = text.into();
        Some(rule)
    }

    /// Returns what part of the call lies outside the restriction (`running rm -rf x`); `None` if all of it lies within.
    pub fn outside(
        &self,
        restriction: &Restriction,
        call: &JudgedCall<'_>,
    ) -> Option<OutsideEffect> {
        let what = restriction.outside(call, &self.places)?;
        Some(OutsideEffect {
            what,
            within: restriction.listed(),
        })
    }

    /// Returns which of these rules, read as allow rules, cover the call itself or one of its effects: what a skill
    /// asks for, to show to the user.
    pub fn asked_for<'a>(&self, rules: &'a [String], call: &JudgedCall<'_>) -> Vec<&'a str> {
        let own = Effect::Call;
        let stated = call.permissions.iter().map(|permission| &permission.effect);
        let effects: Vec<&Effect> = std::iter::once(&own).chain(stated).collect();
        let speaks = |text: &&str| {
            let Some(rule) = self.narrowing(RuleList::Allow, text, &mut Vec::new()) else {
                return false;
            };
            let rule = [rule];
            effects
                .iter()
                .any(|effect| covers(&rule, call, effect, &self.places))
        };
        rules.iter().map(String::as_str).filter(speaks).collect()
    }
}

/// The part of a call that lies outside a restriction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideEffect {
    /// The effect: `running rm -rf x`.
    pub what: String,
    /// The rules that do not cover it.
    pub within: String,
}
