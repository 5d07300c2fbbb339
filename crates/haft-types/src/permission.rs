//! The effects that a call wants (`Permission`), and the policy's rulings (`Verdict`).

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::spec::Risk;

/// The kind of effect ([`Effect::Other`]) that states a proposed rule; its value is the rule.
pub const PROPOSED_RULE: &str = "allow rule";

/// The kind of effect ([`Effect::Other`]) for continuing beyond a money budget; its value names the budget that is used up.
pub const BUDGET_EFFECT: &str = "budget";

/// The kind of effect ([`Effect::Other`]) of opening a port at which a command serves to this machine; its value is the port.
pub const EXPOSE_EFFECT: &str = "expose port";
/// The name of the condition that states what serves at such a port, and where it is reached.
pub const EXPOSED_CONDITION: &str = "opens";

/// The kind of effect ([`Effect::Other`]) of a call that changes files whose names are not all known; its value says why.
pub const UNKNOWN_NAMES: &str = "unknown names";

/// A ruling; ordered, so that the highest of several wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The call needs approval.
    Ask,
    /// The call must not run.
    Deny,
}

impl Verdict {
    /// Returns the word used in settings, audit lines and `--json`.
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

/// A path that a call names, in the form that the policy judges.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathClaim {
    /// The path as written, lexically cleaned: relative to the workspace root if inside it (`.` is the root itself), otherwise absolute.
    pub path: String,
    /// The target of its links, in the same form, if it differs from `path`. An allow must match both; a deny matches either.
    pub target: Option<String>,
}

impl PathClaim {
    /// Creates the claim of a path without links.
    pub fn plain(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            target: None,
        }
    }
}

/// An intended effect of a call, with its risk.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Permission {
    /// What the call would do.
    pub effect: Effect,
    /// The risk of this effect; the call's risk is the highest of its effects and its spec.
    pub risk: Risk,
}

/// The kinds of effects that rules can match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call itself, by tool name: every call has it.
    Call,
    /// Reads a file or lists a directory.
    Read(PathClaim),
    /// Creates or changes what is at a path: a file, a folder, its mode or a link.
    Write(PathClaim),
    /// Removes what is at a path: deletes it, or moves it elsewhere.
    Remove(PathClaim),
    /// Runs a command: one part of a command line, or the whole line if it cannot be split.
    Run {
        /// The command line as a rule sees it: the string given, or the argv joined with shell quoting.
        command: String,
        /// The words, if the command is an argv without shell syntax.
        argv: Option<Vec<String>>,
        /// Whether the jail confines it.
        jailed: bool,
        /// Whether it works on a copy of the workspace without network: its changes are judged when it has ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        on_copy: bool,
    },
    /// Applies the changes that a command made on a copy of the workspace. The changes themselves are separate effects.
    Apply {
        /// The line of the command that made the changes.
        command: String,
        /// The topmost folders that git ignores among the changes that are asked about, without build outputs. A rule for such a folder can
        /// be kept: `Edit(/node_modules)`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
    },
    /// Opens a connection to a host, or sends a request to one.
    Connect {
        /// The whole URL; `host:port` for a connection of a command whose requests are not judged.
        url: String,
        /// Its host, lower case, without port.
        host: String,
        /// The method of the request; `None` if it is not known, as for a connection that may carry any request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<String>,
        /// The addresses of its name, sorted, if they are not on the public network and the name was resolved beforehand. An approval only
        /// covers these.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        leads_to: Vec<IpAddr>,
    },
    /// Uses one of the host's logins: a credential in a request, or a signature by a key.
    Sign {
        /// For what: `https:HOST`, `ssh:HOST` (with `:PORT` where it is not the usual one), `ssh:?` for a server that is not known, `git`
        /// for a signed commit or tag.
        purpose: String,
        /// By what, in words for the user: which credential in which header from which program, or which key.
        by: String,
    },
    /// Writes to memory.
    Remember {
        /// Where the text is remembered: `user`, `agent` or `project`.
        scope: String,
        /// SHA-256 of the remembered text, in hex: an approval of one text does not cover another.
        #[serde(default)]
        digest: String,
    },
    /// Asks the user a question.
    Question,
    /// Anything else, for host tools.
    Other {
        /// The name of the kind, which `policy explain` shows.
        kind: String,
        /// What it is about: the value that rules match.
        value: String,
    },
}

impl Permission {
    /// Creates the permission to read a path, with risk safe.
    pub fn read(path: PathClaim) -> Self {
        Self {
            effect: Effect::Read(path),
            risk: Risk::Safe,
        }
    }

