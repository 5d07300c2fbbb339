//! The only crate that starts processes: jailed commands with bounded output, killed as whole process trees.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_sandbox::{CommandSpec, Config, PathGuard, Mounts, Sandbox};
//!
//! let sandbox = Sandbox::new(Config::default());
//! let workspace = std::env::current_dir()?;
//! let mut mounts = Mounts::workspace(&workspace);
//! mounts.guards.push(PathGuard::protect_dir(".git").at_any_depth());
//! let spec = CommandSpec::line("cargo --version", &workspace).with_mounts(mounts);
//! let running = sandbox.start(spec).await?;
//! let exit = running.wait().await;
//! assert!(exit.success(), "{}", running.stderr().text(0, 4096).text);
//! # Ok(()) }
//! ```
//!
//! A program that uses the jail calls [`enter`] first in `main`: the jail's supervisor is the program's
//! own binary, executed again. There is no helper to install and no path lookup that another user or a
//! tool could redirect. A host without a `main` of its own (a library inside an interpreter) names a
//! binary that does call it in [`Config::supervisor`].
//!
//! The jail never weakens itself: on a machine that cannot provide [`Config::require`], a start fails with an
//! error that names what is missing and how to get it ([`Sandbox::probe`] reports the same for a doctor command).
//! Only [`Backend::Passthrough`], chosen by name and with [`Strength::None`] required, runs without a jail.

pub mod code;
mod command;
mod filter;
mod findings;
mod jail;
mod large_blocks;
mod left_behind;
mod guard_event;
mod held_places;
mod hidden_paths;
mod host_program;
mod lockdown;
mod loopback;
mod memory;
mod outlet;
mod output;
mod places;
mod program_pages;
mod report;
mod running;
mod spawn;
mod standard_output;
mod stream;
mod strength;
mod sys;
mod terminal;
mod toolchains;
mod tree;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustix::pipe::PipeFlags;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::OnceCell;

pub use crate::command::{
    AbsentGuard, CommandSpec, GuardKind, HomeFolder, Mounts, Network, OverlayFolders, PathGuard,
    ProcessLimits, Program, RepositoryMount, SHELL, Stdin,
};
pub use crate::findings::KeptFindings;
pub use crate::guard_event::GuardEvent;
pub use crate::held_places::placeholder::is_placeholder;
pub use crate::host_program::{DetachedProgram, HostProgram};
use crate::jail::Machine;
pub use crate::jail::enter;
pub use crate::large_blocks::map_large_blocks;
pub use crate::left_behind::LeftBehind;
pub use crate::loopback::{
    JailLoopback, JailPlace, ListeningPort, ListeningPorts, LoopbackDoor, MAX_START_PORTS, NoPlace,
    SharedLoopback,
};
pub use crate::memory::MemoryBound;
pub use crate::outlet::{
    JAIL_ADDRESS, MAX_OUTLET_CONNECTIONS, MAX_OUTLET_PORTS, NAMES_PORT, OUTLET_ADDRESS, Outlet,
    ServeFuture,
};
pub use crate::output::{
    Chunk, DEFAULT_LOG_CAP, DEFAULT_SPOOL, Follower, Log, SPOOLED, Spool, TextChunk,
};
pub use crate::places::owner::{check_owner, check_owner_of_entry};
pub use crate::places::{PathRefusal, Places};
pub use crate::program_pages::release_program_pages;
use crate::running::StartedCommand;
pub use crate::running::{CommandStopper, Exit, RunningCommand, WaitOutcome};
pub use crate::standard_output::stdout_was_closed;
pub use crate::strength::{MissingFeature, Probe, Strength};
pub use crate::terminal::{CommandTerminal, InputMode, ScreenFilter, TerminalSize, TerminalSpec};
pub use crate::toolchains::{FoundToolchain, ToolchainSearch, Toolchains};
pub use haft_shell::direct_words;

/// How processes are confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Backend {
    /// Namespaces, Landlock and seccomp, set up by this crate.
    #[default]
    Jail,
    /// No confinement at all; only ever by explicit choice. The process tree is still killed as a whole.
    Passthrough,
}

