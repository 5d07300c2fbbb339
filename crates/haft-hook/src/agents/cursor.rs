//! Cursor: the editor's agent and `cursor-agent`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::agents::claude;
use crate::decision::AgentDecision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{CallStatus, HookCall, HookEvent, HookEventKind, ReplyDialect};
use crate::input::ScannedJson;
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call runs when the hook crashes, is missing or is late, unless the entry says `failClosed: true`; haft's entry says so",
    // Cursor accepts `ask` before a tool but does not enforce it; before a command, Auto-review runs the command without asking.
    can_ask: false,
    can_rewrite: true,
    allow_skips_prompt: false,
    has_call_ids: true,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "`cursor-agent` fires fewer events than the editor, and which ones differs between its versions",
    "an event that this version of Cursor does not know makes it refuse the whole hooks file, without a word",
    "a project's hooks run only in a trusted workspace",
    "the server of an MCP tool is not in the event, so a rule can name the tool only",
    "what Tab completion reads is not governed",
];

/// Reads an event. Cursor also runs Claude Code's hooks, with its own events. Their answer is an exit code, which both agents read.
pub(crate) fn read(invoked_as: Agent, event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    let dialect = match invoked_as {
        Agent::Claude => ReplyDialect::ExitCode,
        _ => ReplyDialect::Cursor,
    };
    let shape = EventLayout {
        result: &["tool_output", "tool_response", "result_json", "output"],
        ..EventLayout::new(Agent::Cursor, dialect, actions)
    };
    let name = event.needs("hook_event_name")?;
    let mut read = match granular(&name, event)? {
        Some(call) => shape.event(event, name, HookEventKind::Before(call)),
        None => shape.read(event)?,
    };
    let roots = read.workspace_roots.iter_mut();
    roots.for_each(|root| *root = drive_path(root));
    read.cwd = read.cwd.map(|cwd| drive_path(&cwd));
    // It is often empty in the event. Tools then work in the one open folder.
    if let (None, [root]) = (&read.cwd, read.workspace_roots.as_slice()) {
        read.cwd = Some(root.clone());
    }
    if let HookEventKind::After(report) = &mut read.kind
        && event.text("failure_type").as_deref() == Some("permission_denied")
    {
        report.status = CallStatus::Refused;
    }
    Ok(read)
}

/// Turns `/C:/Users/x` into `C:/Users/x`, the form of Windows.
fn drive_path(path: &std::path::Path) -> PathBuf {
    let text = path.to_string_lossy();
    let drive = text.strip_prefix('/').filter(|rest| {
        let bytes = rest.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':')
    });
    drive.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// Builds the call of an event for one kind of tool, which lacks the tool's name and input.
fn granular(name: &str, event: &Envelope<'_>) -> Result<Option<HookCall>, ReadError> {
    #[derive(Serialize)]
    struct ShellInput {
        command: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    }
    #[derive(Serialize)]
    struct FileInput {
        file_path: String,
    }
    let (tool, input) = match name {
        "beforeShellExecution" => {
            let line = ShellInput {
                command: event.needs("command")?,
                cwd: event.any_text(&["cwd"]),
            };
            ("Shell".to_owned(), to_raw_value(&line))
        }
        "beforeReadFile" | "beforeTabFileRead" => {
            let file = FileInput {
                file_path: event.needs("file_path")?,
            };
            ("Read".to_owned(), to_raw_value(&file))
        }
        "beforeMCPExecution" => {
            let tool = format!("MCP:{}", event.needs("tool_name")?);
            (tool, Ok(event.unpacked_input("tool_input")?.to_raw()))
        }
        _ => return Ok(None),
    };
    // An object of strings always has a JSON form.
    let input = input.unwrap_or_default();
    let actions = actions(&tool, &ScannedJson::new(Cow::Borrowed(input.get())), event);
    Ok(Some(HookCall {
        id: event.any_text(&["tool_use_id"]),
        tool,
        input,
        actions,
    }))
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &ScannedJson<'_>, _: &Envelope<'_>) -> Vec<CallAction> {
    if let Some(tool) = tool.strip_prefix("MCP:") {
        return vec![mcp::tool_of(None, tool)];
    }
    if let Some(actions) = mcp::named(tool, None) {
        return actions;
    }
    match tool {
        "Shell" => tools::command(input, &["command"], &["cwd"]),
        "Delete" => tools::edit(input, EditKind::Remove),
        "StrReplace" | "EditNotebook" => tools::edit(input, EditKind::Write),
        "Glob" => tools::glob(input, &["path"]),
        // Cursor shares these and the following names with Claude Code.
        "Grep" | "LS" => tools::search(input, &["path", "file_path"]),
        "Read" | "Write" | "Edit" | "MultiEdit" | "Bash" | "WebFetch" | "TodoWrite" | "Task" => {
            claude::own_actions(tool, input)
        }
        _ => tools::unknown(),
    }
}

/// The answer. It is never empty, since empty output is a failure for an entry with `failClosed`.
#[derive(Debug, Default, Serialize)]
struct CursorOutput<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_message: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'d RawValue>,
}

impl<'d> CursorOutput<'d> {
    /// A denial. It has the reason twice, because versions differ in which one reaches the model.
    fn deny(reason: &'d str) -> Self {
        Self {
            permission: Some("deny"),
            user_message: Some(reason),
            agent_message: Some(reason),
            updated_input: None,
        }
    }
}

/// Returns the answer, an object in any case. A question becomes a denial.
pub(crate) fn answer(decision: &AgentDecision<'_>) -> HookReply {
    HookReply::json(&match decision {
        AgentDecision::Nothing => CursorOutput::default(),
        AgentDecision::Allow(input) => CursorOutput {
            permission: Some("allow"),
            updated_input: *input,
            ..CursorOutput::default()
        },
        AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => CursorOutput::deny(reason),
    })
}

/// Returns a denial for any event: exit code 2 blocks, and the output gives the reason to versions that read it.
pub(crate) fn refusal(reason: String) -> HookReply {
    HookReply {
        stdout: HookReply::json(&CursorOutput::deny(&reason)).stdout,
        stderr: reason,
        exit: 2,
    }
}
