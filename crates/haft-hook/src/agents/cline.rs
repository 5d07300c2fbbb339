//! Cline: the extension and the CLI.

use std::time::Duration;

use haft_json::scan::{scan, scan_object};
use haft_json::view::View;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::action::{CallAction, EditKind};
use crate::agent::Agent;
use crate::decision::{AgentDecision, CLINE_CLI_CALL};
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{CallReport, CallStatus, HookCall, HookEvent, HookEventKind, ReplyDialect};
use crate::input::{ScannedJson, is_json, list_in, may_be_json};
use crate::limits::AgentLimits;
use crate::mcp;
use crate::shape::EventLayout;
use crate::tools;
use crate::verdict::HookReply;

pub(crate) const LIMITS: AgentLimits = AgentLimits {
    // This is the extension's limit. The CLI waits 120 s.
    wait: Duration::from_secs(30),
    fails_open: true,
    failure: "the call runs when the hook crashes, is missing or is late, and no setting of Cline closes that",
    can_ask: false,
    can_rewrite: true,
    allow_skips_prompt: false,
    has_call_ids: false,
    reports_failures: true,
};

pub(crate) const GAPS: &[&str] = &[
    "a denial stops the whole task, which its user can resume; the model gets no error of the tool",
    "hooks run after the user's own approval in Cline, not before it",
    "no hook runs when the model's provider runs the tools itself (Claude Code or Codex as providers), nor for `attempt_completion`",
    "the time limit is Cline's own (30 s in the extension, 120 s in the CLI), so an approval in haft's inbox must come within it",
    "only the CLI can change a call's input; the extension cannot",
    "the setting `hooksEnabled` switches all hooks off",
];

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<HookEvent, ReadError> {
    let shape = EventLayout::new(Agent::Cline, ReplyDialect::Cline, |_, _, _| {
        tools::unknown()
    });
    let name = event.needs("hookName")?;
    let kind = match name.as_str() {
        CLINE_CLI_CALL => HookEventKind::Before(cli_call(event)?),
        "PreToolUse" => HookEventKind::Before(call(event)?),
        "PostToolUse" => HookEventKind::After(report(event)?),
        "tool_result" => HookEventKind::After(cli_report(event)?),
        "TaskStart" | "TaskResume" | "agent_start" | "agent_resume" => HookEventKind::SessionStart,
        "TaskComplete" | "TaskCancel" | "TaskError" | "SessionShutdown" | "agent_end"
        | "session_shutdown" => HookEventKind::SessionEnd,
        "UserPromptSubmit" | "prompt_submit" => HookEventKind::Prompt,
        other => HookEventKind::Other(other.to_owned()),
    };
    let mut read = shape.event(event, name, kind);
    read.workspace_roots = event.folders("workspaceRoots");
    if let (None, [root]) = (&read.cwd, read.workspace_roots.as_slice()) {
        read.cwd = Some(root.clone());
    }
    Ok(read)
}

fn call(event: &Envelope<'_>) -> Result<HookCall, ReadError> {
    // The extension sends the older nested object; the CLI sends both.
    if event.has(CLINE_CLI_CALL) {
        return cli_call(event);
    }
    let before = event.needs_object("preToolUse")?;
    let tool = before.any_text(&["toolName", "tool"]);
    let tool = tool.map_or_else(|| before.needs("toolName"), Ok)?;
    let input = before.unpacked_input("parameters")?;
    Ok(HookCall {
        id: None,
        actions: actions(&tool, &input, InputEncoding::Texts),
        input: input.to_raw(),
        tool,
    })
}

fn cli_call(event: &Envelope<'_>) -> Result<HookCall, ReadError> {
    let call = event.needs_object(CLINE_CLI_CALL)?;
    let tool = call.needs("name")?;
    let input = call.unpacked_input("input")?;
    Ok(HookCall {
        id: call.any_text(&["id"]),
        actions: actions(&tool, &input, InputEncoding::Typed),
        input: input.to_raw(),
        tool,
    })
}

