//! `ForeignTool`: a tool of a coding agent, judged and recorded here and run by the agent: a call of it ends when the agent says so.

use std::sync::Arc;

use haft::arguments::Arguments;
use haft::context::CallContext;
use haft::error::{ErrorKind, ToolError};
use haft::future::BoxFuture;
use haft::permission::{Condition, Effect, Permission};
use haft::result::ToolResult;
use haft::spec::{FOREIGN, Overflow, Risk, ToolSpec};
use haft::tool::Tool;
use haft::untrusted::SERVER_EFFECT;
use haft_builtins::outside::Outside;
use haft_hook::{Action, Agent, Change, Command, Report, Status};
use serde_json::json;
use serde_json::value::RawValue;

use crate::hook::kept_run::SameCall;
use crate::hook::location::Doubt;
use crate::hook::name::Named;
use crate::hook::open_call::{About, CallInRun, OpenCalls};

/// Tokens of a result that the record keeps: the agent has the whole.
const RESULT: usize = 2_000;
/// The kind of the effect of a tool of which nothing is known.
const UNKNOWN: &str = "agent-tool";
/// The words of Claude Code, and of agents after its model, for a call that was refused at the prompt, where they report it as one that
/// failed. Mostly they report nothing.
const REJECTIONS: [&str; 2] = [
    "The user doesn't want to proceed with this tool use",
    "The tool use was rejected",
];

/// A tool of an agent.
#[derive(Debug)]
pub(super) struct ForeignTool {
    spec: Arc<ToolSpec>,
    agent: Agent,
    /// As the agent names it.
    tool: String,
    is_jailed: bool,
    outside: Arc<Outside>,
    calls: Arc<OpenCalls>,
    /// Whether the agent's later events come to this process.
    follows: bool,
}

/// What the tools of a session have in common.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) agent: Agent,
    pub(super) outside: Arc<Outside>,
    pub(super) calls: Arc<OpenCalls>,
    pub(super) follows: bool,
}

impl ForeignTool {
    /// The agent's tool of this name.
    pub(super) fn new(named: &Named, tool: &str, at: Surroundings) -> Self {
        let agent = at.agent;
        let open = named.is_open_world();
        let spec = ToolSpec {
            title: Some(format!("{}: {tool}", agent.title())),
            risk: Risk::Safe,
            class: named.class,
            concurrency_safe: true,
            open_world: open,
            category: Some("agents".to_owned()),
            overflow: Some(Overflow::Clip),
            inline_tokens: Some(RESULT),
            source: format!("{FOREIGN}{}", agent.name()),
            ..ToolSpec::new(
                named.name.clone(),
                format!("A tool of {} that it runs itself.", agent.title()),
                json!({"type": "object"}),
            )
        };
        Self {
            spec: Arc::new(spec),
            agent,
            tool: tool.to_owned(),
            is_jailed: named.is_jailed,
            outside: at.outside,
            calls: at.calls,
            follows: at.follows,
        }
    }

    /// What a call does, stated for the policy.
    pub(super) fn wanted(&self, about: &About) -> Result<Vec<Permission>, ToolError> {
        // The doubts come first: of several effects that are asked about the first gives the reason.
        let mut all = about.doubtful();
        for action in &*about.actions {
            all.extend(self.stated(action, Some(&about.folder))?);
        }
        Ok(all)
    }

    /// What one thing that a call does is to the policy.
    fn stated(&self, action: &Action, cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        Ok(match action {
            Action::Command(command) => return self.command(command, cwd),
            // A search names its folder so, too.
            Action::Read { path } => self.outside.search(path, cwd)?,
            Action::Edit { path, change } => {
                let removes = *change == Change::Remove;
                self.outside.change(path, cwd, removes)?
            }
            Action::Fetch { url } => vec![self.outside.fetch(url)?],
            Action::Mcp { server, .. } => {
                let server = server.as_deref().unwrap_or("a server without a name");
                vec![unknown(SERVER_EFFECT, server)]
            }
            Action::Note => Vec::new(),
            // What comes with a newer version is not known either.
            _ => vec![unknown(UNKNOWN, &self.tool)],
        })
    }

