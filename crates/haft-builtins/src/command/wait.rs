//! `await_command` and `kill_command`: wait for a background task, or end it.

use std::sync::Arc;
use std::time::Duration;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::Permission;
use haft::result::ToolResult;
use haft::spec::{Risk, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft_sandbox::{Log, RunningCommand, WaitOutcome};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::command::launch::Commands;
use crate::command::output::{Cursor, follow, show};
use crate::command::tasks::BackgroundTask;
use crate::command::{COMMANDS, CommandData, result, run_permission, within};
use crate::describe::{builtin, known_as, writes};

/// How far before newly arrived output a match may begin, in bytes.
const MATCH_OVERLAP: u64 = 16 << 10;
/// Maximum output searched for the pattern at a time, in bytes.
const SEARCH_WINDOW: usize = 1 << 20;

/// What `await_command` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwaitCommandInput {
    /// The task, as `run_command` named it.
    pub task: String,
    /// How long to wait, in seconds; the command keeps running afterwards.
    #[serde(default = "longest")]
    #[schemars(range(min = 0, max = 600))]
    pub timeout_s: u64,
    /// Return as soon as new output matches this regular expression.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 1_000))]
    pub pattern: Option<String>,
}

fn longest() -> u64 {
    600
}

/// What `kill_command` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillCommandInput {
    /// The task, as `run_command` named it.
    pub task: String,
}

/// The tool `await_command`.
#[derive(Debug)]
pub struct AwaitCommand(pub Arc<Commands>);

impl TypedTool for AwaitCommand {
    const NAME: &'static str = "await_command";
    const DESCRIPTION: &'static str = "Wait for a background task to end, or for new output that matches pattern. Waits at most 600 s \
        (timeout_s). Returns the output since the last wait, each byte once. data.task is present while the \
        task runs.";
    type Input = AwaitCommandInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<CommandData>(spec, COMMANDS), Risk::High);
        ToolSpec {
            // Other calls of the session continue meanwhile.
            concurrency_safe: true,
            ..known_as(spec, &["wait"])
        }
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(intent(&self.0, &input.task))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let task = self.0.tasks.of(context.run(), &input.task)?;
        cleared(&self.0, &task, context)?;
        let pattern = input.pattern.as_deref().map(matcher).transpose()?;
        let deadline = within(context, Duration::from_secs(input.timeout_s));
        let mut shown = task.shown.lock().await;
        let (running, progress) = (&task.started.running, context.progress());
        let (exit, matched) = match pattern {
            None => {
                let followed = follow(running, &mut shown.screen, context, deadline).await;
                (followed.exit(), None)
            }
            Some(pattern) => {
                let mut seen = PatternScan::new(pattern, shown.reported);
                let waited = tokio::select! {
                    biased;
                    waited = running.wait_for(|running| seen.matches(running), deadline) => waited,
                    _ = context.ending() => WaitOutcome::TimedOut,
                };
                let exit = match &waited {
                    WaitOutcome::Ended(exit) => Some(exit.clone()),
                    _ => running.exit(),
                };
                show(running, &mut shown.screen, &progress);
                (exit, Some(waited == WaitOutcome::Matched))
            }
        };
        let of = CommandData::of(&task.started, &mut shown.reported, exit.as_ref(), context);
        let (mut data, kept) = of.await?;
        data.matched_pattern = matched;
        if exit.is_none() {
            data = data.with_running_task(&task);
        }
        result(&data, kept, &task.started, exit.as_ref())
    }
}

/// The tool `kill_command`; off unless `run_command` is on.
#[derive(Debug)]
pub struct KillCommand(pub Arc<Commands>);

impl TypedTool for KillCommand {
    const NAME: &'static str = "kill_command";
    const DESCRIPTION: &'static str =
        "End a background task and everything it started. Returns the output since the last wait.";
    type Input = KillCommandInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<CommandData>(spec, COMMANDS), Risk::High);
        ToolSpec {
            // It must be able to end a task that another call is waiting for.
            concurrency_safe: true,
            ..known_as(spec, &["stop", "terminate"])
        }
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(intent(&self.0, &input.task))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let task = self.0.tasks.of(context.run(), &input.task)?;
        cleared(&self.0, &task, context)?;
        task.started.running.kill();
        let exit = task.started.running.wait().await;
        let mut shown = task.shown.lock().await;
        show(
            &task.started.running,
            &mut shown.screen,
            &context.progress(),
        );
        let of = CommandData::of(&task.started, &mut shown.reported, Some(&exit), context);
        let (data, kept) = of.await?;
        let mut result = ToolResult::data(&data)?;
        result.artifacts = kept;
        result.strength = Some(task.started.strength());
        Ok(result.with_summary(format!("{} has ended", task.id)))
    }
}

/// Returns the intent to start the command, so that a rule for the command also covers waiting for it. A call that names no task fails.
fn intent(commands: &Commands, task: &str) -> Intent {
    match commands.tasks.any(task) {
        Some(task) => Intent::of([task_permission(commands, &task)]),
        None => Intent::call_only(),
    }
}

pub(super) fn task_permission(commands: &Commands, task: &BackgroundTask) -> Permission {
    let (command, argv) = (task.command.clone(), task.argv.clone());
    run_permission(command, argv, commands.jailed(), Risk::High)
}

/// Fails if the call was judged before this task existed.
fn cleared(
    commands: &Commands,
    task: &BackgroundTask,
    context: &CallContext,
) -> Result<(), ToolError> {
    context.cleared(&task_permission(commands, task).effect)
}

pub(super) fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20);
    builder
        .build(pattern)
        .map_err(|e| ToolError::invalid_arguments(format!("pattern: {e}")))
}

/// Searches for a pattern in output as it arrives, without searching old output again.
pub(super) struct PatternScan {
    pattern: RegexMatcher,
    from: Cursor,
    looked: Cursor,
}

impl PatternScan {
    pub(super) fn new(pattern: RegexMatcher, from: Cursor) -> Self {
        Self {
            pattern,
            from,
            looked: from,
        }
    }

    pub(super) fn matches(&mut self, running: &RunningCommand) -> bool {
        let Self {
            pattern,
            from,
            looked,
        } = self;
        // A prompt is a line that is not complete.
        let drawn = running
            .terminal()
            .filter(|terminal| terminal.written() > from.drawn);
        let prompts = drawn.is_some_and(|terminal| {
            let line = terminal.line();
            pattern.is_match(line.as_bytes()).unwrap_or(false)
        });
        prompts
            || has_match(pattern, running.stdout(), from.out, &mut looked.out)
            || has_match(pattern, running.stderr(), from.err, &mut looked.err)
    }
}

fn has_match(pattern: &RegexMatcher, log: &Log, from: u64, looked: &mut u64) -> bool {
    let mut at = from.max(looked.saturating_sub(MATCH_OVERLAP));
    loop {
        let chunk = log.read(at, SEARCH_WINDOW);
        if pattern.is_match(&chunk.bytes).unwrap_or(false) {
            return true;
        }
        *looked = chunk.next;
        if chunk.next >= log.total() || chunk.bytes.is_empty() {
            return false;
        }
        at = from.max(chunk.next.saturating_sub(MATCH_OVERLAP));
    }
}
