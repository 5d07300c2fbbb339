//! Rules that name one private host and port: they let the guard of private addresses pass, whatever other rules say, and of ask rules
//! the first that covers a connection decides whether it does. They name single connections, so each is judged.

use hashbrown::HashSet;
use serde_json::json;

use super::inclusion::Effort;
use super::{RuleDifference, VerdictChange};
use crate::Policy;
use crate::commands::phrase::clip;
use crate::judged_call::JudgedCall;
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::rule::{Rule, RuleList, Selector, Specifier};
use crate::run_history::RunHistory;
use haft_files::glob::Glob;
use haft_types::permission::{Effect, Permission, Verdict};
use haft_types::spec::{Risk, ToolClass, ToolName, ToolSpec};

/// An address to which a public name may lead.
const PRIVATE: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// Two policies whose rules for private places are compared.
pub(super) struct PrivatePlaces<'r> {
    old: &'r Policy,
    new: &'r Policy,
    /// The rules that only one of them has, so far as they may be about connections.
    changed: Vec<&'r Rule>,
    /// Whether rules that both have stand in another order.
    reordered: bool,
}

impl<'r> PrivatePlaces<'r> {
    pub(super) fn new(
        old: &'r Policy,
        new: &'r Policy,
        changed: impl Iterator<Item = &'r Rule>,
    ) -> Self {
        let may_connect = |rule: &&Rule| {
            !matches!(
                rule.specifier,
                Specifier::Path(_) | Specifier::Command(_) | Specifier::Sign(_)
            )
        };
        let changed: Vec<&Rule> = changed.filter(may_connect).collect();
        Self {
            old,
            new,
            reordered: reordered(old, new),
            changed,
        }
    }

    /// Returns the rules of the new policy whose connections it judges more loosely than the old one, except those that are known.
    pub(super) fn opened(&self, known: &HashSet<String>, effort: &Effort) -> Vec<RuleDifference> {
        let rules = self.new.rules.all().iter();
        let rules = rules.filter(|rule| rule.names_place() && !known.contains(&clip(&rule.text)));
        let opened = rules.filter_map(|rule| self.difference(rule, effort));
        let ports = named_ports(self.old, self.new).into_iter();
        let ports = ports.filter(|one| !known.contains(&one.rule));
        opened.chain(ports).collect()
    }

    /// Whether a verdict on the rule's connections can be another: a rule came or is gone that may cover them, or they stand in another order.
    fn may_differ(&self, rule: &Rule, pattern: &NetworkPattern) -> bool {
        let covers = |changed: &&Rule| match &changed.specifier {
            Specifier::Network(other) if !std::ptr::eq(*changed, rule) => pattern.may_meet(other),
            _ => true,
        };
        self.reordered || self.changed.iter().any(covers)
    }

    fn difference(&self, rule: &Rule, effort: &Effort) -> Option<RuleDifference> {
        let Specifier::Network(pattern) = &rule.specifier else {
            return None;
        };
        if !self.may_differ(rule, pattern) {
            return None;
        }
        let rules = self.old.rules.all().len() + self.new.rules.all().len();
        difference(self.old, self.new, rule, &|| effort.allows_judging(rules))
    }
}

/// Whether ask rules that both policies have stand in another order: the first that covers a connection decides.
fn reordered(old: &Policy, new: &Policy) -> bool {
    let texts = |policy: &'_ Policy| -> Vec<String> {
        let rules = policy.rules.all().iter();
        let asks = rules.filter(|rule| rule.list == RuleList::Ask);
        asks.map(|rule| rule.text.to_string()).collect()
    };
    let (old, new) = (texts(old), texts(new));
    let both = |own: &[String], others: &[String]| -> Vec<String> {
        let others: HashSet<&String> = others.iter().collect();
        own.iter()
            .filter(|text| others.contains(text))
            .cloned()
            .collect()
    };
    both(&old, &new) != both(&new, &old)
}

/// Returns the ask rules because of which commands may try a port that was closed to them.
fn named_ports(old: &Policy, new: &Policy) -> Vec<RuleDifference> {
    let (before, after) = (old.named_ports(), new.named_ports());
    let opens = |rule: &&Rule| match &rule.specifier {
        Specifier::Network(pattern) if rule.list == RuleList::Ask => {
            let port = pattern.port_elsewhere();
            port.is_some_and(|port| after.contains(&port) && !before.contains(&port))
        }
        _ => false,
    };
    let rules = new.rules.all().iter().filter(opens);
    rules
        .map(|rule| RuleDifference {
            what: Some("a command's connection to a port that no rule named".to_owned()),
            ..RuleDifference::of(VerdictChange::AskedNow, rule)
        })
        .collect()
}

