//! Rules offered to the user: each covers what the call shows and no more.

use haft_shell::{join_words, plain_words};
use serde_json::Value;

use crate::Policy;
use crate::address::check_host;
use crate::address::port_of;
use crate::commands::risk::sets_variables;
use crate::judge::{VerdictSource, judge_by_profile, own_permission};
use crate::judged_call::JudgedCall;
use crate::profile::Profile;
use crate::rules::RuleText;
use crate::rules::network_pattern::{place_for, rule_for, unusual_port, with_bundles};
use crate::rules::request_pattern::target::RequestTarget;
use crate::rules::rule::expose_rule;
use crate::rules::sign_pattern;
use haft_files::glob::escape;
use haft_files::paths::{clean, escape_path};
use haft_types::permission::{EXPOSE_EFFECT, Effect, PathClaim, Permission, Verdict};
use haft_types::spec::{Risk, ToolClass};

/// Maximum number of rules offered at once: the user must be able to read what they would allow.
const MAX_RULES: usize = 5;

impl Policy {
    /// Returns the allow rules that, limited to calls like this one, would let it run where it now needs approval: one per effect,
    /// escaped, as narrow as possible (one path, one command, one host; a tool's name only for the bare call). Empty
    /// if rules cannot express it, and for a critical call or a removal, which need approval each time.
    pub fn suggest(&self, call: &JudgedCall<'_>) -> Vec<String> {
        if let Some(folders) = ignored_folders(call) {
            return self.suggest_folders(call, folders);
        }
        let own = own_permission(call);
        let naming = self.rules.naming(call.spec);
        let asked_otherwise = |permission: &Permission| {
            let judged = self.judge_effect(call, &naming, permission);
            let lifted = match judged.source {
                VerdictSource::Profile => true,
                // The rule that names the private place lifts the guard's verdict.
                VerdictSource::Guard(..) => {
                    judged.verdict == Verdict::Ask && is_private_place(permission)
                }
                VerdictSource::Rule(_) | VerdictSource::Secret(..) => false,
            };
            judged.verdict > Verdict::Allow && !lifted
        };
        let others = call.permissions.iter().any(asked_otherwise);
        if self.profile == Profile::ReadOnly || asked_otherwise(&own) || others {
            return Vec::new();
        }
        let each_time = |permission: &Permission| {
            let critical = permission.risk == Risk::Critical && !is_private_place(permission);
            critical || matches!(permission.effect, Effect::Remove(_))
        };
        if each_time(&own) || call.permissions.iter().any(each_time) || has_hidden_inputs(call) {
            return Vec::new();
        }
        let rules = self.suggest_for(self.profile, call);
        if self.is_allowed_by(call, &rules) {
            rules
        } else {
            Vec::new()
        }
    }

    /// Returns a rule for each of these folders, which git ignores: dependencies that are installed again and again. The rest of a change
    /// set is asked about each time, and so is all of one with a critical change.
    fn suggest_folders(&self, call: &JudgedCall<'_>, folders: &[String]) -> Vec<String> {
        let critical = |permission: &Permission| permission.risk == Risk::Critical;
        if self.profile == Profile::ReadOnly
            || folders.len() > MAX_RULES
            || call.permissions.iter().any(critical)
        {
            return Vec::new();
        }
        let rule = |folder: &String| {
            (folder.trim() == folder).then(|| format!("Edit({})", escape_path(folder)))
        };
        folders
            .iter()
            .map(rule)
            .collect::<Option<_>>()
            .unwrap_or_default()
    }

    /// Whether the call would run with these rules limited to it.
    fn is_allowed_by(&self, call: &JudgedCall<'_>, rules: &[String]) -> bool {
        let (tool, unstated) = (call.spec.name.as_str(), call.unstated.unwrap_or_default());
        let covering = rules
            .iter()
            .map(|rule| RuleText::new(rule).kept_for(tool, unstated));
        let after = self.allowing(covering);
        after.is_ok_and(|policy| policy.strictest(call) == Verdict::Allow)
    }

