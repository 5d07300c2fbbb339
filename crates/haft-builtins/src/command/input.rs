//! `command_input`: types into a background command that runs on a terminal, and returns what it answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::context::CallContext;
use haft::error::ToolError;
use haft::result::ToolResult;
use haft::spec::{Risk, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft_sandbox::{CommandTerminal, RunningCommand, WaitOutcome};

use crate::command::launch::Commands;
use crate::command::output::show;
use crate::command::tasks::BackgroundTask;
use crate::command::typed::{self, TypedInput};
use crate::command::wait::{PatternScan, matcher, task_permission};
use crate::command::{COMMANDS, CommandData, result, within};
use crate::describe::{builtin, known_as, writes};

/// How long to try to type if the command does not read what is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// The command is taken to have answered once it wrote something and then nothing for this long.
const QUIET: Duration = Duration::from_millis(300);

/// The tool `command_input`.
#[derive(Debug)]
pub struct CommandInput(pub Arc<Commands>);

impl TypedTool for CommandInput {
    const NAME: &'static str = "command_input";
    const DESCRIPTION: &'static str = "Type into a background task that runs on a terminal (tty), such as a REPL. Returns its new \
        output once it is quiet, or matches pattern. A shell gets whole lines, which are judged as commands.";
    type Input = TypedInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<CommandData>(spec, COMMANDS), Risk::High);
        ToolSpec {
            // It must be able to answer a task that another call is waiting for.
            concurrency_safe: true,
            ..known_as(spec, &["type", "stdin", "send keys"])
        }
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        let Some(task) = self.0.tasks.any(&input.task) else {
            return Ok(Intent::call_only());
        };
        let mut all = vec![task_permission(&self.0, &task)];
        all.extend(typed::permissions(&self.0, &task, input)?);
        Ok(Intent::of(all))
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let task = self.0.tasks.of(context.run(), &input.task)?;
        let pattern = input.pattern.as_deref().map(matcher).transpose()?;
        let terminal = open_terminal(&task)?;
        let before = terminal.written();
        self.type_in(&input, &task, context).await?;
        let deadline = within(context, Duration::from_secs(input.timeout_s));
        let running = &task.started.running;
        // While another call waits for this task, that call returns the output.
        let Ok(mut shown) = task.shown.try_lock() else {
            let data = CommandData::default().with_running_task(&task);
            let mut result = result(&data, Vec::new(), &task.started, None)?;
            result
                .notes
                .push("another call waits for this task, and returns its output".into());
            return Ok(result);
        };
        let mut matched = None;
        if let Some(pattern) = pattern {
            let mut seen = PatternScan::new(pattern, shown.reported);
            let waited = tokio::select! {
                biased;
                waited = running.wait_for(|running| seen.matches(running), deadline) => waited,
                _ = context.ending() => WaitOutcome::TimedOut,
            };
            matched = Some(waited == WaitOutcome::Matched);
        } else {
            tokio::select! {
                biased;
                () = answer(running, before, deadline) => {}
                _ = context.ending() => {}
            }
        }
        show(running, &mut shown.screen, &context.progress());
        let exit = running.exit();
        let of = CommandData::of(&task.started, &mut shown.reported, exit.as_ref(), context);
        let (mut data, kept) = of.await?;
        data.matched_pattern = matched;
        if exit.is_none() {
            data = data.with_running_task(&task);
        }
        result(&data, kept, &task.started, exit.as_ref())
    }
}

impl CommandInput {
    /// Types the input if it is still what was judged.
    async fn type_in(
        &self,
        input: &TypedInput,
        task: &BackgroundTask,
        context: &CallContext,
    ) -> Result<(), ToolError> {
        // One call after the other, so that no text gets into another one.
        let _typing = task.typing.lock().await;
        context.cleared(&task_permission(&self.0, task).effect)?;
        for wanted in typed::permissions(&self.0, task, input)? {
            context.cleared(&wanted.effect)?;
        }
        let terminal = open_terminal(task)?;
        let bytes = typed::bytes(input, terminal)?;
        if bytes.is_empty() && !input.close {
            return Err(ToolError::invalid_arguments("give text, keys or close"));
        }
        if let Some(connections) = task.started.connected.connections() {
            connections.begin_anew();
        }
        let deadline = Instant::now() + PATIENCE;
        let count = terminal.input(&bytes, deadline).await;
        let count = count.map_err(|_| ended(task))?;
        typed::remember(task, input);
        let mut closed = !input.close;
        if input.close && count == bytes.len() {
            closed = terminal
                .end_input(deadline)
                .await
                .map_err(|_| ended(task))?
                == 1;
        }
        if count < bytes.len() || !closed {
            let message = format!(
                "typed {count} of {} bytes: the command does not read its input, whose buffer is full",
                bytes.len()
            );
            return Err(ToolError::failed(message)
                .with_advice("wait for it with await_command, or press ctrl-c"));
        }
        Ok(())
    }
}

/// Returns the terminal of a task that can read.
fn open_terminal(task: &BackgroundTask) -> Result<&CommandTerminal, ToolError> {
    let Some(terminal) = task.started.running.terminal() else {
        let message = format!("{} reads no input: it does not run on a terminal", task.id);
        return Err(ToolError::failed(message)
            .with_advice("start it with run_command, tty={} and background=true"));
    };
    match task.started.running.exit() {
        Some(_) => Err(ended(task)),
        None => Ok(terminal),
    }
}

fn ended(task: &BackgroundTask) -> ToolError {
    let how = match task
        .started
        .running
        .exit()
        .map(|exit| (exit.code, exit.signal))
    {
        Some((Some(code), _)) => format!("exit code {code}"),
        Some((None, Some(signal))) => format!("ended by signal {signal}"),
        _ => "just now".to_owned(),
    };
    ToolError::failed(format!("{} has ended ({how}): nothing was typed", task.id))
        .with_advice("await_command returns the rest of its output")
}

/// Waits until the command has written something since `before` and is quiet, has ended, or `deadline` has passed.
async fn answer(running: &RunningCommand, before: u64, deadline: Instant) {
    let written = |running: &RunningCommand| running.terminal().map_or(0, CommandTerminal::written);
    let mut seen = before;
    let mut until = deadline;
    loop {
        let waited = running
            .wait_for(|running| written(running) > seen, until)
            .await;
        if waited != WaitOutcome::Matched || Instant::now() >= deadline {
            return;
        }
        seen = written(running);
        until = deadline.min(Instant::now() + QUIET);
    }
}
