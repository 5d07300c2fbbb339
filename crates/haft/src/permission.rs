//! What a call wants to do (`Permission`), and how a policy rules on it (`Verdict`).

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::spec::Risk;

/// The kind of the effect that a proposed rule states ([`Effect::Other`]); its value is the rule.
pub const PROPOSED_RULE: &str = "allow rule";

/// The kind of the effect that stands for going on beyond a budget of money ([`Effect::Other`]); its value says which one is used up.
pub const BUDGET_EFFECT: &str = "budget";

/// A ruling; ordered, the highest of several wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not.
    Deny,
}

impl Verdict {
    /// The word in settings, audit lines and `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A path a call names, as the policy must see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathClaim {
    /// As written, made relative to the workspace root where it lies below it (`.` is the root itself), lexically cleaned; absolute elsewhere.
    pub path: String,
    /// Where links lead, in the same form, when that differs from `path`. An allow needs both, a deny takes either.
    pub target: Option<String>,
}

impl PathClaim {
    /// A path that no link changes.
    pub fn plain(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            target: None,
        }
    }
}

/// One intended effect of a call, with its risk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Permission {
    /// What would be done.
    pub effect: Effect,
    /// How harmful this effect is; the call's risk is the highest of its effects and its spec.
    pub risk: Risk,
}

/// The kinds of effect rules can speak of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call itself, by tool name: every call has it.
    Call,
    /// Reads a file or lists a directory.
    Read(PathClaim),
    /// Makes or changes what lies at a path.
    Write(PathClaim),
    /// Takes what lies at a path away: deletes it, or moves it elsewhere.
    Remove(PathClaim),
    /// Runs a command.
    Run {
        /// The command line as a rule sees it: the string given, or the argv joined with shell quoting.
        command: String,
        /// The words, where the command is an argv without shell syntax.
        argv: Option<Vec<String>>,
        /// Confined by the jail.
        jailed: bool,
        /// It works on a copy of the workspace and reaches no network: what it changed is judged when it has ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        on_copy: bool,
    },
    /// Applies what a command changed on a copy of the workspace. What it changes are effects of their own.
    Apply {
        /// The command line.
        command: String,
    },
    /// Opens a connection.
    Connect {
        /// The whole URL.
        url: String,
        /// Its host, lower case, without port.
        host: String,
        /// Where its name leads, sorted, when those are no addresses of the public network and the name was looked up
        /// before. An approval holds for these alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        leads_to: Vec<IpAddr>,
    },
    /// Writes to memory.
    Remember {
        /// Its scope.
        scope: String,
        /// SHA-256 of the text that is remembered, in hex: an approval of one text is none of another.
        #[serde(default)]
        digest: String,
    },
    /// Asks the person something.
    Question,
    /// Anything else, for host tools.
    Other {
        /// A word for the kind.
        kind: String,
        /// What it is about.
        value: String,
    },
}

impl Permission {
    /// Reading a path: safe.
    pub fn read(path: PathClaim) -> Self {
        Self {
            effect: Effect::Read(path),
            risk: Risk::Safe,
        }
    }

    /// Writing a path: high.
    pub fn write(path: PathClaim) -> Self {
        Self {
            effect: Effect::Write(path),
            risk: Risk::High,
        }
    }

    /// Taking what lies at a path away: high.
    pub fn remove(path: PathClaim) -> Self {
        Self {
            effect: Effect::Remove(path),
            risk: Risk::High,
        }
    }

    /// Applying what this command changed on a copy of the workspace: safe, for each change is an effect of its own.
    pub fn apply(command: impl Into<String>) -> Self {
        let command = command.into();
        Self {
            effect: Effect::Apply { command },
            risk: Risk::Safe,
        }
    }

    /// The same effect at another risk.
    pub fn at(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }
}

impl Effect {
    /// Opening a connection whose host is looked up when it is opened.
    pub fn connect(url: impl Into<String>, host: impl Into<String>) -> Self {
        Self::Connect {
            url: url.into(),
            host: host.into(),
            leads_to: Vec::new(),
        }
    }

    /// The word for this effect in `policy explain`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Call => "call",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Remove(_) => "remove",
            Self::Run { .. } => "run",
            Self::Apply { .. } => "apply",
            Self::Connect { .. } => "connect",
            Self::Remember { .. } => "remember",
            Self::Question => "question",
            Self::Other { kind, .. } => kind,
        }
    }

    /// What it is about, for `policy explain`.
    pub fn value(&self) -> &str {
        match self {
            Self::Call | Self::Question => "",
            Self::Read(path) | Self::Write(path) | Self::Remove(path) => &path.path,
            Self::Run { command, .. } | Self::Apply { command } => command,
            Self::Connect { url, .. } => url,
            Self::Remember { scope, .. } => scope,
            Self::Other { value, .. } => value,
        }
    }

    /// The path whose content or existence it changes, for effects that do.
    pub fn changed_path(&self) -> Option<&PathClaim> {
        match self {
            Self::Write(claim) | Self::Remove(claim) => Some(claim),
            _ => None,
        }
    }

    /// The path it reads or changes, for effects on files.
    pub fn path(&self) -> Option<&PathClaim> {
        match self {
            Self::Read(claim) => Some(claim),
            other => other.changed_path(),
        }
    }
}

/// Something about a call that its arguments do not say and settings decide: how it is confined, what it reaches. It is
/// shown to the person who decides, and an approval holds only while it is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// A short name: `sandbox`, `network`.
    pub name: String,
    /// Its value, in a few words for a person.
    pub value: String,
}

impl Condition {
    /// A condition of this name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}
