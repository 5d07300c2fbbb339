//! `run_command` and the tools for its background tasks: commands in the jail, in the foreground and in the background.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::context::CallContext;
use haft::error::{ErrorKind, ToolError};
use haft::permission::{Effect, Permission};
use haft::result::{Artifact, ToolResult};
use haft::spec::{Risk, Suspension, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft::workspace::Workspace;
use haft_sandbox::{Exit, RunningCommand};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod changes;
mod agent;
mod cannot_work;
mod denied_folders;
mod connect;
mod connections;
mod copy;
mod covers;
mod expose;
pub(crate) mod git;
mod git_changes;
mod git_command;
mod foreign_owner;
mod git_elsewhere;
mod git_folders;
mod git_scope;
mod git_reading;
mod git_sections;
mod git_user;
mod git_worktrees;
mod hard_links;
pub(crate) mod index;
mod input;
mod keys;
mod launch;
mod left_behind;
mod linked_names;
mod listed;
mod login_decisions;
pub mod meaning;
mod named_programs;
mod network;
mod output;
mod packages;
mod prompts;
mod said_notes;
mod screen;
mod surroundings;
mod secrets;
mod serving;
mod shell_end;
pub mod shown_git;
mod sign;
mod sockets;
mod signing;
mod start;
mod tasks;
mod think_clock;
mod trusted;
mod typed;
mod variables;
mod wait;
mod walk;

pub use denied_folders::DeniedFolders;
pub use expose::ExposePort;
pub use git::program_section;
pub use input::CommandInput;
pub use launch::Commands;
pub use network::CommandNetwork;
pub use packages::{REGISTRIES, packages_of};
pub use said_notes::is_standing_note;
pub use screen::CommandScreen;
pub use surroundings::CommandSurroundings;
pub use trusted::AUTHORITY_VARIABLES;
pub use typed::TypedInput;
pub use wait::{AwaitCommand, KillCommand};

use crate::command::changes::{AppliedChange, UnappliedChange};
use crate::command::connections::enforce_timeout;
use crate::command::network::CommandConnections;
use crate::command::output::{CommandWait, Cursor, OutputCursors, follow, tell};
use crate::command::screen::ClientInput;
use crate::command::shown_git::UnseenGit;
use crate::command::start::NotStarted;
use crate::command::tasks::{BackgroundTask, NewTask};
use crate::describe::{builtin, known_as, writes};
use crate::services::Membership;

/// The name of the bundle, and the category of its tools.
pub(crate) const COMMANDS: &str = "commands";
/// Maximum fraction of a call's time for waiting on a command that outlives the call; the call returns its output so far.
const WAIT_PART: f64 = 0.95;

/// Maximum time to wait for decisions about one command's connections; the call's own limits end it sooner.
const MAX_DECISION_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// What `run_command` takes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommandInput {
    /// A command line. Without shell syntax it runs directly, else in a shell. Give this or `argv`.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 100_000))]
    pub command: Option<String>,
    /// Program and arguments, run without a shell.
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(min = 1, max = 10_000))]
    pub argv: Option<Vec<String>>,
    /// The folder to start in, below the workspace.
    #[serde(default = "crate::search::list::root")]
    pub cwd: String,
    /// Variables besides `PATH`, `HOME`, `TMPDIR`, `LANG`, `TERM`; no others are passed from the host.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How long to wait, in seconds.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 43_200))]
    pub timeout_s: u64,
    /// Return at once with a task to wait for.
    #[serde(default)]
    pub background: bool,
    /// After `timeout_s`: end the command and everything it started, or continue it as a task.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// Run it on a terminal; `{}` has 24 rows and 80 cols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CommandScreen")]
    pub tty: Option<CommandScreen>,
}

fn default_timeout() -> u64 {
    30
}

/// What happens to a command that takes too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// End it.
    #[default]
    Kill,
    /// Continue it in the background.
    Detach,
}

/// What the command tools give.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandData {
    /// The exit code, if the command ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Its output since the last call that returned it. Long output is returned in part and stored whole as an artifact.
    pub stdout: String,
    /// The same for stderr.
    pub stderr: String,
    /// Total bytes written to stdout so far.
    pub stdout_bytes: u64,
    /// Whether output was lost: haft keeps the first 256 MiB of each stream.
    pub truncated: bool,
    /// The task, while the command runs in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How long to wait for it next, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_timeout_s: Option<u64>,
    /// Places that it connected to, where each connection is judged by itself. Not in the schema, whose names models pay for:
    /// it is there for people, in results and with the changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub network_reached: Vec<String>,
    /// Connections that were refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_refused: Vec<String>,
    /// Whether the output matched the pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched_pattern: Option<bool>,
}