fn report(event: &Envelope<'_>) -> Result<CallReport, ReadError> {
    let after = event.needs_object("postToolUse")?;
    let tool = after.any_text(&["toolName", "tool"]);
    let failed = after.flag("success") == Some(false);
    Ok(CallReport {
        id: None,
        tool: tool.map_or_else(|| after.needs("toolName"), Ok)?,
        input: after
            .unpacked_input("parameters")
            .ok()
            .map(|input| input.to_raw()),
        status: if failed {
            CallStatus::Failed
        } else {
            CallStatus::Ok
        },
        duration_ms: after.milliseconds(&["executionTimeMs"]),
        result: after.raw("result").map(ToOwned::to_owned),
        error: None,
    })
}

fn cli_report(event: &Envelope<'_>) -> Result<CallReport, ReadError> {
    let after = event.needs_object("tool_result")?;
    let error = after.any_text(&["error"]).or_else(|| failure(&after));
    Ok(CallReport {
        id: after.any_text(&["id"]),
        tool: after.needs("name")?,
        input: after
            .unpacked_input("input")
            .ok()
            .map(|input| input.to_raw()),
        status: if error.is_some() {
            CallStatus::Failed
        } else {
            CallStatus::Ok
        },
        duration_ms: after.milliseconds(&["durationMs", "executionTimeMs"]),
        result: after.raw("output").map(ToOwned::to_owned),
        error,
    })
}

/// The error of one of several commands. The CLI reports it as an ordinary result.
fn failure(after: &Envelope<'_>) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ClineResultPart {
        success: Option<bool>,
        error: Option<String>,
    }
    let parts: Vec<ClineResultPart> = serde_json::from_str(after.raw("output")?.get()).ok()?;
    let failed = parts.into_iter().find(|part| part.success == Some(false))?;
    Some(failed.error.unwrap_or_default())
}