    /// Creates the permission to write a path, with risk high.
    pub fn write(path: PathClaim) -> Self {
        Self {
            effect: Effect::Write(path),
            risk: Risk::High,
        }
    }

    /// Creates the permission to remove what is at a path, with risk high.
    pub fn remove(path: PathClaim) -> Self {
        Self {
            effect: Effect::Remove(path),
            risk: Risk::High,
        }
    }

    /// Creates the permission to apply a command's changes from a copy of the workspace. Safe, because each change is its own effect.
    pub fn apply(command: impl Into<String>) -> Self {
        Self {
            effect: Effect::Apply {
                command: command.into(),
                ignored: Vec::new(),
            },
            risk: Risk::Safe,
        }
    }

    /// Creates the effect of changing files whose names are not all known, for this reason.
    pub fn unknown_names(why: &str) -> Self {
        Self {
            effect: Effect::Other {
                kind: UNKNOWN_NAMES.to_owned(),
                value: why.to_owned(),
            },
            risk: Risk::Critical,
        }
    }

    /// Sets the risk, in place of the one that the constructor chose.
    pub fn at(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }
}

impl Effect {
    /// Creates the effect of opening a connection whose host is resolved when it is opened. What is sent there is not known.
    pub fn connect(url: impl Into<String>, host: impl Into<String>) -> Self {
        Self::Connect {
            url: url.into(),
            host: host.into(),
            method: None,
            leads_to: Vec::new(),
        }
    }

    /// Creates the effect of getting what a URL names, whose host is resolved when the connection is opened.
    pub fn get(url: impl Into<String>, host: impl Into<String>) -> Self {
        Self::Connect {
            url: url.into(),
            host: host.into(),
            method: Some("GET".to_owned()),
            leads_to: Vec::new(),
        }
    }

    /// Returns the method that a request has, where it says more than the URL: it is known and does not only get what is there.
    pub fn method_shown(&self) -> Option<&str> {
        match self {
            Self::Connect {
                method: Some(method),
                ..
            } if method != "GET" => Some(method),
            _ => None,
        }
    }

    /// Returns the name of this effect in `policy explain`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Call => "call",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Remove(_) => "remove",
            Self::Run { .. } => "run",
            Self::Apply { .. } => "apply",
            Self::Connect { .. } => "connect",
            Self::Sign { .. } => "sign",
            Self::Remember { .. } => "remember",
            Self::Question => "question",
            Self::Other { kind, .. } => kind,
        }
    }

    /// Returns what the effect is about, for `policy explain`: a path, a command line, a URL. Empty for a call and for
    /// a question.
    pub fn value(&self) -> &str {
        match self {
            Self::Call | Self::Question => "",
            Self::Read(path) | Self::Write(path) | Self::Remove(path) => &path.path,
            Self::Run { command, .. } | Self::Apply { command, .. } => command,
            Self::Connect { url, .. } => url,
            Self::Sign { purpose, .. } => purpose,
            Self::Remember { scope, .. } => scope,
            Self::Other { value, .. } => value,
        }
    }

    /// Returns the path whose content or existence it changes, if any.
    pub fn changed_path(&self) -> Option<&PathClaim> {
        match self {
            Self::Write(claim) | Self::Remove(claim) => Some(claim),
            _ => None,
        }
    }

    /// Returns the path that it reads or changes, for effects on files.
    pub fn path(&self) -> Option<&PathClaim> {
        match self {
            Self::Read(claim) => Some(claim),
            other => other.changed_path(),
        }
    }
}

/// A property of a call that settings decide, not its arguments: how it is confined, what it can reach. The user sees it in the
/// request, and an approval holds only while it stays the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// A short name: `sandbox`, `network`.
    pub name: String,
    /// Its value, in a few words for the user.
    pub value: String,
}

impl Condition {
    /// The name of the condition that states a command's variables.
    pub const VARIABLES: &'static str = "variables";
    /// The name of the condition that states the certificates which the environment of haft's process names.
    pub const CERTIFICATES: &'static str = "certificates";

    /// The name of the condition that a command runs in the background, in the workspace itself.
    pub const IN_BACKGROUND: &'static str = "in the background";
    /// The name of the condition that any other command works in the workspace itself.
    pub const DIRECTLY: &'static str = "directly";

    /// Returns whether it states that nobody judges what a command changes.
    pub fn is_unjudged(&self) -> bool {
        [Self::IN_BACKGROUND, Self::DIRECTLY].contains(&&*self.name)
    }

    /// Returns whether the environment of the process that makes the call decides its value, besides the settings.
    pub fn is_of_environment(&self) -> bool {
        [Self::VARIABLES, Self::CERTIFICATES].contains(&&*self.name)
    }

    /// Creates a condition with this name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}