/// What `run_command` gives.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunData {
    /// Its output, and how it ended.
    #[serde(flatten)]
    pub command: CommandData,
    /// What it changed in the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<AppliedChange>,
    /// How many more files it added or modified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_changes: Option<u64>,
    /// How many files and folders it left as they were, but for the time of their last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touched: Option<u64>,
    /// Changes on its copy of the workspace that were not applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<UnappliedChange>,
}

impl CommandData {
    /// Returns the output since the cursor and the exit, if there is one, with the artifacts that hold long output.
    async fn of(
        started: &LaunchedCommand,
        shown: &mut Cursor,
        exit: Option<&Exit>,
        context: &CallContext,
    ) -> Result<(Self, Vec<Artifact>), ToolError> {
        let running = &started.running;
        let new_output = tell(running, shown, context).await?;
        let data = Self {
            exit_code: exit.and_then(|exit| exit.code),
            signal: exit.and_then(|exit| exit.signal),
            stdout: new_output.stdout,
            stderr: new_output.stderr,
            stdout_bytes: running.stdout().total(),
            truncated: new_output.cut,
            network_reached: started.connected.reached_places(),
            network_refused: started.connected.refused(),
            ..Self::default()
        };
        Ok((data, new_output.artifacts))
    }

    /// Names the task that continues, and suggests a wait that grows with the task's age.
    fn with_running_task(mut self, task: &BackgroundTask) -> Self {
        let age = task.since.elapsed().as_secs();
        let wait = match age {
            0..30 => 30,
            30..300 => 120,
            _ => 300,
        };
        self.task = Some(task.id.clone());
        self.suggested_timeout_s = Some(wait);
        self
    }
}

/// Describes what happened to guarded paths while the command worked in the workspace itself; names only the first few.
fn guard_events(exit: &Exit) -> String {
    const MAX_SHOWN: usize = 5;
    let events = &exit.guard_events;
    let mut words: Vec<_> = events
        .iter()
        .take(MAX_SHOWN)
        .map(ToString::to_string)
        .collect();
    if events.len() > MAX_SHOWN {
        words.push(format!("and {} more", events.len() - MAX_SHOWN));
    }
    words.join("; ")
}

/// A started command and its network connections.
#[derive(Debug, Clone)]
pub(crate) struct LaunchedCommand {
    pub(crate) running: RunningCommand,
    pub(crate) connected: CommandConnections,
    /// True if the command may change the workspace directly.
    pub(crate) direct: bool,
    /// Keeps it among the commands of its run that reach each other's servers.
    pub(crate) membership: Option<Arc<Membership>>,
}

impl LaunchedCommand {
    /// Describes the command's confinement for its result.
    pub(crate) fn strength(&self) -> String {
        let strength = self.connected.strength(&self.running);
        if self.direct {
            format!("{strength}, changes direct")
        } else {
            strength
        }
    }
}

/// Builds the result of a command that ended, or that is still running if `exit` is `None`.
fn result(
    data: &CommandData,
    kept: Vec<Artifact>,
    started: &LaunchedCommand,
    exit: Option<&Exit>,
) -> Result<ToolResult, ToolError> {
    let mut result = ToolResult::data(data)?;
    result.artifacts = kept;
    result.strength = Some(started.strength());
    let Some(exit) = exit else {
        let task = data.task.as_deref().unwrap_or_default();
        return Ok(result.with_summary(format!("running as {task}")));
    };
    let took = exit.took.as_secs_f64();
    if exit.timed_out {
        let message =
            format!("the command was stopped after {took:.1} s, with everything it had started");
        let error = ToolError::new(ErrorKind::Timeout, message.clone())
            .with_advice("raise timeout_s, or use background=true or on_timeout=\"detach\"");
        return Ok(result.with_summary(message).with_error(error));
    }
    if exit.escaped_a_guard() {
        let message = format!("the command was stopped: {}", guard_events(exit));
        let error = ToolError::denied(message.clone())
            .with_advice("run it again while no other program writes these files");
        return Ok(result.with_summary(message).with_error(error));
    }
    if exit.over_memory {
        let (bound, limit) = started.running.memory();
        let limit = limit.map_or_else(String::new, |mib| format!("{mib} MiB of "));
        let message = format!(
            "the command was stopped: it and everything it had started used more than {limit}memory ({bound})"
        );
        let error = ToolError::failed(message.clone())
            .with_advice("make it do less at once: fewer processes, smaller inputs; the limit is the setting sandbox.memory_mb")
            .for_operator("raise sandbox.memory_mb");
        return Ok(result.with_summary(message).with_error(error));
    }
    let mut words = match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code} after {took:.1} s"),
        (None, Some(signal)) => format!("ended by signal {signal} after {took:.1} s"),
        (None, None) => format!("ended after {took:.1} s"),
    };
    if !exit.guard_events.is_empty() {
        words = format!("{words}; {}", guard_events(exit));
        result.notes.push(guard_events(exit));
    }
    if exit.success() {
        return Ok(result.with_summary(words));
    }
    let mut error = ToolError::failed(words.clone());
    let refused = data.network_refused.first().cloned();
    if let Some(advice) = refused.or_else(|| started.connected.hint(data)) {
        error = error.with_advice(advice);
    }
    if let Some(setting) = started.connected.allowing_setting(data) {
        error = error.for_operator(setting);
    }
    Ok(result.with_summary(words).with_error(error))
}