/// States what a call of a tool would do. The names are those of the current and of older versions.
fn actions(tool: &str, input: &ScannedJson<'_>, form: InputEncoding) -> Vec<CallAction> {
    match tool {
        "run_commands" => commands(input, form),
        "execute_command" => tools::command(input, &["command"], &[]),
        "read_files" => files(input, form),
        "read_file" => tools::read(input, &tools::PATHS),
        "search_codebase" | "search_files" | "list_files" | "list_code_definition_names" => {
            tools::search(input, &["path"])
        }
        "editor" | "write_to_file" | "replace_in_file" | "new_rule" => {
            tools::edit(input, EditKind::Write)
        }
        "apply_patch" => tools::apply_patch(input),
        "fetch_web_content" | "web_fetch" => tools::fetch(input, &["url", "urls"]),
        "use_mcp_tool" => server_tool(input),
        "access_mcp_resource" => match input.text("server_name") {
            Some(server) => vec![mcp::tool_of(Some(&server), "resources/read")],
            None => vec![CallAction::other("it names no server")],
        },
        "ask_followup_question" | "ask_question" => tools::note(input, &["question", "questions"]),
        "plan_mode_respond" => tools::note(input, &["response"]),
        "browser_action" | "web_search" => tools::web_search(),
        "new_task" | "use_subagents" | "use_skill" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// The types of the members of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEncoding {
    /// Those that the tool gets.
    Typed,
    /// Strings: a list is a string that holds one. Only here may a string be read as a list, since a line that looks like a list means
    /// something else to a shell.
    Texts,
}

impl InputEncoding {
    /// Returns the texts that a string holds.
    fn texts(self, text: &str) -> Vec<String> {
        let list = (self == Self::Texts).then(|| list_in(text)).flatten();
        list.unwrap_or_else(|| vec![text.to_owned()])
    }
}

/// A tool that runs several commands, each a shell line.
fn commands(input: &ScannedJson<'_>, form: InputEncoding) -> Vec<CallAction> {
    let mut actions = Vec::new();
    for member in ["commands", "command"]
        .iter()
        .filter_map(|name| input.get(name))
    {
        if let Some(text) = member.as_str() {
            let lines = form.texts(&text).into_iter();
            let lines = lines.filter(|line| !line.trim().is_empty());
            actions.extend(lines.map(line));
            continue;
        }
        for item in member.items() {
            let one = item.as_str().map(|text| line(text.into_owned()));
            actions.push(one.unwrap_or_else(|| {
                CallAction::unknown_command(None, "the command is not a line of text")
            }));
        }
    }
    tools::or_other(actions, "a command without a line")
}

/// A command. JSON at this point may hold commands in an unknown form.
fn line(text: String) -> CallAction {
    if is_json(&text) {
        return CallAction::unknown_command(Some(text), tools::JSON_COMMAND);
    }
    CallAction::line(text, None)
}

/// A tool that reads several files: paths, or objects with one path each.
fn files(input: &ScannedJson<'_>, form: InputEncoding) -> Vec<CallAction> {
    let list = ["files", "file_paths"]
        .iter()
        .find_map(|name| input.get(name));
    let Some(list) = list else {
        return tools::read(input, &tools::PATHS);
    };
    let why = "it reads a file that it does not name";
    if let Some(text) = list.as_str() {
        let mut actions = files_in(&text);
        if form == InputEncoding::Typed && may_be_json(&text) {
            actions.push(CallAction::other("its list of files is a text"));
        }
        return tools::or_other(actions, why);
    }
    let mut actions: Vec<CallAction> = list.items().flat_map(file).collect();
    // Some version may read a path beside the list.
    if !input.texts(&tools::PATHS).texts.is_empty() {
        actions.extend(tools::read(input, &tools::PATHS));
    }
    tools::or_other(actions, why)
}

/// The files that a text names: one path, or JSON with one or several.
fn files_in(text: &str) -> Vec<CallAction> {
    if !may_be_json(text) {
        let path = text.to_owned();
        return (!path.is_empty())
            .then_some(CallAction::Read { path })
            .into_iter()
            .collect();
    }
    if scan(text).is_err() {
        return vec![CallAction::other("its list of files is not valid JSON")];
    }
    let view = View::of(text);
    if view.text().starts_with('[') {
        return view.items().flat_map(file).collect();
    }
    file(view)
}

/// One of several files: a path, or an object with a path under any known name.
fn file(item: View<'_>) -> Vec<CallAction> {
    let names = tools::PATHS.iter();
    let members = names.filter_map(|name| item.get(name)?.as_str());
    let paths = item.as_str().into_iter().chain(members);
    let paths = paths.filter(|path| !path.is_empty());
    let actions = paths.map(|path| {
        if may_be_json(&path) {
            return CallAction::other("a path that is JSON");
        }
        CallAction::Read {
            path: path.into_owned(),
        }
    });
    tools::or_other(actions.collect(), "it reads a file that it does not name")
}

/// A server's tool that the input names.
fn server_tool(input: &ScannedJson<'_>) -> Vec<CallAction> {
    let (Some(server), Some(tool)) = (input.text("server_name"), input.text("tool_name")) else {
        return vec![CallAction::other("it names no server and tool")];
    };
    let arguments = match input.get("arguments") {
        None => "{}".to_owned(),
        Some(arguments) => match arguments.as_str() {
            None => arguments.text().to_owned(),
            // The scan of the input saw only a string. Every reader must read its content alike, too.
            Some(text) if scan_object(&text).is_ok() => text.into_owned(),
            Some(_) => {
                return vec![CallAction::other(
                    "the arguments are a text that holds no object",
                )];
            }
        },
    };
    vec![mcp::tool_with(Some(server), tool, &arguments)]
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClineOutput<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    override_input: Option<&'d RawValue>,
}

/// Returns the answer. Cline reads the JSON at any exit code.
pub(crate) fn answer(decision: &AgentDecision<'_>) -> HookReply {
    HookReply::json(&match decision {
        AgentDecision::Nothing => ClineOutput::default(),
        AgentDecision::Allow(input) => ClineOutput {
            override_input: *input,
            ..ClineOutput::default()
        },
        AgentDecision::Ask(reason) | AgentDecision::Deny(reason) => ClineOutput {
            cancel: Some(true),
            error_message: Some(reason),
            override_input: None,
        },
    })
}
