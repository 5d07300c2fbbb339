//! Rules that a caller proposes for a person to accept: which are narrow enough to be asked about at all.

use super::address::check_host;
use super::guard::{Guard, MinimumVerdict};
use super::places::Places;
use super::protected::protected;
use super::rule::{List, Selector, Specifier};
use super::rules::{RuleText, read};
use super::secret_names::SecretNames;
use super::{Classes, JudgedCall};
use crate::permission::{Effect, Permission};

/// The kind of the effect that a proposal states ([`Effect::Other`]); its value is the rule.
pub const PROPOSED_RULE: &str = "allow rule";

/// The longest rule, in bytes.
const LONGEST: usize = 500;

/// Programs that run, fetch or remove whatever their words say: a pattern for them is as wide as one for everything.
const WIDE: &[&str] = &[
    "ash", "awk", "bash", "bun", "chmod", "chown", "cp", "curl", "dash", "dd", "deno", "doas",
    "docker", "env", "eval", "exec", "find", "fish", "ftp", "kubectl", "ksh", "make", "mv", "nc",
    "ncat", "nice", "node", "nohup", "npx", "perl", "php", "pip", "podman", "python", "python3",
    "rm", "rmdir", "rsync", "ruby", "scp", "sed", "setsid", "sh", "socat", "ssh", "su", "sudo",
    "tee", "telnet", "timeout", "uvx", "wget", "xargs", "zsh",
];

/// Asks a person about every proposal, whatever rules allow: no rule is accepted by itself.
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
        Ok(MinimumVerdict::ask("a rule changes what runs unasked"))
    }
}

/// Says why a rule may not be proposed; none where a person may be asked about it. `classes` are those of the host's tools,
/// `secrets` the names of files that hold secrets.
pub fn refuse_proposal(rule: &str, classes: &Classes, secrets: &SecretNames) -> Option<String> {
    if rule.len() > LONGEST || rule.chars().any(char::is_control) {
        return Some("a proposed rule is one line of at most 500 bytes".to_owned());
    }
    let places = Places {
        classes: classes.clone(),
        ..Places::default()
    };
    let read = match read(List::Allow, &RuleText::new(rule), &places) {
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
    let why = match &read.specifier {
        Specifier::All | Specifier::Nothing => Some("it covers every call: say which, in brackets"),
        Specifier::Command(_) => too_wide(rule),
        Specifier::Path(pattern) => {
            let samples = pattern.samples();
            let any = |holds: &dyn Fn(&str) -> bool| samples.iter().any(|sample| holds(sample));
            if pattern.is_any() {
                Some("it covers every path: name a file or a folder")
            } else if secrets.are_named_by(pattern) || any(&|path| secrets.covers(path)) {
                Some("it names files that may hold secrets: a person decides about each")
            } else if any(&|path| protected(path).is_some()) {
                Some("it names a protected path")
            } else if pattern.is_absolute() {
                Some("it names a path outside the workspace")
            } else {
                None
            }
        }
        Specifier::Domain(_) | Specifier::Network(_) => of_host(rule),
        Specifier::Param(_)
            if inside(rule)
                .split_once(':')
                .is_none_or(|(_, value)| value.contains('*')) =>
        {
            Some("its value is not exact")
        }
        Specifier::Param(_) => None,
    };
    why.map(str::to_owned)
}

/// What stands in the brackets.
fn inside(rule: &str) -> &str {
    let inner = rule.trim().split_once('(').map(|(_, rest)| rest);
    inner
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or_default()
}

/// A pattern names a program and what it does before its first star.
fn too_wide(rule: &str) -> Option<&'static str> {
    let inner = inside(rule);
    let (literal, _) = inner.split_once('*')?;
    let words: Vec<&str> = literal.split_whitespace().collect();
    // A word that a star ends is not whole.
    let whole = if literal.ends_with(char::is_whitespace) {
        words.len()
    } else {
        words.len().saturating_sub(1)
    };
    let program = words
        .first()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    match program {
        Some(program) if whole >= 2 && !WIDE.contains(&program) => None,
        Some(program) if WIDE.contains(&program) => {
            Some("a pattern for this program covers anything: write the exact command")
        }
        _ => Some(
            "it is too wide: write the program and what it does before the first *, as in Bash(npm run *)",
        ),
    }
}

/// Only an exact host that is public.
fn of_host(rule: &str) -> Option<&'static str> {
    let inner = inside(rule);
    let host = inner.strip_prefix("domain:").unwrap_or(inner);
    let port = |(_, port): &(&str, &str)| port.chars().all(|c| c.is_ascii_digit());
    let host = host
        .rsplit_once(':')
        .filter(port)
        .map_or(host, |(host, _)| host);
    if host.contains('*') || !host.contains('.') {
        return Some("it covers several hosts: name one");
    }
    check_host(host)
        .is_err()
        .then_some("the host is not public")
}
