//! `CallAction`: what a call of an agent's tool would do to the machine, as far as its input tells.

use serde::Serialize;
use serde_json::value::RawValue;

/// One thing that a call would do. A call has at least one. Each is to be judged, and the strictest verdict holds.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallAction {
    /// A command is started.
    Command(AgentCommand),
    /// A file is read, or the files below a folder. A search also gives its patterns here, as paths.
    Read {
        /// The path as the agent wrote it: absolute, or relative to the event's folder.
        path: String,
    },
    /// A file is written or removed.
    Edit {
        /// The path as the agent wrote it: absolute, or relative to the event's folder.
        path: String,
        /// What happens to it.
        change: EditKind,
    },
    /// A page is fetched, or a host reached.
    Fetch {
        /// The URL as the agent wrote it.
        url: String,
    },
    /// A tool of an MCP server is called.
    Mcp {
        /// The server; `None` if the agent does not name it.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// The tool, without its server.
        tool: String,
        /// The tool's arguments; `None` if they are the whole input of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Box<RawValue>>,
    },
    /// Nothing outside the agent's own conversation: a to-do list, a plan, a question to the user.
    Note,
    /// Something unknown: the tool is unknown, or its input lacks what its kind of tool needs.
    Other {
        /// Why, in a few words.
        why: &'static str,
    },
}

/// A command that an agent would start.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AgentCommand {
    /// The line, for a shell to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The program and its arguments, if no shell reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The folder that it starts in, if that is not the event's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether the agent goes on while it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Why `line` and `argv` do not tell what would run. The command is then to be judged as unknown, whatever they hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_unknown: Option<&'static str>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    /// It is created or changed.
    Write,
    /// It is removed, or moved away.
    Remove,
}

/// Why a known tool is [`Other`](CallAction::Other) that shows nothing from elsewhere.
const UNGOVERNED: &str = "no kind of rule covers this tool";

impl CallAction {
    /// A known tool that no kind of rule covers, and that shows nothing from elsewhere.
    pub(crate) fn ungoverned() -> Self {
        Self::other(UNGOVERNED)
    }

    /// Whether strangers may have written what the call shows. What a command shows, its line tells.
    pub fn shows_strangers(&self) -> bool {
        match self {
            Self::Fetch { .. } | Self::Mcp { .. } => true,
            Self::Other { why } => *why != UNGOVERNED,
            Self::Command(_) | Self::Read { .. } | Self::Edit { .. } | Self::Note => false,
        }
    }

    /// An unknown action, and why it is unknown.
    pub(crate) fn other(why: &'static str) -> Self {
        Self::Other { why }
    }

    /// A shell line.
    pub(crate) fn line(line: String, cwd: Option<String>) -> Self {
        Self::Command(AgentCommand {
            line: Some(line),
            cwd,
            ..AgentCommand::default()
        })
    }

    /// A command that cannot be read.
    pub(crate) fn unknown_command(line: Option<String>, why: &'static str) -> Self {
        Self::Command(AgentCommand {
            line,
            why_unknown: Some(why),
            ..AgentCommand::default()
        })
    }
}
