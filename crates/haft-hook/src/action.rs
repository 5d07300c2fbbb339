//! `Action`: what a call of an agent's tool would do to the machine, as far as its input says.

use serde::Serialize;
use serde_json::value::RawValue;

/// One thing that a call would do. A call has one or more; each is to be judged, and the strictest verdict holds.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// A command is started.
    Command(Command),
    /// A file is read, or what lies below a folder. A search also names its patterns here, as paths.
    Read {
        /// The path as the agent wrote it: absolute, or relative to the event's folder.
        path: String,
    },
    /// A file is written or removed.
    Edit {
        /// The path as the agent wrote it: absolute, or relative to the event's folder.
        path: String,
        /// What becomes of it.
        change: Change,
    },
    /// A page is fetched, or a host reached.
    Fetch {
        /// The address as the agent wrote it.
        url: String,
    },
    /// A tool of an MCP server is called.
    Mcp {
        /// The server; `None` where the agent does not say.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// The tool, without its server.
        tool: String,
        /// The tool's arguments; `None` where they are the whole input of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Box<RawValue>>,
    },
    /// Nothing outside the agent's own conversation: a list of what is to be done, a plan, a question to the user.
    Note,
    /// Something that is not known: the tool is not, or its input lacks what its kind of tool needs.
    Other {
        /// Why, in a few words.
        why: &'static str,
    },
}

/// A command that an agent would start.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Command {
    /// The line that a shell reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The program and its arguments, where no shell reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The folder that it starts in, where it is not the event's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Why `line` and `argv` do not say what would run: it is to be judged as a command that is not known, whatever they hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_unknown: Option<&'static str>,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is created or gets other bytes.
    Write,
    /// It is removed, or moved away.
    Remove,
}

impl Action {
    /// What is not known, and why.
    pub(crate) fn other(why: &'static str) -> Self {
        Self::Other { why }
    }

    /// A shell line.
    pub(crate) fn line(line: String, cwd: Option<String>) -> Self {
        Self::Command(Command {
            line: Some(line),
            cwd,
            ..Command::default()
        })
    }

    /// A command that cannot be read.
    pub(crate) fn unknown_command(line: Option<String>, why: &'static str) -> Self {
        Self::Command(Command {
            line,
            why_unknown: Some(why),
            ..Command::default()
        })
    }
}