/// The configuration of a [`Sandbox`].
#[derive(Debug, Clone)]
pub struct Config {
    /// What confines processes: the jail, or nothing.
    pub backend: Backend,
    /// The weakest confinement that is acceptable, whatever the backend; nothing runs below it.
    /// [`Backend::Passthrough`] needs an explicit [`Strength::None`] here.
    pub require: Strength,
    /// The strongest confinement to set up, for a machine on which some tool does not work under a stronger
    /// one; `None` = the strongest available. Must not be below `require`.
    pub at_most: Option<Strength>,
    /// A binary that calls [`enter`] first in its `main`, for hosts that do not; `None` = this program.
    /// It runs outside the jail, so it must lie where no tool can change it.
    pub supervisor: Option<PathBuf>,
    /// What the host declares about its files: which ones no jail shows, and which ones tools may change.
    pub places: Places,
    /// Folders outside the system's (an interpreter, a toolchain) that every jail sees read-only. The `bin`
    /// folder of each, if it has one, is put on `PATH`. If one of them must not be shown, every start fails.
    pub extra_read_only: Vec<PathBuf>,
    /// Whether to find `python3` and `node` on this process's own `PATH` and show the exact parts of their
    /// installations read-only. Needs [`Places::declared`].
    pub detect_interpreters: bool,
    /// Whether to limit the memory of commands with control groups of their own, if some can be created below or
    /// beside this process's; otherwise the sandbox watches their process trees.
    pub cgroups: bool,
    /// Where to keep what was found to work, for this program's next process; `None` = nowhere.
    pub findings: Option<KeptFindings>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            require: Strength::default(),
            at_most: None,
            supervisor: None,
            places: Places::default(),
            extra_read_only: Vec::new(),
            detect_interpreters: false,
            cgroups: true,
            findings: None,
        }
    }
}

/// The reason why a command was not started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The machine, or the backend, does not provide what [`Config::require`] demands.
    #[error("{why}")]
    TooWeak {
        /// What the machine provides.
        have: Strength,
        /// What [`Config::require`] demands.
        need: Strength,
        /// What is missing, in a sentence.
        why: String,
    },
    /// [`enter`] was not called and no [`Config::supervisor`] is named.
    #[error("start a jailed command: call haft_sandbox::enter() first in main")]
    NotEntered,
    /// The program does not exist or cannot be executed.
    #[error("start `{program}`: {}", not_started(program, source))]
    Program {
        /// The program as given.
        program: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A path must not be shown in a jail, or a program must not be started outside of one.
    #[error("start a command: {0}")]
    Refused(#[from] PathRefusal),
    /// The command or its mounts are invalid.
    #[error("start a command: {0}")]
    Spec(String),
    /// Setting up the jail failed although the probe succeeded; nothing ran.
    #[error("set up the jail: {step}: {source}")]
    Jail {
        /// The step that failed.
        step: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A view needs a root file system of the command's own, which this confinement does not create.
    #[error(
        "start a command: it works on a view of the workspace, which needs namespaces of its own, and the confinement here is {0}"
    )]
    NoView(Strength),
    /// A terminal needs a root file system of the command's own, which this confinement does not create.
    #[error(
        "start a command: it is to run on a terminal, which needs namespaces of its own, and the confinement here is {0}"
    )]
    NoTerminal(Strength),
    /// An outlet needs a network namespace of the command's own, which this confinement does not create.
    #[error(
        "start a command: it may only use the network by an outlet, which needs namespaces of its own, and the confinement here is {0}"
    )]
    NoOutlet(Strength),
    /// An interpreter could not be started, or failed before it could be locked down.
    #[error("start an interpreter: {0}")]
    Interpreter(String),
    /// No interpreter works in the jail.
    #[error("start a script: {0}")]
    NoInterpreter(MissingFeature),
    /// The jail for scripts was shut down.
    #[error("start a script: its jail was shut")]
    Shut,
    /// There is no tokio runtime with I/O and time enabled around the call.
    #[error("start a command: no tokio runtime")]
    NoRuntime,
    /// The system did not provide a pipe, a descriptor or a process.
    #[error("start a command: {step}: {source}")]
    System {
        /// The step that failed.
        step: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl StartError {
    /// Returns the error for a processor for which there is no list of system calls.
    pub(crate) fn no_filter() -> Self {
        Self::System {
            step: "filter system calls on this architecture",
            source: io::ErrorKind::Unsupported.into(),
        }
    }
}

/// Says why a program did not start, in words that tell what to look at.
fn not_started(program: &str, source: &std::io::Error) -> String {
    if source.kind() != std::io::ErrorKind::NotFound {
        source.to_string()
    } else if program.contains('/') {
        "there is no such file, or the interpreter that it names is not there".to_owned()
    } else {
        "no program of this name is on the PATH of commands".to_owned()
    }
}

/// Starts commands under one configuration; cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: Config,
    machine: OnceLock<Machine>,
    probe: OnceCell<Probe>,
    /// The sandbox that learns what this one's probe finds: the one that it is for another runtime.
    origin: Option<Arc<Inner>>,
}