    fn command(&self, command: &Command, cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let cwd = command.cwd.as_deref().or(cwd);
        let mut all = match (&command.line, &command.argv) {
            (Some(line), _) => self.outside.line(line, cwd)?,
            (None, Some(words)) => self.outside.argv(words, cwd)?,
            (None, None) => Vec::new(),
        };
        if command.why_unknown.is_some() || all.is_empty() {
            all.push(unknown(UNKNOWN, &self.tool));
        }
        Ok(all)
    }

    /// What a report makes of a call, about which the agent's prompt asked first or not.
    fn result(&self, report: &Report, prompted: bool) -> Result<ToolResult, ToolError> {
        let agent = self.agent.title();
        let text = report.result.as_deref().map_or_else(String::new, text);
        let said = json!({
            "reported_by": agent,
            "duration_ms": report.duration_ms,
        });
        let result = ToolResult::text(text).with_data(&said)?;
        let error = report.error.as_deref();
        let status = match report.status {
            Status::Failed if prompted && error.is_some_and(is_rejection) => Status::Refused,
            status => status,
        };
        let (kind, what) = match status {
            Status::Ok => return Ok(result),
            // Agents do not tell a refusal of their user's from one of their own rules.
            Status::Refused if prompted => (
                ErrorKind::Denied,
                format!(
                    "the prompt of {agent} asked about this call, and {agent} says that it did not run: its user refused it, or a rule of its own"
                ),
            ),
            Status::Failed if prompted => (
                ErrorKind::Failed,
                format!(
                    "the prompt of {agent} asked about this call, and {agent} says that it failed, and not whether its user refused it"
                ),
            ),
            Status::Failed => (ErrorKind::Failed, format!("{agent} says that it failed")),
            Status::Interrupted => (
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

    /// Why it is not known how a call ended.
    fn unheard(&self, prompted: bool) -> ToolError {
        let agent = self.agent.title();
        ToolError::unavailable(if prompted {
            format!(
                "the prompt of {agent} asked about this call, and {agent} has not said what came of it: its user may have refused it, or it may have run"
            )
        } else {
            format!("{agent} has not said how the call ended: it may have run")
        })
    }
}

impl About {
    /// What a person has to look at first.
    fn doubtful(&self) -> Vec<Permission> {
        let doubts = self.doubts.iter().map(Doubt::to_effect);
        doubts.map(|(kind, value)| unknown(kind, &value)).collect()
    }
}

/// Whether an agent speaks so of a call that did not run because its user, or what stands for them, refused it.
fn is_rejection(error: &str) -> bool {
    REJECTIONS.iter().any(|words| error.contains(words))
}

/// A result as a text: a string without its quotes, other JSON as it came.
fn text(result: &RawValue) -> String {
    serde_json::from_str(result.get()).unwrap_or_else(|_| result.get().to_owned())
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

    fn permissions(&self, arguments: &Arguments) -> Result<Vec<Permission>, ToolError> {
        let about = self
            .calls
            .about(self.spec.name.as_str(), arguments.as_str());
        match about {
            // What it does is judged where it runs, by the same policy.
            Some(about) if self.is_jailed => Ok(about.doubtful()),
            Some(about) => self.wanted(&about),
            // Nothing is known of it but its input.
            None => Ok(vec![unknown(UNKNOWN, &self.tool)]),
        }
    }

    fn conditions(&self, _arguments: &Arguments) -> Vec<Condition> {
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

    fn call<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let agent = self.agent.title();
            let same = SameCall {
                tool: self.spec.name.as_str(),
                arguments: arguments.as_str(),
            };
            let by = CallInRun {
                run: context.run(),
                call: context.call_id(),
                approved: context.is_approved(),
            };
            let cleared = self.calls.clear(same, by);
            let cleared = cleared.ok_or_else(|| {
                ToolError::conflict(format!("{agent} does not wait for this call any more"))
                    .with_advice("make the call again")
            })?;
            if !self.follows {
                let left = if cleared.prompted {
                    format!("left to the prompt of {agent}; what came of it is not known here")
                } else {
                    format!("left to {agent}: whether it ran, and how it ended, is not known here")
                };
                return Ok(ToolResult::text(left));
            }
            let prompted = cleared.prompted;
            match cleared.ended.await {
                Ok(report) => self.result(&report, prompted),
                Err(_) => Err(self.unheard(prompted)),
            }
        })
    }
}
