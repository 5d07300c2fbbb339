//! Examples of what changed: a text of an automaton as a call, and as words for a reader.

use serde_json::json;

use super::automaton::SEPARATOR;
use super::cells::EffectKind;
use super::inclusion::Filter;
use super::language::EncodedEffect;
use crate::Policy;
use crate::commands::parts::CommandLine;
use crate::judged_call::JudgedCall;
use crate::run_history::RunHistory;
use haft_types::permission::{Effect, PathClaim, Permission, Verdict};
use haft_types::spec::{Risk, ToolClass, ToolName, ToolSpec};

/// Wants the texts that read best: commands as haft joins plain words, hosts of plain labels. Others may be found without it.
pub(super) struct PlainTexts {
    pub(super) kind: EffectKind,
}

/// The states of [`PlainTexts`].
mod place {
    pub(super) const TOOL: u8 = 0;
    pub(super) const BEGIN: u8 = 1;
    pub(super) const WORD: u8 = 2;
    pub(super) const QUOTED: u8 = 3;
    pub(super) const UNQUOTED: u8 = 4;
    /// Before the letter for the kind of a host.
    pub(super) const HOST: u8 = 5;
}

impl Filter for PlainTexts {
    fn step(&self, state: u8, c: char) -> Option<u8> {
        let plain = c.is_ascii_alphanumeric();
        if state == place::TOOL {
            let fine = plain || matches!(c, '_' | '.' | '-');
            return match c {
                SEPARATOR => Some(place::BEGIN),
                _ => fine.then_some(place::TOOL),
            };
        }
        match self.kind {
            EffectKind::Run | EffectKind::OtherRun | EffectKind::Spelling | EffectKind::Doubt => {
                of_line(state, c)
            }
            EffectKind::Connect | EffectKind::Sign => match (state, c) {
                // Sockets are not what most rules on hosts are about.
                (place::HOST, 'S') => None,
                (place::HOST, _) => Some(place::BEGIN),
                (_, '.') => (state == place::WORD).then_some(place::BEGIN),
                (_, ' ') => Some(place::HOST),
                _ => (!c.is_whitespace()).then_some(place::WORD),
            },
            _ => Some(place::WORD),
        }
    }

    fn accepts(&self, state: u8) -> bool {
        match self.kind {
            EffectKind::Run | EffectKind::OtherRun | EffectKind::Spelling | EffectKind::Doubt => {
                matches!(state, place::WORD | place::UNQUOTED)
            }
            EffectKind::Connect | EffectKind::Sign => state == place::WORD,
            _ => true,
        }
    }
}

/// Follows words with one blank between them, plain or quoted as a whole.
fn of_line(state: u8, c: char) -> Option<u8> {
    let plain = c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match (state, c) {
        (place::WORD | place::UNQUOTED, ' ') => Some(place::BEGIN),
        (place::BEGIN, '\'') => Some(place::QUOTED),
        (place::QUOTED, '\'') => Some(place::UNQUOTED),
        (place::QUOTED, c) if !c.is_control() => Some(place::QUOTED),
        (place::BEGIN | place::WORD, _) if plain => Some(place::WORD),
        _ => None,
    }
}

/// An effect of a call that shows what changed.
#[derive(Debug)]
pub(super) struct Example {
    /// What happens: `running`, `reading`.
    pub(super) what: &'static str,
    /// To what; empty for a call.
    pub(super) value: String,
    /// The tool, where it matters.
    pub(super) tool: String,
    /// The call, if one can be made up.
    call: Option<ExampleCall>,
}

#[derive(Debug)]
struct ExampleCall {
    spec: ToolSpec,
    arguments: String,
    permissions: Vec<Permission>,
}