impl Commands {
    /// Builds the result of a command that did not start. If the program is to blame, it has the exit code that a shell would give.
    fn without_start(
        &self,
        not_started: NotStarted,
        input: &RunCommandInput,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let exit_code = not_started.exit_code();
        let error = not_started.into_error();
        if exit_code.is_none() {
            return Err(error);
        }
        let data = CommandData {
            exit_code,
            ..CommandData::default()
        };
        let words = error.message().to_owned();
        let result = ToolResult::data(&data)?
            .with_summary(words)
            .with_error(error);
        let notes = cannot_work::notes(input, &data);
        Ok(self.said.add(result, notes, context))
    }
}

/// Returns what to say about a command that has ended, also about what may have failed it if `failed` holds its data.
fn notes_of(
    git: UnseenGit,
    secrets: &[String],
    input: &RunCommandInput,
    failed: Option<&CommandData>,
) -> Vec<String> {
    let mut notes = git.notes(input, failed.is_some());
    if let Some(data) = failed {
        notes.extend(secrets::note(secrets, input, data));
        notes.extend(cannot_work::notes(input, data));
    }
    notes
}

/// The tool `run_command`.
#[derive(Debug)]
pub struct RunCommand(pub Arc<Commands>);

impl TypedTool for RunCommand {
    const NAME: &'static str = "run_command";
    const DESCRIPTION: &'static str = "Run a command in the workspace, in a jail. Its HTTP connections are judged one by one, and it can \
        write only the workspace and /tmp. Waits 30 s (timeout_s up to 600), then ends the command and \
        everything it started; with on_timeout=\"detach\" or background=true it continues as a task for \
        await_command. A non-zero exit is an error that includes the output. Prefer read_file, edit_file and \
        grep_files for files.";
    type Input = RunCommandInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        // The command determines the risk, so the permission states it.
        let spec = writes(builtin::<RunData>(spec, COMMANDS), Risk::Safe);
        ToolSpec {
            // Suspends after the run, so that the user can decide about the changes.
            suspension: Suspension::After,
            ..known_as(spec, &["bash", "shell", "exec", "terminal"])
        }
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(self.0.workspace())
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        self.0.intent(input, depth)
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let words = serde_json::to_string(&input).unwrap_or_default();
        if let Some(result) = self.0.resume_decision(&words, context).await {
            return result;
        }
        self.0.tasks.check_room_for(&input, context.run())?;
        let view = self.0.view(&input, &words, context).await?;
        let covers = self.0.covers(context, view.is_some()).await?;
        let unseen = secrets::hidden_secrets(&covers.guards, context);
        let (mut spec, mut connected) = self.0.spec(&input, view.as_ref(), covers, context)?;
        let group = self.0.share_loopback(&mut spec, &input, context).await?;
        let unseen_git = self.0.show_git(&mut spec, view.as_ref(), context);
        let gpg = self.0.surroundings.gpg.as_ref();
        let unseen_git = unseen_git.offer_gpg(&mut connected, gpg, &mut spec).await;
        let client = ClientInput::of(&input, context);
        let wait = client.prepare(&mut spec, &input, context);
        let note = client.note(&input);
        let direct = view.is_none() && self.0.changes_directly(&spec);
        // Ends with the command, which may outlive this call.
        let mut asking = connected.begin_asking();
        let (running, fed) = match self.0.start(spec, client).await {
            Ok(started) => started,
            Err(not_started) => return self.0.without_start(not_started, &input, context),
        };
        let started = LaunchedCommand {
            membership: group.and_then(|group| group.join(&running)),
            running,
            connected,
            direct,
        };
        let (exit, screen) = follow_command(&input, &started, context, wait).await;
        if exit.is_some() {
            start::finish(asking.take(), fed).await;
        }
        let mut cursor = Cursor::default();
        let (data, kept) = CommandData::of(&started, &mut cursor, exit.as_ref(), context).await?;
        if let Some(exit) = &exit {
            let result = result(&data, kept, &started, Some(exit))?;
            let failed = result.error.as_ref().map(|_| &data);
            let notes = notes_of(unseen_git, &unseen, &input, failed).into_iter();
            let owner = failed.and_then(|data| self.0.foreign_owner(data));
            let notes = notes.chain(owner).chain(left_behind::notes(exit));
            let mut result = self.0.said.add(result, notes, context);
            result.notes.extend(note);
            return self.0.settle(view, &input, result, context).await;
        }
        let (command, argv) = Commands::words(&input)?;
        let shown = OutputCursors::new(cursor, screen);
        let new = NewTask {
            command,
            argv,
            started: started.clone(),
            asking,
            shown,
        };
        let task = self.0.tasks.keep(context, new)?;
        serving::name_task(started.membership.as_ref(), &task.id).await;
        let mut result = result(&data.with_running_task(&task), kept, &started, None)?;
        result.notes.extend(note);
        Ok(result)
    }
}

