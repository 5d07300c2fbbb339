//! The rules in force as data: how many recent calls each decided, and which of them decide nothing.

use std::collections::HashMap;

use haft::clock;
use haft::policy::{DeadCause, DeadRule, RuleList, RuleView, UnknownName};
use haft::toolset::Toolset;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;

/// Number of recent calls from which the rules' decisions are counted.
pub(super) const MAX_COUNTED: usize = 1_000;
/// Minimum age of the oldest counted call, unless there are [`MAX_COUNTED`] of them, for a rule to be called unused.
const UNUSED_DAYS: i64 = 30;
/// Nanoseconds per day.
const NANOS_PER_DAY: i128 = 86_400_000_000_000;

/// A rule with statistics on its use.
#[derive(Debug, Serialize)]
pub struct ShownRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleView,
    /// Number of recent calls that it decided; `None` if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<usize>,
    /// Why it decides nothing, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead: Option<RuleMark>,
}

/// Why a rule decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleMark {
    /// The cause.
    pub cause: RuleMarkCause,
    /// The cause in a sentence.
    pub problem: String,
    /// What to do.
    pub advice: String,
    /// The position of the rule that decides instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<usize>,
}

/// The cause for which a rule decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleMarkCause {
    /// Its text matches nothing.
    NeverMatches,
    /// A rule of an earlier list decides everything that it covers.
    Shadowed,
    /// The same rule appears before it.
    Repeated,
    /// It allows paths outside the workspace.
    Outside,
    /// No server has the tool that it names.
    UnknownTool,
    /// The tool is off.
    ToolOff,
    /// It decided none of the recent calls.
    Unused,
}

impl RuleMarkCause {
    /// Returns the name on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverMatches => "never matches",
            Self::Shadowed => "shadowed",
            Self::Repeated => "repeated",
            Self::Outside => "outside",
            Self::UnknownTool => "no such tool",
            Self::ToolOff => "tool is off",
            Self::Unused => "unused",
        }
    }
}

impl From<DeadRule> for RuleMark {
    fn from(dead: DeadRule) -> Self {
        let cause = match dead.cause {
            DeadCause::NeverMatches => RuleMarkCause::NeverMatches,
            DeadCause::Shadowed => RuleMarkCause::Shadowed,
            DeadCause::Repeated => RuleMarkCause::Repeated,
            DeadCause::Outside => RuleMarkCause::Outside,
        };
        Self {
            cause,
            problem: dead.problem,
            advice: dead.advice,
            by: dead.by,
        }
    }
}

/// Returns the rules, marked as far as rules and tools tell, without counting calls.
pub(super) fn mark_rules(app: &App, rules: Vec<RuleView>) -> Vec<ShownRule> {
    let mut dead: HashMap<usize, RuleMark> = app
        .executor()
        .policy()
        .dead_rules()
        .into_iter()
        .map(|dead| (dead.at, RuleMark::from(dead)))
        .collect();
    let unknown = unknown_names(app);
    let each = rules.into_iter().enumerate();
    each.map(|(at, rule)| ShownRule {
        dead: dead
            .remove(&at)
            .or_else(|| unknown_mark(&rule, &unknown))
            .or_else(|| tool_off_mark(app, &rule)),
        rule,
        matched: None,
    })
    .collect()
}

/// Returns servers' tool names in rules that no server has now. Other unknown names are load errors, or of tools that settings can enable.
fn unknown_names(app: &App) -> Vec<UnknownName> {
    let specs = app.all().snapshot().specs();
    let mut unknown = app.executor().policy().unknown_names(&specs, &[]);
    unknown.retain(|name| name.of_server);
    unknown
}

fn unknown_mark(rule: &RuleView, unknown: &[UnknownName]) -> Option<RuleMark> {
    let is_this = |name: &&UnknownName| {
        (name.list, &name.rule, &name.layer) == (rule.list, &rule.rule, &rule.layer)
    };
    let name = unknown.iter().find(is_this)?;
    Some(RuleMark {
        cause: RuleMarkCause::UnknownTool,
        problem: format!("no connected server has the tool {}", name.name),
        advice: "`haft mcp list` shows what servers have; remove the rule if that one is gone"
            .to_owned(),
        by: None,
    })
}