impl Example {
    /// Makes up an example from a text of this kind. `argument` names the argument whose value the text has.
    pub(super) fn of(
        kind: EffectKind,
        text: &str,
        argument: Option<&str>,
        policy: &Policy,
    ) -> Self {
        let effect = EncodedEffect::read(text);
        let (what, class) = words(kind, effect.class);
        let (value, mut permissions) = match argument {
            Some(_) => (effect.value.clone(), Vec::new()),
            None => permissions(kind, &effect),
        };
        if argument.is_some() {
            permissions.extend(any_effect(kind));
        }
        let shows_nothing = value.is_empty() && argument.is_none();
        let tool = match (effect.tool.as_str(), class) {
            ("", Some(class)) => policy.places.classes.tool_of(class).unwrap_or_default(),
            (tool, _) => tool,
        };
        let call = ToolName::new(if tool.is_empty() { "tool" } else { tool });
        let call = call.ok().map(|name| {
            let known = policy.places.classes.of(name.as_str());
            let mut spec = ToolSpec::new(name, "", json!({"type": "object"}));
            spec.class = known.or(effect.class);
            spec.risk = match kind {
                EffectKind::Call | EffectKind::Other => Risk::High,
                EffectKind::CriticalCall => Risk::Critical,
                _ => Risk::Safe,
            };
            let arguments = match argument {
                Some(path) => json!({ path: effect.value }),
                None => json!({}),
            };
            ExampleCall {
                spec,
                arguments: arguments.to_string(),
                permissions,
            }
        });
        Self {
            what,
            value: match argument {
                Some(path) => format!("{path}: {value}"),
                None => value,
            },
            // Of a rule for tools of any name, the tool says something only where nothing else does.
            tool: match effect.tool.as_str() {
                "" if !shows_nothing => String::new(),
                _ => tool.to_owned(),
            },
            call: call.filter(|_| can_be_called(kind)),
        }
    }

    /// Returns the verdict of a policy on it.
    pub(super) fn verdict(&self, policy: &Policy, unstated: Option<&str>) -> Option<Verdict> {
        let call = self.call.as_ref()?;
        let run = RunHistory::none();
        let judged = JudgedCall::new(&call.spec, &call.arguments, &call.permissions, &run);
        let judged = judged.with_unstated(unstated);
        // The effect alone: other rules may judge the call that has it.
        let effects = policy.verdicts(&judged).into_iter().max();
        Some(effects.unwrap_or_else(|| policy.judge(&judged).verdict))
    }
}

/// Whether an effect of this kind is one of a call as it is judged.
fn can_be_called(kind: EffectKind) -> bool {
    !matches!(
        kind,
        EffectKind::LeftOut
            | EffectKind::Hidden
            | EffectKind::Fixed
            | EffectKind::Doubt
            | EffectKind::Walk
            | EffectKind::UnknownEdits
            | EffectKind::UnknownReads
            | EffectKind::UnknownRedirect
            | EffectKind::BareRun
    )
}

/// Returns the words for a kind, and the class of the tools that usually have such effects.
fn words(kind: EffectKind, class: Option<ToolClass>) -> (&'static str, Option<ToolClass>) {
    match kind {
        EffectKind::Call => ("calling", class),
        EffectKind::CriticalCall => ("calling, at critical risk,", class),
        EffectKind::Other => ("another effect of", class),
        EffectKind::Read | EffectKind::SecretRead => ("reading", Some(ToolClass::Read)),
        EffectKind::Write | EffectKind::SecretWrite => ("writing", Some(ToolClass::Edit)),
        EffectKind::Remove => ("removing", Some(ToolClass::Edit)),
        EffectKind::CriticalWrite | EffectKind::CriticalSecretWrite => {
            ("writing, at critical risk,", Some(ToolClass::Edit))
        }
        EffectKind::CriticalRemove => ("removing, at critical risk,", Some(ToolClass::Edit)),
        EffectKind::Run | EffectKind::OtherRun | EffectKind::Spelling | EffectKind::BareRun => {
            ("running", Some(ToolClass::Bash))
        }
        EffectKind::Connect if class == Some(ToolClass::Network) => {
            ("a command's connection to", Some(ToolClass::Network))
        }
        EffectKind::Connect => ("connecting to", Some(ToolClass::WebFetch)),
        EffectKind::Sign => ("using a login for", Some(ToolClass::Sign)),
        EffectKind::CommandReads => ("a command that reads", Some(ToolClass::Bash)),
        EffectKind::CommandEdits => ("a command that changes", Some(ToolClass::Bash)),
        EffectKind::Walk => ("a command that walks", Some(ToolClass::Bash)),
        EffectKind::Doubt => ("a command that may turn out to be", Some(ToolClass::Bash)),
        EffectKind::UnknownReads => (
            "a command of which it is not known what it reads",
            Some(ToolClass::Bash),
        ),
        EffectKind::UnknownEdits => (
            "a command of which it is not known what it changes",
            Some(ToolClass::Bash),
        ),
        EffectKind::UnknownRedirect => (
            "a redirection that reads a file that is not known",
            Some(ToolClass::Bash),
        ),
        EffectKind::LeftOut => ("in lists and searches", Some(ToolClass::Read)),
        EffectKind::Hidden => ("seen by programs in the jail", Some(ToolClass::Bash)),
        EffectKind::Fixed => ("changed by programs in the jail", Some(ToolClass::Bash)),
    }
}

