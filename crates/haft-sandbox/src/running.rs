//! A started command: its logs, deadline and exit; and the task that serves it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use crate::StartError;
use crate::command::{CommandSpec, Network, Stdin};
use crate::guard_event::GuardEvent;
use crate::left_behind::LeftBehind;
use crate::loopback::JailLoopback;
use crate::memory::MemoryBound;
use crate::outlet::RunningOutlet;
use crate::output::Log;
use crate::spawn::{self, ResolvedCommand};
use crate::stream::{StreamReader, StreamSource};
use crate::strength::Strength;
use crate::terminal::CommandTerminal;
use crate::tree::ProcessTree;

/// How long output is still read after the tree was killed; only a process that left the tree of a
/// passthrough command can make use of it.
const DRAIN: Duration = Duration::from_millis(250);

/// How often the sandbox checks whether a control group is full.
const LOOK: Duration = Duration::from_millis(250);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it exited by itself.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Whether its deadline ended it.
    pub timed_out: bool,
    /// Whether it was killed by [`RunningCommand::kill`] or because the last handle was dropped.
    pub killed: bool,
    /// Whether it, or a process of its tree, was killed for exceeding
    /// [`ProcessLimits::memory_mb`](crate::ProcessLimits::memory_mb).
    pub over_memory: bool,
    /// How long it ran.
    pub took: Duration,
    /// What happened to guarded paths while it ran, if it worked in the live workspace.
    pub guard_events: Vec<GuardEvent>,
    /// What it left that ended with its jail.
    pub left: LeftBehind,
}

impl Exit {
    /// Returns whether it exited by itself with code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns whether it was killed because a guard could not hold it.
    pub fn escaped_a_guard(&self) -> bool {
        let escaped = |event: &GuardEvent| matches!(event, GuardEvent::Exposed { .. });
        self.guard_events.iter().any(escaped)
    }
}

/// The reason why a [`RunningCommand::wait_for`] returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The condition held.
    Matched,
    /// The command ended before the condition held.
    Ended(Exit),
    /// The deadline passed; the command is still running.
    TimedOut,
}

#[derive(Debug, Clone, Copy, Default)]
struct CommandControl {
    kill: bool,
    terminate: bool,
    deadline: Option<Instant>,
}

#[derive(Debug)]
struct CommandState {
    id: u64,
    pid: u32,
    started: Instant,
    strength: Strength,
    memory: MemoryBound,
    memory_mb: Option<u64>,
    stdout: Log,
    stderr: Log,
    terminal: Option<CommandTerminal>,
    loopback: Option<Arc<JailLoopback>>,
    exit: watch::Sender<Option<Exit>>,
    control: watch::Sender<CommandControl>,
}

impl CommandState {
    fn finish_logs(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.finish(&self.stdout);
        }
        self.stdout.finish();
        self.stderr.finish();
    }
}

/// A handle to a started command; clone it to share it. The whole process tree is killed when the last clone is
/// dropped, so a caller that wants the command to keep running keeps one.
#[derive(Debug, Clone)]
pub struct RunningCommand {
    held: Arc<KillOnDrop>,
}

/// Kills the command when the last handle is dropped; the task holds only the state.
#[derive(Debug)]
struct KillOnDrop(Arc<CommandState>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.control.send_modify(|control| control.kill = true);
    }
}

impl RunningCommand {
    fn state(&self) -> &CommandState {
        &self.held.0
    }

    /// Returns a number that is unique in this process.
    pub fn id(&self) -> u64 {
        self.state().id
    }

    /// Returns the process ID outside the jail: the command's own for passthrough, else its supervisor's.
    pub fn pid(&self) -> u32 {
        self.state().pid
    }

    /// Returns the log of its standard output.
    pub fn stdout(&self) -> &Log {
        &self.state().stdout
    }

    /// Returns the log of its standard error.
    pub fn stderr(&self) -> &Log {
        &self.state().stderr
    }

    /// Returns the terminal that it runs on, if it runs on one: then all its output is in [`stdout`](Self::stdout), as lines of text.
    pub fn terminal(&self) -> Option<&CommandTerminal> {
        self.state().terminal.as_ref()
    }