fn difference(
    old: &Policy,
    new: &Policy,
    rule: &Rule,
    may_judge: &dyn Fn() -> bool,
) -> Option<RuleDifference> {
    let Specifier::Network(pattern) = &rule.specifier else {
        return None;
    };
    let place = connection_text(pattern)?;
    let mut worst: Option<(Verdict, Verdict)> = None;
    for spec in specs(rule, new) {
        for effect in effects(pattern, &place, &spec)? {
            if !may_judge() {
                return Some(RuleDifference {
                    undecided: true,
                    ..RuleDifference::of(VerdictChange::NewlyAllowed, rule)
                });
            }
            let permissions = [Permission {
                effect,
                risk: Risk::High,
            }];
            let unstated = rule.kept_for.as_ref().map(|kept| &*kept.arguments);
            let verdict = |policy: &Policy| {
                let run = RunHistory::none();
                let call = JudgedCall::new(&spec, "{}", &permissions, &run);
                policy.judge(&call.with_unstated(unstated)).verdict
            };
            let both = (verdict(old), verdict(new));
            if both.1 < both.0 && worst.is_none_or(|worst| both.1 < worst.1) {
                worst = Some(both);
            }
        }
    }
    let (before, after) = worst?;
    let change = match (before, after) {
        (Verdict::Deny, Verdict::Ask) => VerdictChange::AskedNow,
        _ => VerdictChange::NewlyAllowed,
    };
    Some(RuleDifference {
        what: Some("connecting to the private address".to_owned()),
        example: Some(place),
        before: Some(before),
        after: Some(after),
        ..RuleDifference::of(change, rule)
    })
}

fn exact_host(pattern: &NetworkPattern) -> Option<String> {
    let [host] = pattern.hosts() else {
        return None;
    };
    let labels: Vec<String> = host.labels().iter().map(Glob::to_text).collect();
    Some(labels.join("."))
}

fn connection_text(pattern: &NetworkPattern) -> Option<String> {
    match pattern.socket() {
        Some(socket) => Some(socket.to_owned()),
        None => Some(format!("{}:{}", exact_host(pattern)?, pattern.port()?)),
    }
}

/// Returns the tools whose connections the rule may be about.
fn specs(rule: &Rule, policy: &Policy) -> Vec<ToolSpec> {
    let spec = |name: &str, class| {
        let mut spec = ToolSpec::new(ToolName::new(name).ok()?, "", json!({"type": "object"}));
        spec.class = class;
        Some(spec)
    };
    let kept = rule.kept_for.as_ref().map(|kept| &*kept.tool);
    match &rule.selector {
        Selector::Named(names) => {
            let each = names.iter();
            each.filter_map(|name| spec(name, policy.places.classes.of(name)))
                .collect()
        }
        Selector::Class(class) => {
            let name = kept.or(policy.places.classes.tool_of(*class));
            spec(name.unwrap_or("tool"), Some(*class))
                .into_iter()
                .collect()
        }
        Selector::Any | Selector::Glob(_) => ["tool"]
            .into_iter()
            .filter_map(|name| spec(name, Some(ToolClass::Network)))
            .collect(),
    }
}

fn effects(pattern: &NetworkPattern, place: &str, spec: &ToolSpec) -> Option<Vec<Effect>> {
    if pattern.socket().is_some() {
        return Some(vec![Effect::connect(place, place)]);
    }
    let (host, port) = (exact_host(pattern)?, pattern.port()?);
    let urls = if spec.class == Some(ToolClass::Network) {
        vec![place.to_owned()]
    } else {
        ["http", "https"]
            .map(|scheme| format!("{scheme}://{host}:{port}/"))
            .into()
    };
    let leads = [Vec::new(), vec![PRIVATE]];
    let each = urls
        .iter()
        .flat_map(|url| leads.iter().map(move |to| (url, to)));
    let effect = |(url, leads_to): (&String, &Vec<std::net::IpAddr>)| Effect::Connect {
        url: url.clone(),
        host: host.clone(),
        leads_to: leads_to.clone(),
        method: None,
    };
    Some(each.map(effect).collect())
}
