//! What a caller can do instead of a call that did not run: what the rules allow of the same kind. These are facts for a model,
//! never advice on loosening the rules.

use crate::Policy;
use crate::commands::phrase::clip;
use crate::judged_call::JudgedCall;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier};
use haft_types::permission::Effect;
use haft_types::spec::ToolClass;

/// Maximum number of rules named.
const MAX_NAMED: usize = 5;

impl Policy {
    /// Says what of the effect's kind runs without approval according to the rules; `None` if no rule allows any.
    pub(crate) fn describe_allowed(
        &self,
        call: &JudgedCall<'_>,
        effect: &Effect,
    ) -> Option<String> {
        let (class, what) = match effect {
            Effect::Run { .. } => (ToolClass::Bash, "commands that run without approval"),
            Effect::Write(_) | Effect::Remove(_) => (
                ToolClass::Edit,
                "paths that may be changed without approval",
            ),
            Effect::Connect { .. } if call.spec.class == Some(ToolClass::Network) => {
                (ToolClass::Network, "hosts that commands may connect to")
            }
            Effect::Connect { .. } => (ToolClass::WebFetch, "hosts that may be fetched"),
            Effect::Sign { .. } => (ToolClass::Sign, "logins that commands may use"),
            Effect::Read(_)
            | Effect::Call
            | Effect::Apply { .. }
            | Effect::Remember { .. }
            | Effect::Question
            | Effect::Other { .. } => return None,
        };
        let rules = self.rules.all();
        // A rule that a stricter list overrides does not make anything run without approval.
        let is_shadowed = |at: usize, rule: &Rule| {
            let mut before = rules.iter().take(at);
            before.any(|wide| wide.list != rule.list && self.shadows(wide, rule))
        };
        let fitting = rules.iter().enumerate().filter(|(at, rule)| {
            let selects = match &rule.selector {
                Selector::Class(of) => *of == class,
                selector => selector.names(call.spec.name.as_str()),
            };
            let allows =
                rule.list == RuleList::Allow && rule.never.is_none() && rule.kept_for.is_none();
            allows && selects && !is_shadowed(*at, rule)
        });
        let fitting = fitting.map(|(_, rule)| rule);
        let mut named: Vec<String> = fitting.filter_map(specifier_text).map(clip).collect();
        named.dedup();
        if named.is_empty() {
            return None;
        }
        let more = if named.len() > MAX_NAMED { ", …" } else { "" };
        named.truncate(MAX_NAMED);
        Some(format!("{what}: {}{more}", named.join(", ")))
    }
}

/// Returns what a rule names in its parentheses.
fn specifier_text(rule: &Rule) -> Option<&str> {
    if matches!(rule.specifier, Specifier::All | Specifier::Param(_)) {
        return None;
    }
    let (_, rest) = rule.text.split_once('(')?;
    let inner = rest.strip_suffix(')')?;
    Some(inner.strip_prefix("domain:").unwrap_or(inner))
}
