//! `Event`: what an agent said, in the shape that is the same for all of them.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::Action;
use crate::agent::Agent;

/// What an agent said.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The agent that sent it. It may differ from the one in `haft hook NAME`: Cursor, Copilot and Devin also run Claude Code's hooks.
    pub agent: Agent,
    /// What the answer must look like.
    pub dialect: Dialect,
    /// The event's name as it was sent.
    pub name: String,
    /// The agent's id of the session; empty where it sends none.
    pub session: String,
    /// The folder in which the call's relative paths begin. It is no workspace: some agents let the model choose it for a call (Codex's
    /// `workdir`), or let it follow a `cd` (Claude Code). What lies within the workspace is to be told by what is known of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The folders that are open, where the agent says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace_roots: Vec<PathBuf>,
    /// The model that the agent runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's own permission mode, in its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether no user is there to be asked, where the event says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// The subagent that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// What the event is about.
    pub kind: Kind,
}

/// What an event is about.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A tool is about to run: the answer decides.
    Before(Call),
    /// The agent is about to ask its user about a call: the answer decides instead.
    Permission(Call),
    /// A call ended: there is nothing to decide.
    After(Report),
    /// A session starts or is resumed.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The user sent a prompt.
    Prompt,
    /// Another event, by its name.
    Other(String),
}

/// A call that is about to run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// The agent's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The tool's input, byte for byte; `null` where there is none. It passed the strict scan of `haft-json`.
    pub input: Box<RawValue>,
    /// What the call would do; never empty.
    pub actions: Vec<Action>,
}

impl Call {
    /// The arguments of one of its actions that calls a tool of an MCP server; `None` for any other action.
    pub fn arguments<'a>(&'a self, action: &'a Action) -> Option<&'a RawValue> {
        match action {
            Action::Mcp { arguments, .. } => Some(arguments.as_deref().unwrap_or(&self.input)),
            _ => None,
        }
    }
}

/// How a call ended, as the agent reports it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The agent's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The tool's input, where it is sent again and two readers read it alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<RawValue>>,
    /// How it ended.
    pub status: Status,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What came of it, byte for byte, unchecked: it may hold what a strict reader refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It ran.
    Ok,
    /// It ran and failed, or could not run.
    Failed,
    /// The user stopped it.
    Interrupted,
    /// It did not run: a hook, a rule of the agent's or its user refused it.
    Refused,
}

/// What the answer to an event must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dialect {
    /// Claude Code: `hookSpecificOutput` within.
    Nested,
    /// Codex: the same with the keys that it knows alone.
    Codex,
    /// Factory Droid: the same for what may run; exit code 2 and a text on standard error deny.
    Droid,
    /// Cursor: `permission` at the top.
    Cursor,
    /// Gemini CLI: `decision`.
    Gemini,
    /// Copilot CLI: `permissionDecision` at the top.
    Copilot,
    /// Cline: `cancel`.
    Cline,
    /// Exit code 2 and a text on standard error deny; nothing else is said.
    ExitCode,
    /// `{"decision": "block"}` denies; nothing else is said.
    Block,
    /// haft's own plugins.
    Plugin,
}

impl Event {
    /// The call that is to be decided, if the event is about one.
    pub fn call(&self) -> Option<&Call> {
        match &self.kind {
            Kind::Before(call) | Kind::Permission(call) => Some(call),
            _ => None,
        }
    }
}