/// Marks an allow rule for a tool that is off. A deny rule for such a tool stays useful: the tool may be turned on.
fn tool_off_mark(app: &App, rule: &RuleView) -> Option<RuleMark> {
    let name = rule.rule.split('(').next().unwrap_or_default().trim();
    let (shown, all) = (app.tools().snapshot(), app.all().snapshot());
    let is_off =
        rule.list == RuleList::Allow && all.entry(name).is_some() && shown.entry(name).is_none();
    is_off.then(|| RuleMark {
        cause: RuleMarkCause::ToolOff,
        problem: format!("the tool {name} is off: no caller can use it"),
        advice: format!("turn it on by tools.enable = [\"{name}\"], or remove the rule"),
        by: None,
    })
}

/// Counts how many of these calls each rule decided: of identical rules in one list, the first did. Marks an allow rule that decided none
/// if the calls are many or go back far; a deny rule that was never needed is not marked.
pub(super) fn count(rules: &mut [ShownRule], calls: &[Value]) {
    let text = |call: &Value, name: &str| {
        let text = call.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut decided: HashMap<(String, String), usize> = HashMap::new();
    for call in calls {
        *decided
            .entry((text(call, "verdict"), text(call, "rule")))
            .or_default() += 1;
    }
    let unused = oldest_call(calls).and_then(|oldest| unused_mark(calls.len(), oldest));
    for shown in rules {
        let key = (shown.rule.list.to_string(), shown.rule.rule.clone());
        let matched = decided.remove(&key).unwrap_or_default();
        shown.matched = Some(matched);
        if matched == 0 && shown.dead.is_none() && shown.rule.list == RuleList::Allow {
            shown.dead.clone_from(&unused);
        }
    }
}

/// Returns the time of the oldest of these calls, in nanoseconds since 1970.
pub(super) fn oldest_call(calls: &[Value]) -> Option<i128> {
    let times = calls.iter().filter_map(|call| call.get("ts")?.as_str());
    let times = times.filter_map(|time| time.parse::<Timestamp>().ok());
    times.map(Timestamp::as_nanosecond).min()
}

/// Returns the mark of a rule that decided none of these calls; `None` if they are too few to tell.
fn unused_mark(calls: usize, oldest: i128) -> Option<RuleMark> {
    let days = (clock::now() - oldest) / NANOS_PER_DAY;
    if calls < MAX_COUNTED && days < i128::from(UNUSED_DAYS) {
        return None;
    }
    let since = clock::rfc3339(oldest);
    let day = since.get(..10).unwrap_or(&since);
    Some(RuleMark {
        cause: RuleMarkCause::Unused,
        problem: format!("it decided none of the last {calls} calls, since {day}"),
        advice: "remove it if nothing needs it any more".to_owned(),
        by: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show_rule(list: RuleList, rule: &str) -> ShownRule {
        ShownRule {
            rule: RuleView {
                list,
                rule: rule.to_owned(),
                layer: "test".to_owned(),
                reason: None,
            },
            matched: None,
            dead: None,
        }
    }

    #[test]
    fn an_allow_rule_that_decided_none_of_many_or_old_calls_is_unused() {
        let now = clock::now();
        for (calls, days, expect) in [
            (2, 1, false),
            (2, 40, true),
            (MAX_COUNTED, 1, true),
            (MAX_COUNTED - 1, 29, false),
        ] {
            let at = clock::rfc3339(now - i128::from(days) * NANOS_PER_DAY);
            let call = json!({"verdict": "allow", "rule": "Read(/a)", "ts": at});
            let calls = vec![call; calls];
            let mut rules = [
                show_rule(RuleList::Allow, "Read(/a)"),
                show_rule(RuleList::Allow, "Read(/b)"),
                show_rule(RuleList::Deny, "Read(/c)"),
            ];
            count(&mut rules, &calls);
            let matched: Vec<_> = rules.iter().map(|rule| rule.matched).collect();
            assert_eq!(matched, [Some(calls.len()), Some(0), Some(0)]);
            let marked: Vec<_> = rules.iter().map(|rule| rule.dead.is_some()).collect();
            assert_eq!(marked, [false, expect, false], "{} {days}", calls.len());
        }
        let mut rules = [show_rule(RuleList::Allow, "Read(/b)")];
        count(&mut rules, &[]);
        assert_eq!(rules[0].dead, None);
    }
}