fn permissions(kind: EffectKind, effect: &EncodedEffect) -> (String, Vec<Permission>) {
    if kind.is_path() {
        let path = effect.path();
        let permissions = of_path(kind, &path);
        return (path, permissions);
    }
    match kind {
        EffectKind::Run | EffectKind::OtherRun | EffectKind::Spelling | EffectKind::Doubt => {
            let line = CommandLine::new(&effect.value);
            (effect.value.clone(), line.runs(true, false).collect())
        }
        EffectKind::Connect => connection(effect),
        EffectKind::Sign => login(effect),
        _ => (String::new(), any_effect(kind).into_iter().collect()),
    }
}

fn of_path(kind: EffectKind, path: &str) -> Vec<Permission> {
    let claim = PathClaim::plain(path);
    let command = |line: String| CommandLine::new(&line).runs(true, false).collect();
    match kind {
        EffectKind::Write | EffectKind::SecretWrite => vec![Permission::write(claim)],
        EffectKind::Remove => vec![Permission::remove(claim)],
        EffectKind::CriticalWrite | EffectKind::CriticalSecretWrite => {
            vec![Permission::write(claim).at(Risk::Critical)]
        }
        EffectKind::CriticalRemove => vec![Permission::remove(claim).at(Risk::Critical)],
        EffectKind::CommandReads => command(haft_shell::join_words(&["cat", path])),
        EffectKind::CommandEdits => command(haft_shell::join_words(&["sed", "-i", "d", path])),
        _ => vec![Permission::read(claim)],
    }
}

/// Returns an effect of this kind, whatever its value.
fn any_effect(kind: EffectKind) -> Option<Permission> {
    let claim = || PathClaim::plain("file");
    match kind {
        EffectKind::Read => Some(Permission::read(claim())),
        EffectKind::Write => Some(Permission::write(claim())),
        EffectKind::Remove => Some(Permission::remove(claim())),
        EffectKind::CriticalWrite => Some(Permission::write(claim()).at(Risk::Critical)),
        EffectKind::CriticalRemove => Some(Permission::remove(claim()).at(Risk::Critical)),
        EffectKind::Other => Some(Permission {
            effect: Effect::Other {
                kind: "other".to_owned(),
                value: String::new(),
            },
            risk: Risk::High,
        }),
        _ => None,
    }
}

fn host_of(text: &str) -> &str {
    text.get(1..).unwrap_or_default()
}

fn connection(effect: &EncodedEffect) -> (String, Vec<Permission>) {
    let (port, host) = effect.value.split_once(' ').unwrap_or(("", &effect.value));
    let host = host_of(host);
    let shown = match port {
        "un" => host.to_owned(),
        "u80" => format!("http://{host}/"),
        "u443" => format!("https://{host}/"),
        port => format!("{host}:{}", port.trim_start_matches('x')),
    };
    let of_command = effect.class == Some(ToolClass::Network);
    let url = match port {
        "u80" | "u443" if of_command => format!("{host}:{}", &port[1..]),
        "un" | "u80" | "u443" => shown,
        _ if of_command => shown,
        port => format!("https://{host}:{}/", port.trim_start_matches('x')),
    };
    let permission = Permission {
        effect: Effect::connect(url.clone(), host),
        risk: Risk::High,
    };
    (url, vec![permission])
}

fn login(effect: &EncodedEffect) -> (String, Vec<Permission>) {
    let kind = |c: Option<char>| if c == Some('h') { "https" } else { "ssh" };
    let mut chars = effect.value.chars();
    let purpose = match chars.next() {
        Some('g') => "git".to_owned(),
        Some('k') => format!("gpg:{}", chars.as_str()),
        Some('?') => format!("{}:?", kind(chars.next())),
        first => {
            let (port, host) = chars.as_str().split_once(' ').unwrap_or_default();
            let usual =
                (first == Some('h') && port == "443") || (first == Some('s') && port == "22");
            let port = if usual {
                String::new()
            } else {
                format!(":{port}")
            };
            format!("{}:{}{port}", kind(first), host_of(host))
        }
    };
    let permission = Permission {
        effect: Effect::Sign {
            purpose: purpose.clone(),
            by: String::new(),
        },
        risk: Risk::High,
    };
    (purpose, vec![permission])
}