impl RunCommandInput {
    /// Creates the input for a command line in the root of the workspace.
    pub(crate) fn from_line(command: &str) -> Self {
        Self {
            command: Some(command.to_owned()),
            argv: None,
            cwd: crate::search::list::root(),
            env: BTreeMap::new(),
            timeout_s: default_timeout(),
            background: false,
            on_timeout: OnTimeout::default(),
            tty: None,
        }
    }

    /// Creates the input for a program with arguments in the root of the workspace.
    pub(crate) fn of_argv(words: &[String]) -> Self {
        Self {
            command: None,
            argv: Some(words.to_vec()),
            ..Self::from_line("")
        }
    }

    /// Returns true if the command ends within the call.
    pub(crate) fn ends(&self) -> bool {
        self.on_timeout == OnTimeout::Kill && !self.background
    }
}

/// Returns the exit of a command, if it ended in time, and how much of its output was streamed to the client.
async fn follow_command(
    input: &RunCommandInput,
    started: &LaunchedCommand,
    context: &CallContext,
    wait: Duration,
) -> (Option<Exit>, Cursor) {
    let mut screen = Cursor::default();
    let (running, connections) = (&started.running, started.connected.connections());
    let exit = if input.background && context.is_attended() {
        let end = Instant::now() + context.limit();
        match follow(running, &mut screen, context, end).await {
            CommandWait::Ended(exit) => Some(exit),
            CommandWait::GoesOn => {
                running.kill();
                Some(running.wait().await)
            }
        }
    } else if input.background {
        None
    } else if input.ends() {
        // The sandbox enforces the timeout. Wait slightly longer, or without a limit if the command's clock can pause.
        let more = connections.map_or(Duration::from_secs(20), |_| MAX_DECISION_WAIT);
        let end = Instant::now() + wait + more;
        let followed = tokio::select! {
            followed = follow(running, &mut screen, context, end) => followed,
            () = enforce_timeout(connections, running, wait) => CommandWait::GoesOn,
        };
        match followed {
            CommandWait::Ended(exit) => Some(exit),
            CommandWait::GoesOn => {
                running.kill();
                Some(running.wait().await)
            }
        }
    } else {
        let end = within(context, wait);
        follow(running, &mut screen, context, end).await.exit()
    };
    (exit, screen)
}

/// Returns when to stop waiting for a command that outlives the call, which is before the call ends.
fn within(context: &CallContext, wait: Duration) -> Instant {
    Instant::now() + wait.min(context.limit().mul_f64(WAIT_PART))
}

/// Builds the permission to run these words.
fn run_permission(
    command: String,
    argv: Option<Vec<String>>,
    jailed: bool,
    risk: Risk,
) -> Permission {
    Permission {
        effect: Effect::Run {
            command,
            argv,
            jailed,
            on_copy: false,
        },
        risk,
    }
}