    /// Adds to the log of its standard output what it has drawn of a line that is not complete: a prompt, a progress bar.
    pub fn show_line(&self) {
        if let Some(terminal) = self.terminal() {
            terminal.show_line(self.stdout());
        }
    }

    /// Returns the log of what it shows while it runs: the screen of a terminal that somebody watches, else its standard output.
    pub fn live(&self) -> &Log {
        let screen = self.terminal().and_then(CommandTerminal::screen);
        screen.unwrap_or(self.stdout())
    }

    /// Returns its loopback, if it shares that and the machine can.
    pub fn loopback(&self) -> Option<&Arc<JailLoopback>> {
        self.state().loopback.as_ref()
    }

    /// Returns what ends the command and hears of its end, without keeping it running.
    pub fn stopper(&self) -> CommandStopper {
        CommandStopper(Arc::clone(&self.held.0))
    }

    /// Returns how strongly it is confined.
    pub fn strength(&self) -> Strength {
        self.state().strength
    }

    /// Returns what limits the memory of its process tree, and the limit in MiB.
    pub fn memory(&self) -> (MemoryBound, Option<u64>) {
        (self.state().memory, self.state().memory_mb)
    }

    /// Returns how it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.state().exit.borrow().clone()
    }

    /// Asks the command to exit with SIGTERM, which it and its process group receive and may ignore.
    pub fn terminate(&self) {
        self.state()
            .control
            .send_modify(|control| control.terminate = true);
    }

    /// Kills the whole tree; [`wait`](Self::wait) returns once it is gone.
    pub fn kill(&self) {
        self.state()
            .control
            .send_modify(|control| control.kill = true);
    }

    /// Sets when the whole tree is killed, counted from now; `None` = no time limit. To stop waiting earlier
    /// without killing the command, use [`wait_until`](Self::wait_until).
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.state()
            .control
            .send_modify(|control| control.deadline = deadline);
    }

    /// Waits until it has ended and all its output is in the logs.
    pub async fn wait(&self) -> Exit {
        let mut exit = self.state().exit.subscribe();
        loop {
            if let Some(exit) = exit.borrow_and_update().clone() {
                return exit;
            }
            if exit.changed().await.is_err() {
                // Our own state holds the sender, so it cannot be dropped.
                return pending().await;
            }
        }
    }

    /// Waits until more is drawn on its terminal; forever if it has none.
    async fn drawn(&self, seen: Option<u64>) {
        match (self.terminal(), seen) {
            (Some(terminal), Some(seen)) => terminal.changed(seen).await,
            _ => pending().await,
        }
    }

    /// Waits for the exit, at most until `deadline`; the command keeps running either way.
    pub async fn wait_until(&self, deadline: std::time::Instant) -> Option<Exit> {
        tokio::time::timeout_at(deadline.into(), self.wait())
            .await
            .ok()
    }

    /// Waits until `holds` returns true (called again whenever there is new output), at most until the command has
    /// ended (`holds` is called one last time then) or `deadline` has passed.
    pub async fn wait_for(
        &self,
        mut holds: impl FnMut(&Self) -> bool,
        deadline: std::time::Instant,
    ) -> WaitOutcome {
        let wait = async {
            loop {
                let seen = (self.stdout().total(), self.stderr().total());
                let drawn = self.terminal().map(CommandTerminal::written);
                let exit = self.exit();
                if holds(self) {
                    return WaitOutcome::Matched;
                }
                if let Some(exit) = exit {
                    return WaitOutcome::Ended(exit);
                }
                tokio::select! {
                    () = self.drawn(drawn), if !self.stdout().ended() => {}
                    () = self.stdout().changed(seen.0), if !self.stdout().ended() => {}
                    () = self.stderr().changed(seen.1), if !self.stderr().ended() => {}
                    _ = self.wait() => {}
                }
            }
        };
        tokio::time::timeout_at(deadline.into(), wait)
            .await
            .unwrap_or(WaitOutcome::TimedOut)
    }
}

/// Ends a command and hears of its end, but does not keep it running.
#[derive(Debug, Clone)]
pub struct CommandStopper(Arc<CommandState>);

