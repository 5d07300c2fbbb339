//! What a call wants to do (`Permission`), and how a policy rules on it (`Verdict`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::spec::Risk;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// What would be done.
    pub effect: Effect,
    /// How harmful this effect is; the call's risk is the highest of its effects and its spec.
    pub risk: Risk,
}

/// The kinds of effect rules can speak of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The call itself, by tool name: every call has it.
    Call,
    /// Reads a file or lists a directory.
    Read(PathClaim),
    /// Writes, moves or deletes at a path.
    Write(PathClaim),
    /// Runs a command.
    Run {
        /// The command line as a rule sees it: the string given, or the argv joined with shell quoting.
        command: String,
        /// The words, where the command is an argv without shell syntax.
        argv: Option<Vec<String>>,
        /// Confined by the jail.
        jailed: bool,
    },
    /// Opens a connection.
    Connect {
        /// The whole URL.
        url: String,
        /// Its host, lower case, without port.
        host: String,
    },
    /// Writes to memory.
    Remember {
        /// Its scope.
        scope: String,
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

    /// The same effect at another risk.
    pub fn at(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }
}

impl Effect {
    /// The word for this effect in `policy explain`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Call => "call",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Run { .. } => "run",
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
            Self::Read(path) | Self::Write(path) => &path.path,
            Self::Run { command, .. } => command,
            Self::Connect { url, .. } => url,
            Self::Remember { scope } => scope,
            Self::Other { value, .. } => value,
        }
    }
}