    /// Returns the rules that cover every effect that neither this profile nor the policy allows; empty if rules cannot
    /// express one of them, or if too many are needed. Does not check whether a guard or another rule would still stop
    /// the call.
    pub(crate) fn suggest_for(&self, profile: Profile, call: &JudgedCall<'_>) -> Vec<String> {
        let own = own_permission(call);
        let naming = self.rules.naming(call.spec);
        let mut rules: Vec<String> = Vec::new();
        for permission in std::iter::once(&own).chain(call.permissions) {
            let allowed = judge_by_profile(profile, call, permission) == Verdict::Allow
                || self.judge_effect(call, &naming, permission).verdict == Verdict::Allow;
            if allowed {
                continue;
            }
            let found = self
                .request_rules(call, &permission.effect)
                .or_else(|| covering_rules(call, &permission.effect));
            let Some(found) = found else {
                return Vec::new();
            };
            for rule in found {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
            if rules.len() > MAX_RULES {
                return Vec::new();
            }
        }
        with_bundles(&rules)
    }
}

impl Policy {
    /// Returns the rule for exactly this request, if the requests of the host are judged; none if no rule can name it.
    fn request_rules(&self, call: &JudgedCall<'_>, effect: &Effect) -> Option<Vec<String>> {
        let Effect::Connect {
            url,
            host,
            method: Some(method),
            leads_to,
        } = effect
        else {
            return None;
        };
        let port = port_of(url);
        let place = if call.spec.class == Some(ToolClass::Network) {
            format!("Network({}", place_for(host, port, leads_to))
        } else {
            self.rule_on_requests(ToolClass::WebFetch, host, port)?;
            let port = unusual_port(url).map_or_else(String::new, |port| format!(":{port}"));
            format!("WebFetch(domain:{}{port}", escape(host))
        };
        let (_, rest) = url.split_once("://")?;
        let target = rest.find('/').map_or("/", |at| &rest[at..]);
        let Ok(target) = RequestTarget::parse(target) else {
            return Some(Vec::new());
        };
        let query = target.query().map(|query| format!("?{}", escape(query)));
        Some(vec![format!(
            "{place}: {method} {}{})",
            escape(target.path()),
            query.unwrap_or_default()
        )])
    }
}

/// Whether it is a connection to a private place. The only rule that permits it names host and port, so the user can save it although
/// the connection is critical and a guard asks.
fn is_private_place(permission: &Permission) -> bool {
    match &permission.effect {
        Effect::Connect { host, leads_to, .. } => check_host(host).is_err() || !leads_to.is_empty(),
        _ => false,
    }
}

/// Returns the folders that git ignores among the changes of a command, if there are any.
fn ignored_folders<'c>(call: &JudgedCall<'c>) -> Option<&'c [String]> {
    let of_effect = |permission: &'c Permission| match &permission.effect {
        Effect::Apply { ignored, .. } => Some(ignored.as_slice()),
        _ => None,
    };
    let folders = call.permissions.iter().find_map(of_effect)?;
    (!folders.is_empty()).then_some(folders)
}

/// Whether a command gets input, a folder or variables that its words do not show. A rule for its words would say too little.
fn has_hidden_inputs(call: &JudgedCall<'_>) -> bool {
    let runs = |permission: &Permission| matches!(permission.effect, Effect::Run { .. });
    if !call.permissions.iter().any(runs) {
        return false;
    }
    let argument = |name: &str| call.value().get(name);
    let fed = argument("command")
        .and_then(Value::as_str)
        .is_some_and(|line| line.contains('<') && plain_words(line).is_none());
    let moved = argument("cwd").is_some_and(|cwd| cwd.as_str().is_none_or(|cwd| clean(cwd) != "."));
    let variables = match argument("env") {
        None | Some(Value::Null) => false,
        Some(Value::Object(variables)) => !variables.is_empty(),
        Some(_) => true,
    };
    fed || moved || variables
}

/// Returns the rules that cover one effect; `None` if rules cannot express it exactly.
fn covering_rules(call: &JudgedCall<'_>, effect: &Effect) -> Option<Vec<String>> {
    match effect {
        Effect::Read(claim) => paths("Read", claim),
        Effect::Write(claim) | Effect::Remove(claim) => paths("Edit", claim),
        Effect::Run { command, argv, .. } => {
            if sets_variables(call.value()) {
                return None;
            }
            let words = argv.clone().or_else(|| plain_words(command))?;
            Some(vec![command_rule(&words)?])
        }
        Effect::Apply { .. } => None,
        Effect::Connect {
            url,
            host,
            leads_to,
            ..
        } if call.spec.class == Some(ToolClass::Network) => {
            Some(vec![rule_for(host, port_of(url), leads_to)])
        }
        Effect::Connect { url, host, .. } => {
            let port = unusual_port(url).map_or_else(String::new, |port| format!(":{port}"));
            Some(vec![format!("WebFetch(domain:{}{port})", escape(host))])
        }
        Effect::Other { kind, value } if kind == EXPOSE_EFFECT => Some(vec![expose_rule(value)]),
        Effect::Sign { purpose, .. } => Some(vec![sign_pattern::rule_for(purpose)?]),
        Effect::Call | Effect::Remember { .. } | Effect::Question | Effect::Other { .. } => {
            Some(vec![call.spec.name.as_str().to_owned()])
        }
    }
}

fn paths(class: &str, claim: &PathClaim) -> Option<Vec<String>> {
    let rule = |path: &str| {
        let sayable = path != "." && path != "/" && path.trim() == path;
        sayable.then(|| format!("{class}({})", escape_path(path)))
    };
    std::iter::once(claim.path.as_str())
        .chain(claim.target.as_deref())
        .map(rule)
        .collect()
}

/// Returns the rule for exactly these words.
fn command_rule(words: &[String]) -> Option<String> {
    let has = |c: char| words.iter().any(|word| word.contains(c));
    if words.is_empty() || has('\n') || has('\0') {
        return None;
    }
    if !has('*') {
        return Some(format!("Bash({})", join_words(words)));
    }
    // A star is a wildcard within quotes, too: only a backslash escapes it.
    let escaped: Vec<String> = words
        .iter()
        .map(|word| {
            if word.is_empty() {
                return "''".to_owned();
            }
            word.chars()
                .flat_map(|c| {
                    let plain = c.is_alphanumeric() || "_-./:=,@%+".contains(c);
                    (!plain).then_some('\\').into_iter().chain([c])
                })
                .collect()
        })
        .collect();
    let line = escaped.join(" ");
    (line.trim() == line).then(|| format!("Bash({line})"))
}
