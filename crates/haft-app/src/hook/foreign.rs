//! `ForeignTool`: a tool of a coding agent. haft judges and records a call of it, and the agent runs it; the call ends when the agent
//! reports its end.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::error::{ErrorKind, ToolError};
use haft::future::BoxFuture;
use haft::permission::{Condition, Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{FOREIGN, Overflow, Risk, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool};
use haft::untrusted::{SERVER_EFFECT, links_in};
use haft::workspace::Workspace;
use haft_builtins::outside::Outside;
use haft_hook::{Agent, AgentCommand, CallAction, CallReport, CallStatus, EditKind};
use serde_json::json;
use serde_json::value::RawValue;

use crate::hook::edited_files::EditedFiles;
use crate::hook::location::Doubt;
use crate::hook::open_call::{CallDetails, CallInRun, CallKey};
use crate::hook::open_calls::OpenAgentCalls;
use crate::hook::reading::ToolInterpretation;
use crate::hook::session_effects::{SessionEffects, changed_definitions};
use crate::hook::session_marks::SessionMarks;
use crate::problem::Problem;

/// Maximum number of tokens of a result that the record keeps. The agent has the whole result.
const RESULT: usize = 2_000;
/// The kind of effect of a tool that haft does not know.
const UNKNOWN: &str = "agent-tool";
/// What Claude Code and agents like it say where they report a call that was refused at the prompt as one that failed. Mostly they report
/// nothing.
const REJECTIONS: [&str; 2] = [
    "The user doesn't want to proceed with this tool use",
    "The tool use was rejected",
];

/// A tool of an agent.
#[derive(Debug)]
pub(super) struct ForeignTool {
    spec: Arc<ToolSpec>,
    agent: Agent,
    /// The agent's name of it.
    tool: String,
    is_jailed: bool,
    outside: Arc<Outside>,
    calls: Arc<OpenAgentCalls>,
    marks: Arc<SessionMarks>,
    /// Whether the agent's later events come to this process.
    follows: bool,
}

/// What the tools of a session have in common.
#[derive(Debug, Clone)]
pub(super) struct ForeignToolContext {
    pub(super) agent: Agent,
    pub(super) outside: Arc<Outside>,
    pub(super) calls: Arc<OpenAgentCalls>,
    pub(super) marks: Arc<SessionMarks>,
    pub(super) follows: bool,
}

impl ForeignTool {
    /// The tool that the agent calls `tool`, in one reading of that name.
    pub(super) fn new(reading: &ToolInterpretation, tool: &str, at: ForeignToolContext) -> Self {
        let agent = at.agent;
        let open = reading.is_open_world();
        let spec = ToolSpec {
            title: Some(format!("{}: {tool}", agent.title())),
            risk: Risk::Safe,
            class: reading.class,
            concurrency_safe: true,
            open_world: open,
            category: Some("agents".to_owned()),
            overflow: Some(Overflow::Clip),
            inline_tokens: Some(RESULT),
            source: format!("{FOREIGN}{}", agent.name()),
            ..ToolSpec::new(
                reading.name.clone(),
                format!("A tool of {} that it runs itself.", agent.title()),
                json!({"type": "object"}),
            )
        };
        Self {
            spec: Arc::new(spec),
            agent,
            tool: tool.to_owned(),
            is_jailed: reading.is_jailed,
            outside: at.outside,
            calls: at.calls,
            marks: at.marks,
            follows: at.follows,
        }
    }

    /// States what a call does, for the policy.
    pub(super) fn effects(&self, details: &CallDetails) -> Result<Vec<Permission>, ToolError> {
        // The doubts come first: of several effects that are asked about, the first gives the reason.
        let mut all = details.doubtful();
        for action in &*details.actions {
            all.extend(self.effects_of(action, Some(&details.folder))?);
        }
        Ok(all)
    }

    /// States one thing that a call does.
    fn effects_of(
        &self,
        action: &CallAction,
        cwd: Option<&str>,
    ) -> Result<Vec<Permission>, ToolError> {
        Ok(match action {
            CallAction::Command(command) => return self.command(command, cwd),
            // A search names its folder in the same way.
            CallAction::Read { path } => self.outside.search(path, cwd)?,
            CallAction::Edit { path, change } => {
                let removes = *change == EditKind::Remove;
                self.outside.change(path, cwd, removes)?
            }
            CallAction::Fetch { url } => vec![self.outside.fetch(url)?],
            CallAction::Mcp { server, .. } => {
                let server = server.as_deref().unwrap_or("a server without a name");
                vec![unknown(SERVER_EFFECT, server)]
            }
            CallAction::Note => Vec::new(),
            // An action of a newer version is unknown, too.
            _ => vec![unknown(UNKNOWN, &self.tool)],
        })
    }

    /// Returns what decides how a call runs, besides its input.
    fn conditions(&self) -> Vec<Condition> {
        let by = format!("{}, as it reports", self.agent.title());
        let sandbox = if self.is_jailed {
            "jail"
        } else {
            "none: no jail"
        };
        vec![
            Condition::new("run by", by),
            Condition::new("sandbox", sandbox),
        ]
    }

    fn command(
        &self,
        command: &AgentCommand,
        cwd: Option<&str>,
    ) -> Result<Vec<Permission>, ToolError> {
        let cwd = command.cwd.as_deref().or(cwd);
        let mut all = match (&command.line, &command.argv) {
            (Some(line), _) => self.outside.line(line, cwd)?,
            (None, Some(words)) => self.outside.argv(words, cwd)?,
            (None, None) => Vec::new(),
        };
        if command.why_unknown.is_some() || all.is_empty() {
            all.push(unknown(UNKNOWN, &self.tool));
        }
        all.extend(changed_definitions(&self.marks, &all));
        Ok(all)
    }

    /// Returns the result of a call that the agent reports. `prompted` is whether the agent's prompt asked first.
    fn result(&self, report: &CallReport, prompted: bool) -> Result<ToolResult, ToolError> {
        let agent = self.agent.title();
        let text = report.result.as_deref().map_or_else(String::new, text);
        let data = json!({
            "reported_by": agent,
            "duration_ms": report.duration_ms,
        });
        let result = ToolResult::text(text).with_data_for_programs(&data)?;
        let error = report.error.as_deref();
        let status = match report.status {
            CallStatus::Failed if prompted && error.is_some_and(is_rejection) => {
                CallStatus::Refused
            }
            status => status,
        };
        let (kind, what) = match status {
            CallStatus::Ok => return Ok(result),
            // Agents do not tell a refusal by their user from one by a rule of their own.
            CallStatus::Refused if prompted => (
                ErrorKind::Denied,
                format!(
                    "the prompt of {agent} asked about this call, and {agent} says that it did not run: its user refused it, or a rule of its own"
                ),
            ),
            CallStatus::Failed if prompted => (
                ErrorKind::Failed,
                format!(
                    "the prompt of {agent} asked about this call, and {agent} says that it failed, but not whether its user refused it"
                ),
            ),
            CallStatus::Failed => (ErrorKind::Failed, format!("{agent} says that it failed")),
            CallStatus::Interrupted => (
                ErrorKind::Cancelled,
                format!("{agent} says that it was interrupted"),
            ),
            _ => (
                ErrorKind::Denied,
                format!("{agent} says that it did not run"),
            ),
        };
        let message = match error {
            Some(error) => format!("{what}: {error}"),
            None => what,
        };
        Ok(result.with_error(ToolError::new(kind, message)))
    }

    /// The error of a call whose end the agent has not reported.
    fn missing_report(&self, prompted: bool) -> ToolError {
        let agent = self.agent.title();
        ToolError::unavailable(if prompted {
            format!(
                "the prompt of {agent} asked about this call, and {agent} has not reported how it ended: its user may have refused it, or it may have run"
            )
        } else {
            format!("{agent} has not said how the call ended: it may have run")
        })
    }
}

impl CallDetails {
    /// The effects that stand for what is uncertain about the call.
    fn doubtful(&self) -> Vec<Permission> {
        let doubts = self.doubts.iter().map(Doubt::to_effect);
        doubts.map(|(kind, value)| unknown(kind, &value)).collect()
    }
}

/// Whether an agent's error says that its user, or whatever decides for the user, refused the call.
fn is_rejection(error: &str) -> bool {
    REJECTIONS.iter().any(|words| error.contains(words))
}

/// Returns a result as text: a string without its quotes, other JSON as it came.
fn text(result: &RawValue) -> String {
    serde_json::from_str(result.get()).unwrap_or_else(|_| result.get().to_owned())
}

/// The error of a call whose effects on its session cannot be noted.
fn unnoted(problem: &Problem) -> ToolError {
    let error = ToolError::unavailable(problem.to_string());
    match problem.advice() {
        Some(advice) => error.with_advice(advice),
        None => error,
    }
}

fn unknown(kind: &str, value: &str) -> Permission {
    Permission {
        effect: Effect::Other {
            kind: kind.to_owned(),
            value: value.to_owned(),
        },
        risk: Risk::High,
    }
}

impl Tool for ForeignTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(ForeignCall {
            arguments: arguments.clone(),
            tool: self,
        }))
    }
}

