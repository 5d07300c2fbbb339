//! `Agent`: the coding agents whose hooks haft reads.

use std::fmt;

use serde::{Serialize, Serializer};

/// A coding agent that runs `haft hook NAME` before and after its own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// The Codex CLI.
    Codex,
    /// Cursor: the editor's agent and `cursor-agent`.
    Cursor,
    /// The Gemini CLI.
    Gemini,
    /// The GitHub Copilot CLI.
    Copilot,
    /// Cline: the extension and the CLI.
    Cline,
    /// Windsurf, since renamed Devin Desktop (Cascade).
    Windsurf,
    /// The Devin CLI.
    Devin,
    /// `OpenCode`, through haft's plugin.
    OpenCode,
    /// goose.
    Goose,
    /// Factory Droid.
    Droid,
    /// Amp, through haft's plugin.
    Amp,
}

impl Agent {
    /// Whether variables, functions and aliases that a command sets hold for the agent's next command, in its own shell. Others start a new
    /// shell for each command, and keep at most the folder.
    pub fn keeps_shell_state(self) -> bool {
        // It prints its shell's state at the end of each command, and evaluates that before the next.
        self == Self::Cursor
    }

    /// Every agent, in the order in which lists show them.
    pub const ALL: [Self; 12] = [
        Self::Claude,
        Self::Codex,
        Self::Cursor,
        Self::Gemini,
        Self::Copilot,
        Self::Cline,
        Self::Windsurf,
        Self::Devin,
        Self::OpenCode,
        Self::Goose,
        Self::Droid,
        Self::Amp,
    ];

    /// The name in `haft hook NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Cline => "cline",
            Self::Windsurf => "windsurf",
            Self::Devin => "devin",
            Self::OpenCode => "opencode",
            Self::Goose => "goose",
            Self::Droid => "droid",
            Self::Amp => "amp",
        }
    }

    /// The vendor's name for it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Cline => "Cline",
            Self::Windsurf => "Windsurf",
            Self::Devin => "Devin CLI",
            Self::OpenCode => "OpenCode",
            Self::Goose => "goose",
            Self::Droid => "Factory Droid",
            Self::Amp => "Amp",
        }
    }

    /// The agent with this name, if there is one.
    ///
    /// ```
    /// use haft_hook::Agent;
    ///
    /// assert_eq!(Agent::from_name("codex"), Some(Agent::Codex));
    /// assert_eq!(Agent::from_name("Codex"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
