//! Rules that a caller proposes for the user to accept: which of them are narrow enough to be offered at all.

use crate::classes::Classes;
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use crate::rules::argument_pattern::ArgumentPattern;
use crate::rules::rule::{RuleList, Selector, Specifier, split_requests};
use crate::rules::{RuleText, read};
use haft_files::secret_names::SecretNames;
pub use haft_types::permission::PROPOSED_RULE;
use haft_types::permission::{Effect, Permission};

mod commands;
mod hosts;
mod paths;

/// Maximum length of a rule, in bytes.
const MAX_RULE: usize = 500;

/// Requires approval of every proposal, whatever the rules allow: no rule is accepted automatically.
#[derive(Debug, Clone, Copy)]
pub struct RuleProposals;

impl Guard for RuleProposals {
    fn name(&self) -> &'static str {
        "rule-proposals"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        matches!(effect, Effect::Other { kind, .. } if kind == PROPOSED_RULE)
    }

    fn floor(
        &self,
        _call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        if !self.concerns(&permission.effect) {
            return Ok(MinimumVerdict::NONE);
        }
        Ok(MinimumVerdict::ask(
            "a rule changes what runs without asking",
        ))
    }
}

/// Says why a rule may not be proposed; `None` if it may be offered to the user. `classes` are those of the host's tools,
/// `secrets` the names of secret files.
pub fn refuse_proposal(rule: &str, classes: &Classes, secrets: &SecretNames) -> Option<String> {
    if rule.len() > MAX_RULE || rule.chars().any(char::is_control) {
        return Some("a proposed rule is one line of at most 500 bytes".to_owned());
    }
    let places = PolicyContext {
        classes: classes.clone(),
        ..PolicyContext::default()
    };
    let read = match read(RuleList::Allow, &RuleText::new(rule), &places) {
        Ok(read) => read,
        Err(wrong) => {
            let first = wrong.into_iter().next();
            return first.map(|wrong| wrong.to_string());
        }
    };
    if let Some(never) = &read.never {
        return Some(format!("it never matches: {}; {}", never.why, never.form));
    }
    if matches!(read.selector, Selector::Any | Selector::Glob(_)) {
        return Some("it covers several tools: name one".to_owned());
    }
    match &read.specifier {
        Specifier::All | Specifier::Nothing => {
            Some("it covers every call: say which in parentheses".to_owned())
        }
        Specifier::Command(_) => commands::refuse(text_in_parentheses(rule)),
        Specifier::Path(pattern) => paths::refuse(pattern, secrets),
        Specifier::Domain(_) | Specifier::Network(_) => {
            let (place, _) = split_requests(text_in_parentheses(rule));
            hosts::refuse(place.strip_prefix("domain:").unwrap_or(place))
        }
        Specifier::Sign(pattern) => (!pattern.is_exact())
            .then(|| "it covers the logins of several hosts: name one".to_owned()),
        Specifier::Param(pattern) => refuse_parameter(&read.selector, pattern),
    }
}

/// Returns the text in the parentheses.
fn text_in_parentheses(rule: &str) -> &str {
    let inner = rule.trim().split_once('(').map(|(_, rest)| rest);
    inner
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or_default()
        .trim()
}

/// Refuses a rule on arguments, except for a server's tool, of which nothing but the arguments is known.
fn refuse_parameter(selector: &Selector, pattern: &ArgumentPattern) -> Option<String> {
    let of_server = |name: &str| name.contains('.');
    let named =
        matches!(selector, Selector::Named(names) if names.iter().all(|name| of_server(name)));
    if !named {
        let names: Vec<&str> = pattern.names().collect();
        return Some(format!(
            "it would cover every call with that {}, whatever the call does: name the path, the command or the host",
            names.join(" and ")
        ));
    }
    (!pattern.is_exact()).then(|| "its value is not exact".to_owned())
}

/// Says what a rule covers where its text shows less: the ports of a host, all calls with a given argument.
pub fn rule_coverage(rule: &str, classes: &Classes) -> Option<String> {
    let places = PolicyContext {
        classes: classes.clone(),
        ..PolicyContext::default()
    };
    let read = read(RuleList::Allow, &RuleText::new(rule), &places).ok()?;
    let tool = rule.split('(').next().unwrap_or_default().trim();
    match &read.specifier {
        Specifier::Param(pattern) => {
            let each = pattern.stated();
            let each: Vec<String> = each
                .map(|(name, value)| format!("{name} is {value}"))
                .collect();
            let each = each.join(" and ");
            Some(format!(
                "covers every call of {tool} whose {each}, whatever its other arguments are"
            ))
        }
        Specifier::Domain(_) => {
            Some("covers only the default ports: 80 for http, 443 for https".to_owned())
        }
        Specifier::Network(pattern) => {
            let ports = if pattern.is_exact() {
                "only this port"
            } else {
                "ports 80 and 443, as it names none"
            };
            let who = if tool == "Network" {
                "for every command"
            } else {
                "in every call"
            };
            Some(if pattern.judges_requests() {
                let query = if text_in_parentheses(rule).contains('?') {
                    "whatever they send with it"
                } else {
                    "whatever their query is and whatever they send with it"
                };
                format!("covers these requests at {ports}, {who}, {query}")
            } else {
                format!("covers {ports}, {who}")
            })
        }
        Specifier::Sign(_) => Some("lets every command act there as you".to_owned()),
        Specifier::Command(_) | Specifier::Path(_) | Specifier::All | Specifier::Nothing => None,
    }
}