impl Inner {
    fn machine(&self) -> &Machine {
        self.machine.get_or_init(|| match &self.origin {
            Some(origin) => origin.machine().for_other_runtime(),
            None => Machine::find(&self.config),
        })
    }

    async fn probe(&self) -> Probe {
        let about = format!("jail {:?}", self.config);
        let findings = self
            .config
            .findings
            .as_ref()
            .filter(|_| jail::can_enter(&self.config));
        let kept = findings.and_then(|findings| findings.get(&about));
        let found = if let Some(kept) = kept.as_deref().and_then(Probe::from_line) {
            kept
        } else {
            let found = jail::probe(&self.config, self.machine()).await;
            if let (Some(findings), Some(line)) = (findings, found.to_line()) {
                findings.put(&about, &line);
            }
            found
        };
        if let Some(origin) = &self.origin {
            // Fails if it knows already, or is probing itself.
            let _ = origin.probe.set(found.clone());
        }
        found
    }
}

impl Sandbox {
    /// Creates a sandbox with this configuration; nothing is probed yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            inner: Arc::new(Inner {
                config,
                machine: OnceLock::new(),
                probe: OnceCell::new(),
                origin: None,
            }),
        }
    }

    /// Returns this sandbox for use in another tokio runtime: it does not wait for a probe that a task of the current runtime is running.
    /// If the current runtime waits for the other one, that probe would never finish. What is found in the other runtime holds for both.
    #[must_use]
    pub fn for_other_runtime(&self) -> Self {
        if self.inner.probe.initialized() {
            return self.clone();
        }
        Self {
            inner: Arc::new(Inner {
                config: self.inner.config.clone(),
                machine: OnceLock::new(),
                probe: OnceCell::new(),
                origin: Some(Arc::clone(&self.inner)),
            }),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Has another thread find what jails show of this machine, so that the first start waits less for it.
    pub fn look_ahead(&self) {
        let inner = Arc::clone(&self.inner);
        let looks = std::thread::Builder::new().name("haft-machine".to_owned());
        // Without the thread, the first start looks itself.
        let _ = looks.spawn(move || {
            inner.machine();
        });
    }

    /// Returns what the machine provides, found by running a child that does nothing in the jail; probes only once.
    pub async fn probe(&self) -> &Probe {
        self.inner.probe.get_or_init(|| self.inner.probe()).await
    }

    /// Returns the folders of settings in `/etc`, of packages of the system, that no jail shows: something in each may be secret.
    pub fn settings_left_out(&self) -> &[PathRefusal] {
        &self.inner.machine().system.etc_left_out
    }

    /// Returns the system's programs that no jail can run, because their links lead over a path of `/etc` that none shows.
    pub fn broken_programs(&self) -> Vec<PathRefusal> {
        self.inner.machine().system.broken_programs()
    }

    /// Starts a command and returns once it has been executed.
    ///
    /// Must be called inside a tokio runtime with I/O and time enabled: a task of that runtime reads the
    /// process's output and ends it, and the process dies with the runtime.
    ///
    /// # Errors
    /// If the command cannot be started, or only below [`Config::require`].
    pub async fn start(&self, spec: CommandSpec) -> Result<RunningCommand, StartError> {
        running::serve(self.begin(&spec, None).await?, &spec)
    }

    /// Starts a command that the caller talks to while it runs. Its standard input and output are pipes whose other ends this returns:
    /// dropping the sender closes its input, and its output waits in the pipe until it is read. Its standard error goes
    /// to [`RunningCommand::stderr`]; [`CommandSpec::stdin`] is ignored.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn converse(
        &self,
        spec: CommandSpec,
    ) -> Result<(RunningCommand, pipe::Sender, pipe::Receiver), StartError> {
        let (mut started, sender) = self.begin_piped(&spec).await?;
        let output = started.stdout.take();
        let output = output.ok_or_else(|| unpiped(io::ErrorKind::BrokenPipe.into()))?;
        let receiver = pipe::Receiver::from_owned_fd(output).map_err(unpiped)?;
        Ok((running::serve(started, &spec)?, sender, receiver))
    }

    /// Starts a command whose standard input is a pipe and returns the pipe's other end; dropping it closes the input. The command's
    /// output goes to the logs; [`CommandSpec::stdin`] is ignored.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_piped(
        &self,
        spec: CommandSpec,
    ) -> Result<(RunningCommand, pipe::Sender), StartError> {
        let (started, sender) = self.begin_piped(&spec).await?;
        Ok((running::serve(started, &spec)?, sender))
    }

    /// Starts a command whose standard input is one end of a pair of connected sockets and returns the other end: unlike a pipe, no other
    /// process of the command can open it again. The command's output goes to the logs; [`CommandSpec::stdin`] is ignored.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_on_socket(
        &self,
        spec: CommandSpec,
    ) -> Result<(RunningCommand, UnixStream), StartError> {
        runtime()?;
        let (theirs, ours) = std::os::unix::net::UnixStream::pair().map_err(unpiped)?;
        ours.set_nonblocking(true).map_err(unpiped)?;
        let ours = UnixStream::from_std(ours).map_err(unpiped)?;
        let started = self.begin(&spec, Some(theirs.into())).await?;
        Ok((running::serve(started, &spec)?, ours))
    }

    async fn begin_piped(
        &self,
        spec: &CommandSpec,
    ) -> Result<(StartedCommand, pipe::Sender), StartError> {
        runtime()?;
        let pipes = rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
        let (theirs, ours) = pipes.map_err(|e| unpiped(e.into()))?;
        let sender = pipe::Sender::from_owned_fd(ours).map_err(unpiped)?;
        Ok((self.begin(spec, Some(theirs)).await?, sender))
    }

    /// Executes a command, with `input` as its standard input if given; nothing reads its output yet.
    async fn begin(
        &self,
        spec: &CommandSpec,
        input: Option<OwnedFd>,
    ) -> Result<StartedCommand, StartError> {
        let config = &self.inner.config;
        match config.backend {
            Backend::Jail => self.begin_jailed(spec, input).await,
            Backend::Passthrough if config.require > Strength::None => Err(StartError::TooWeak {
                have: Strength::None,
                need: config.require,
                why: format!(
                    "the backend `passthrough` confines nothing, but the strength {} is required",
                    config.require
                ),
            }),
            Backend::Passthrough => {
                runtime()?;
                running::passthrough(spec, input)
            }
        }
    }

    /// Like [`start`](Self::start), but in the jail whatever the backend is: for commands that the host runs itself on
    /// data or in folders that others can write.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_jailed(&self, spec: CommandSpec) -> Result<RunningCommand, StartError> {
        running::serve(self.begin_jailed(&spec, None).await?, &spec)
    }

    /// Opens a way into the loopback of a jail that a process of this user started, for sockets there.
    ///
    /// # Errors
    /// The jail has ended, or its network cannot be joined.
    pub async fn enter_loopback(&self, at: JailPlace) -> Result<LoopbackDoor, StartError> {
        runtime()?;
        jail::enter_loopback(&self.inner.config, at).await
    }

    async fn begin_jailed(
        &self,
        spec: &CommandSpec,
        input: Option<OwnedFd>,
    ) -> Result<StartedCommand, StartError> {
        runtime()?;
        let inner = &self.inner;
        let probe = self.probe().await;
        probe.admit(inner.config.require)?;
        let started = jail::start(&inner.config, probe, inner.machine(), spec, input).await;
        if let (Err(StartError::Jail { .. }), Some(findings)) = (&started, &inner.config.findings) {
            // What was found does not hold, and the next process looks again.
            findings.forget();
        }
        started
    }
}

fn unpiped(source: io::Error) -> StartError {
    StartError::System {
        step: "make its pipes",
        source,
    }
}

fn runtime() -> Result<(), StartError> {
    let current = tokio::runtime::Handle::try_current();
    current.map(drop).map_err(|_| StartError::NoRuntime)
}
