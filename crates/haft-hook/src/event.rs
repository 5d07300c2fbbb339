//! `HookEvent`: what an agent sent to its hook, in one form for all agents.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::CallAction;
use crate::agent::Agent;

/// What an agent sent to its hook.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HookEvent {
    /// The agent that sent it. It may differ from the one in `haft hook NAME`: Cursor, Copilot and Devin also run Claude Code's hooks.
    pub agent: Agent,
    /// The form that the answer must have.
    pub dialect: ReplyDialect,
    /// The event's name as it was sent.
    pub name: String,
    /// The agent's id of the session; empty if it sends none.
    pub session: String,
    /// The folder where the call's relative paths start. It is not the workspace: some agents let the model choose it for a call (Codex's
    /// `workdir`), or let it follow a `cd` (Claude Code). The workspace has to be derived from what is known about the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The open folders, if the agent names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspace_roots: Vec<PathBuf>,
    /// The model that the agent runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's own permission mode, as it names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether the agent runs without a user, if the event says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// The subagent that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// What the event is about.
    pub kind: HookEventKind,
}

/// What an event is about.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookEventKind {
    /// A tool is about to run. The answer decides.
    Before(HookCall),
    /// The agent is about to ask its user about a call. The answer decides instead.
    Permission(HookCall),
    /// A call ended. There is nothing to decide.
    After(CallReport),
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
pub struct HookCall {
    /// The agent's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The tool's input, byte for byte; `null` if there is none. It has passed the strict scan of `haft-json`.
    pub input: Box<RawValue>,
    /// What the call would do; never empty.
    pub actions: Vec<CallAction>,
}

impl HookCall {
    /// Returns the arguments of an action that calls a tool of an MCP server; `None` for any other action.
    pub fn arguments<'a>(&'a self, action: &'a CallAction) -> Option<&'a RawValue> {
        match action {
            CallAction::Mcp { arguments, .. } => Some(arguments.as_deref().unwrap_or(&self.input)),
            _ => None,
        }
    }
}

/// How a call ended, as the agent reports it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CallReport {
    /// The agent's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool, as the agent names it.
    pub tool: String,
    /// The tool's input, if the agent sends it again and every reader reads it alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<RawValue>>,
    /// How it ended.
    pub status: CallStatus,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The result, byte for byte. It is unchecked and may hold what a strict reader refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// What went wrong, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStatus {
    /// It ran.
    Ok,
    /// It ran and failed, or could not run.
    Failed,
    /// The user stopped it.
    Interrupted,
    /// It did not run: a hook, a rule of the agent or its user refused it.
    Refused,
}

/// The form of the answer to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReplyDialect {
    /// Claude Code: an object in `hookSpecificOutput`.
    Nested,
    /// Codex: the same, with only the keys that it knows.
    Codex,
    /// Factory Droid: the same to allow; exit code 2 and a text on standard error deny.
    Droid,
    /// Cursor: `permission` at the top.
    Cursor,
    /// Gemini CLI: `decision`.
    Gemini,
    /// Copilot CLI: `permissionDecision` at the top.
    Copilot,
    /// Cline: `cancel`.
    Cline,
    /// Exit code 2 and a text on standard error deny. Nothing else can be said.
    ExitCode,
    /// `{"decision": "block"}` denies. Nothing else can be said.
    Block,
    /// haft's own plugins.
    Plugin,
}

impl HookEvent {
    /// Returns the call to decide, if the event is about one.
    pub fn call(&self) -> Option<&HookCall> {
        match &self.kind {
            HookEventKind::Before(call) | HookEventKind::Permission(call) => Some(call),
            _ => None,
        }
    }
}