impl CommandStopper {
    /// Kills the whole tree.
    pub fn kill(&self) {
        self.0.control.send_modify(|control| control.kill = true);
    }

    /// Returns once it has ended.
    pub async fn ended(&self) {
        let mut exit = self.0.exit.subscribe();
        // The state holds the sender, so it cannot be dropped.
        let _ = exit.wait_for(Option::is_some).await;
    }
}

/// A started process whose pipes are not read yet.
#[derive(Debug)]
pub(crate) struct StartedCommand {
    pub(crate) tree: ProcessTree,
    /// `None` if it is read elsewhere.
    pub(crate) stdout: Option<OwnedFd>,
    /// What the command runs on instead of pipes.
    pub(crate) terminal: Option<CommandTerminal>,
    pub(crate) stderr: OwnedFd,
    pub(crate) strength: Strength,
    pub(crate) memory: MemoryBound,
    /// Answers the command's connections until it has ended.
    pub(crate) gate: Option<RunningOutlet>,
    /// Its loopback, if it shares that.
    pub(crate) loopback: Option<JailLoopback>,
}

/// Starts a command without a jail.
pub(crate) fn passthrough(
    spec: &CommandSpec,
    input: Option<OwnedFd>,
) -> Result<StartedCommand, StartError> {
    if matches!(spec.network, Network::Outlet(_)) {
        return Err(StartError::NoOutlet(Strength::None));
    }
    if spec.mounts.view.is_some() {
        return Err(StartError::NoView(Strength::None));
    }
    if spec.terminal.is_some() {
        return Err(StartError::NoTerminal(Strength::None));
    }
    let system = |step| move |source| StartError::System { step, source };
    let argv = spec.words();
    let name = argv
        .first()
        .ok_or_else(|| StartError::Spec("no program".into()))?;
    let shown = || name.to_string_lossy().into_owned();
    let refused = |source| StartError::Program {
        program: shown(),
        source,
    };
    let mut env = outer_env();
    env.extend(spec.env.clone());
    let id = NEXT_ID.load(Ordering::Relaxed);
    let cookie = ProcessTree::cookie(id);
    env.insert(ProcessTree::COOKIE.into(), cookie.clone());
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let program = spawn::find(name, &path, &spec.cwd).map_err(refused)?;
    let stdin = match (input, &spec.stdin) {
        (Some(input), _) => input.into(),
        (None, Stdin::Null) => Stdio::null(),
        (None, Stdin::Bytes(bytes)) => spawn::memory_file(bytes)
            .map_err(system("keep its input"))?
            .into(),
    };
    let start = ResolvedCommand {
        program: &program,
        argv: &argv,
        env: &env,
        cwd: &spec.cwd,
    };
    let mut child = start
        .spawn(stdin, Stdio::piped(), Stdio::piped())
        .map_err(refused)?;
    let pipes = child.stdout.take().zip(child.stderr.take());
    let tree = ProcessTree::passthrough(child, cookie).map_err(system("watch it"))?;
    let (stdout, stderr) =
        pipes.ok_or_else(|| system("read it")(io::ErrorKind::BrokenPipe.into()))?;
    Ok(StartedCommand {
        tree,
        stdout: Some(stdout.into()),
        terminal: None,
        stderr: stderr.into(),
        strength: Strength::None,
        memory: MemoryBound::Process,
        gate: None,
        loopback: None,
    })
}

/// Returns the part of this process's environment that a command without a jail gets.
fn outer_env() -> BTreeMap<OsString, OsString> {
    [
        "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR",
    ]
    .into_iter()
    .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
    .chain([("TERM".into(), "dumb".into())])
    .collect()
}

