//! What is typed into a background command, and what that would do: at a shell's prompt it is a command line, and judged as one.
//!
//! A shell gets whole lines of plain text, so that what is judged is what it reads: no key that edits a line, recalls an earlier one or
//! completes a name. What does not complete a command is judged again in front of what is typed next.

use haft::error::ToolError;
use haft::permission::Permission;
use haft::policy::CommandLine;
use haft::spec::Risk;
use haft_sandbox::{CommandTerminal, InputMode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::command::Commands;
use crate::command::keys::press;
use crate::command::prompts::reads_commands;
use crate::command::tasks::BackgroundTask;

/// The keys that have no effect on what a shell reads as a line, except to drop it.
const AT_A_SHELL: [&str; 2] = ["ctrl-c", "ctrl-d"];
/// Maximum bytes at a shell's prompt that do not complete a command.
const MAX_UNFINISHED: usize = 16 << 10;

/// What `command_input` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypedInput {
    /// The task, as `run_command` named it; it runs on a terminal.
    pub task: String,
    /// Text to type; a newline is the return key.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 16_000))]
    pub text: Option<String>,
    /// Keys to press after it: `enter`, `ctrl-c`, `up`, `tab`, `escape`, `f1`, …
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(min = 1, max = 100))]
    pub keys: Option<Vec<String>>,
    /// Then end its input, as ctrl-d does.
    #[serde(default)]
    pub close: bool,
    /// How long to wait for an answer, in seconds.
    #[serde(default = "moment")]
    #[schemars(range(min = 0, max = 600))]
    pub timeout_s: u64,
    /// Wait until new output matches this regular expression, such as a prompt.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 1_000))]
    pub pattern: Option<String>,
}

fn moment() -> u64 {
    5
}

/// Returns what typing this would do besides what the command itself may do.
///
/// # Errors
/// If a shell would get something other than whole lines of text.
pub(super) fn permissions(
    commands: &Commands,
    task: &BackgroundTask,
    input: &TypedInput,
) -> Result<Vec<Permission>, ToolError> {
    if !reads_commands(&task.command, task.argv.as_ref()) {
        return Ok(Vec::new());
    }
    check_shell_input(&task.command, input)?;
    let Some(text) = input.text.as_deref().filter(|text| !text.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let unfinished = task.unfinished.lock().clone();
    if unfinished.len() + text.len() > MAX_UNFINISHED {
        let message = format!(
            "{} bytes at the prompt do not complete a command, and haft judges at most {MAX_UNFINISHED}",
            unfinished.len()
        );
        return Err(ToolError::invalid_arguments(message).with_advice("press ctrl-c first"));
    }
    let mut wanted = commands.typed_permissions(text)?;
    if !unfinished.is_empty() {
        wanted.extend(commands.typed_permissions(&(unfinished + text))?);
    }
    Ok(wanted)
}

impl Commands {
    /// Returns the permissions for a line that a shell reads: it may be in any folder, with any variables, so no line is harmless.
    fn typed_permissions(&self, text: &str) -> Result<Vec<Permission>, ToolError> {
        let mut line = CommandLine::new(text.trim_end_matches('\n'));
        for part in &mut line.parts {
            part.risk = part.risk.max(Risk::High);
        }
        self.workspace_permissions(line, ".")
    }
}

fn check_shell_input(command: &str, input: &TypedInput) -> Result<(), ToolError> {
    let refused = |what: String| {
        let message = format!("{command:?} is a shell, or starts one: {what}");
        Err(ToolError::invalid_arguments(message)
            .with_advice("type whole lines, each ending with a newline, or press ctrl-c or ctrl-d"))
    };
    let text = input.text.as_deref().unwrap_or_default();
    if let Some(control) = text.chars().find(|c| c.is_control() && *c != '\n') {
        return refused(format!("text holds {control:?}, which edits the line"));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        return refused("text does not end with a newline".to_owned());
    }
    let keys = input.keys.iter().flatten();
    let mut other = keys.filter(|key| !AT_A_SHELL.contains(&key.as_str()));
    match other.next() {
        Some(key) => refused(format!("the key {key:?} edits or recalls a line")),
        None => Ok(()),
    }
}

/// Remembers what does not complete a command yet, once it is typed.
pub(super) fn remember(task: &BackgroundTask, input: &TypedInput) {
    if !reads_commands(&task.command, task.argv.as_ref()) {
        return;
    }
    let mut unfinished = task.unfinished.lock();
    if let Some(text) = &input.text {
        unfinished.push_str(text);
    }
    let line = unfinished.trim_end_matches('\n');
    // A line that cannot be read is one part: itself.
    let is_open = |line: &CommandLine| match line.parts.as_slice() {
        [part] => part.argv.is_none() && part.program().is_none(),
        _ => false,
    };
    let is_dropped = input.keys.iter().flatten().any(|key| key == "ctrl-c");
    if is_dropped || line.trim().is_empty() || !is_open(&CommandLine::new(line)) {
        unfinished.clear();
    }
}

/// Returns the bytes to type: the text, then the keys.
///
/// # Errors
/// If a key is unknown, or the program reads lines and would get only the beginning of one.
pub(super) fn bytes(input: &TypedInput, terminal: &CommandTerminal) -> Result<Vec<u8>, ToolError> {
    let mode = terminal.input_mode();
    let InputMode { lines, returns } = mode.unwrap_or(InputMode {
        lines: false,
        returns: true,
    });
    let enter = if lines && !returns { b'\n' } else { b'\r' };
    let mut out = Vec::new();
    for byte in input.text.as_deref().unwrap_or_default().bytes() {
        out.push(if byte == b'\n' { enter } else { byte });
    }
    let longest = out.split(|byte| *byte == enter).map(<[u8]>::len).max();
    if lines && longest > Some(CommandTerminal::LONGEST_LINE) {
        let message = format!(
            "text: a line of {} bytes, and the program gets at most {} of a line",
            longest.unwrap_or_default(),
            CommandTerminal::LONGEST_LINE
        );
        return Err(ToolError::invalid_arguments(message)
            .with_advice("write long input to a file that the command reads"));
    }
    for key in input.keys.iter().flatten() {
        press(key, enter, &mut out)?;
    }
    Ok(out)
}