/// A call of an agent's tool.
struct ForeignCall {
    tool: Arc<ForeignTool>,
    arguments: Arguments,
}

impl ForeignCall {
    fn key(&self) -> CallKey<'_> {
        CallKey {
            tool: self.tool.spec.name.as_str(),
            arguments: self.arguments.as_str(),
        }
    }
}

impl ForeignCall {
    /// Returns what the call would do.
    fn actions(&self) -> Arc<[CallAction]> {
        let details = self.tool.calls.details(self.key());
        details.map_or_else(Arc::default, |details| details.actions)
    }

    /// Returns what the call does to its session.
    fn session_effects(&self, context: &CallContext) -> SessionEffects {
        let tool = &self.tool;
        let permissions = context.judgement().permissions();
        SessionEffects::of(
            &tool.spec,
            &self.actions(),
            permissions,
            tool.outside.root(),
        )
    }

    /// Saves the files that the call edits, where its end will be known.
    async fn save_files(&self, context: &CallContext) -> Option<EditedFiles> {
        let tool = &self.tool;
        let is_here = tool.follows && !tool.is_jailed;
        let actions = is_here.then(|| self.actions())?;
        Some(EditedFiles::save(context, &tool.outside, &actions).await)
    }
}

impl PreparedCall for ForeignCall {
    fn intent(&self, depth: Depth) -> Result<Intent, ToolError> {
        let tool = &self.tool;
        let permissions = match tool.calls.details(self.key()) {
            // What it does is judged where it runs, by the same policy.
            Some(details) if tool.is_jailed => details.doubtful(),
            Some(details) => tool.effects(&details)?,
            // Nothing is known about the call but its input.
            None => vec![unknown(UNKNOWN, &tool.tool)],
        };
        Ok(Intent::of(permissions).with_conditions(depth, || tool.conditions()))
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let tool = &self.tool;
            let agent = tool.agent.title();
            let does = self.session_effects(context);
            // Before the agent may act: another of its hooks may be judged at once, and no report of the end need come.
            does.note(&tool.marks)
                .map_err(|problem| unnoted(&problem))?;
            context.note_untrusted(does.read().to_vec());
            let edited = self.save_files(context).await;
            let by = CallInRun {
                run: context.run(),
                call: context.call_id(),
            };
            let cleared = tool.calls.clear(self.key(), by, context.is_approved());
            let cleared = cleared.ok_or_else(|| {
                ToolError::conflict(format!("{agent} no longer waits for this call"))
                    .with_advice("make the call again")
            })?;
            if context.is_approved() {
                does.note_approved(&tool.marks);
            }
            if !tool.follows {
                let left = if cleared.is_prompted {
                    format!("left to the prompt of {agent}; haft does not know how it ended")
                } else {
                    format!("left to {agent}; haft does not know whether it ran or how it ended")
                };
                return Ok(ToolResult::text(left));
            }
            let prompted = cleared.is_prompted;
            let report = cleared.report.await;
            if let Some(edited) = edited {
                edited.record().await;
            }
            match report {
                Ok(report) => {
                    if prompted && report.status == CallStatus::Ok {
                        does.note_approved(&tool.marks);
                    }
                    if does.shows_strangers_alone() {
                        let shown = report.result.as_deref().map_or_else(String::new, text);
                        tool.marks
                            .note_links(links_in(&shown, self.arguments.as_str()));
                    }
                    tool.result(&report, prompted)
                }
                Err(_) => Err(tool.missing_report(prompted)),
            }
        })
    }
}