/// Hands a started process over to its own task.
pub(crate) fn serve(
    started: StartedCommand,
    spec: &CommandSpec,
) -> Result<RunningCommand, StartError> {
    let StartedCommand {
        tree,
        stdout,
        terminal,
        stderr,
        strength,
        memory,
        gate,
        loopback,
    } = started;
    let system = |source| StartError::System {
        step: "read it",
        source,
    };
    let stdout = stdout.map(StreamSource::pipe).transpose();
    let stdout = stdout.map_err(system)?;
    let stderr = StreamSource::pipe(stderr).map_err(system)?;
    let stdout = stdout.or(terminal.as_ref().and_then(StreamSource::terminal));
    let started = Instant::now();
    let deadline = spec
        .timeout
        .and_then(|timeout| started.checked_add(timeout));
    let state = Arc::new(CommandState {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        pid: tree.pid(),
        started,
        strength,
        memory,
        memory_mb: spec.limits.memory_mb,
        stdout: spec.log(),
        stderr: spec.log(),
        terminal,
        loopback: loopback.map(Arc::new),
        exit: watch::Sender::new(None),
        control: watch::Sender::new(CommandControl {
            kill: false,
            terminate: false,
            deadline,
        }),
    });
    let running = RunningCommand {
        held: Arc::new(KillOnDrop(Arc::clone(&state))),
    };
    tokio::spawn(async move {
        drive(tree, [stdout, Some(stderr)], ExitReporter(state)).await;
        drop(gate);
    });
    Ok(running)
}

/// However the task ends, this reports an exit to all waiters.
struct ExitReporter(Arc<CommandState>);

impl Drop for ExitReporter {
    fn drop(&mut self) {
        self.0.finish_logs();
        let took = self.0.started.elapsed();
        self.0.exit.send_if_modified(|exit| {
            let open = exit.is_none();
            exit.get_or_insert(Exit {
                code: None,
                signal: Some(libc::SIGKILL),
                timed_out: false,
                killed: true,
                over_memory: false,
                took,
                guard_events: Vec::new(),
                left: LeftBehind::default(),
            });
            open
        });
    }
}

/// Reads both streams, watches the process and the clock, kills the tree, publishes the exit.
async fn drive(mut tree: ProcessTree, streams: [Option<StreamSource>; 2], ending: ExitReporter) {
    let state = &*ending.0;
    let [stdout, stderr] = streams;
    let mut out = StreamReader::new(stdout, &state.stdout).on(state.terminal.as_ref());
    let mut err = StreamReader::new(stderr, &state.stderr);
    let mut control = state.control.subscribe();
    let (mut killed, mut asked, mut timed_out) = (false, false, false);
    let grouped = matches!(state.memory, MemoryBound::CgroupV1 | MemoryBound::CgroupV2);
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let CommandControl {
            kill,
            terminate,
            deadline,
        } = *control.borrow_and_update();
        if terminate && !asked {
            asked = true;
            tree.terminate();
        }
        if kill && !killed {
            killed = true;
            tree.kill();
        }
        tokio::select! {
            () = out.step(), if out.open() => {}
            () = err.step(), if err.open() => {}
            () = tree.ended() => break,
            _ = control.changed() => {}
            _ = look.tick(), if grouped => if tree.is_out_of_memory() {
                tree.kill();
            },
            () = at(deadline), if !killed && !timed_out => {
                timed_out = true;
                tree.kill();
            }
        }
    }
    let end = tree.finish();
    drain(&tree, &mut out, &mut err).await;
    state.finish_logs();
    state.exit.send_replace(Some(Exit {
        code: end.code,
        signal: end.signal,
        timed_out: timed_out && end.code != Some(0),
        killed: killed && end.code.is_none(),
        over_memory: end.over_memory,
        took: state.started.elapsed(),
        guard_events: end.guard_events,
        left: end.left,
    }));
    if let Some(group) = end.group {
        // The kernel's control files are slow; nothing needs to wait for them.
        tokio::task::spawn_blocking(move || group.put_away());
    }
}

/// Reads the remaining output once the first process has ended.
async fn drain(tree: &ProcessTree, out: &mut StreamReader<'_>, err: &mut StreamReader<'_>) {
    out.take_ready();
    err.take_ready();
    if out.open() || err.open() {
        tree.sweep();
    }
    let mut last = Instant::now() + DRAIN;
    while out.open() || err.open() {
        // Output that the follower has not reached yet is still in the pipe and not lost: it gets the time it needs.
        let held = out.is_held() || err.is_held();
        tokio::select! {
            () = out.step(), if out.open() => {}
            () = err.step(), if err.open() => {}
            () = sleep_until(last), if !held => break,
        }
        if held {
            last = Instant::now() + DRAIN;
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
