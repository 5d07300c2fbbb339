//! The description of a command to run: program, folder, environment, limits, mounts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_shell::direct_words;

use crate::loopback::SharedLoopback;
use crate::outlet::{MAX_OUTLET_PORTS, Outlet};
use crate::output::{DEFAULT_LOG_CAP, Log, Spool};
use crate::terminal::TerminalSpec;
use crate::toolchains::Toolchains;

/// The shell that runs command lines. If it is absent, no command line runs.
pub const SHELL: &str = "/bin/bash";

/// The program to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, executed as they are.
    Argv(Vec<OsString>),
    /// A line for `bash -c`, and for no other shell: another one could read it differently than the policy that judged it.
    Shell(OsString),
}

/// The standard input of the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Null,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
}

/// What the command can reach over the network.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Network {
    /// Nothing: an empty network namespace with a loopback that no other process shares. Passthrough
    /// cannot provide this and does not pretend to.
    #[default]
    None,
    /// An empty network namespace in which only one address, [`OUTLET_ADDRESS`](crate::OUTLET_ADDRESS), answers, or also every
    /// address at the outlet's [`ports`](Outlet::ports): this outlet outside serves them. Needs namespaces: refused below [`Strength::NoProc`](crate::Strength::NoProc)
    /// and by passthrough.
    Outlet(Arc<dyn Outlet>),
    /// The machine's own network and name resolution, with every address that the machine reaches.
    Host,
}

impl Network {
    /// Returns the outlet, if there is one.
    pub(crate) fn outlet(&self) -> Option<Arc<dyn Outlet>> {
        match self {
            Self::Outlet(outlet) => Some(Arc::clone(outlet)),
            Self::None | Self::Host => None,
        }
    }

    /// Returns the ports at which an outlet takes connections to every address.
    pub(crate) fn outlet_ports(&self) -> Vec<u16> {
        let Some(outlet) = self.outlet() else {
            return Vec::new();
        };
        let mut ports = outlet.ports();
        ports.truncate(MAX_OUTLET_PORTS);
        ports
    }
}

impl PartialEq for Network {
    /// Two outlets are equal only if they are the same object.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Host, Self::Host) => true,
            (Self::Outlet(one), Self::Outlet(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Eq for Network {}

/// The resources that one command may use. Without a delegated cgroup, the memory limit holds for each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Memory in MiB.
    pub memory_mb: Option<u64>,
    /// Processes and threads together.
    pub pids: Option<u32>,
    /// The largest file that the command may write, in MiB.
    pub file_mb: Option<u64>,
    /// CPU time in seconds for each process.
    pub cpu_s: Option<u64>,
    /// Open descriptors in each process.
    pub open_files: u64,
    /// The size of the command's private `/tmp` in MiB.
    pub tmp_mb: u64,
}

impl Default for ProcessLimits {
    /// 4 GiB of memory, 512 processes, files of 4 GiB, 4,096 descriptors, 1 GiB of `/tmp`: more than the
    /// build of a large project takes, less than what makes a small machine unusable.
    fn default() -> Self {
        Self {
            memory_mb: Some(4096),
            pids: Some(512),
            file_mb: Some(4096),
            cpu_s: None,
            open_files: 4096,
            tmp_mb: 1024,
        }
    }
}

/// What a guard does to its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardKind {
    /// Can be read, but not changed, and not created if absent.
    ReadOnly,
    /// Can neither be read nor changed: the command sees an empty file or folder instead.
    Hidden,
}

/// A path in the workspace that the command must not change (or see).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGuard {
    /// Relative to the workspace; compared byte by byte.
    pub path: PathBuf,
    /// What is forbidden.
    pub kind: GuardKind,
    /// Whether it is a folder; decides which placeholder is used while it is absent.
    pub folder: bool,
    /// For a single name: whether it is also guarded below other folders, where it exists when the command starts.
    pub any_depth: bool,
    /// What keeps the command from creating it while it is absent.
    pub absent: AbsentGuard,
}

/// What keeps a command from creating what a guard is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AbsentGuard {
    /// A placeholder holds the place.
    #[default]
    Placeholder,
    /// Nothing holds the place, because an empty file there would mean something: what appears is renamed.
    Renamed,
    /// The guard is about new entries of the folder, which are renamed. What is there when the command starts it may change.
    NewEntries,
}

impl PathGuard {
    fn new(path: impl Into<PathBuf>, kind: GuardKind, folder: bool) -> Self {
        Self {
            path: path.into(),
            kind,
            folder,
            any_depth: false,
            absent: AbsentGuard::default(),
        }
    }

    /// Creates a guard for a folder that can be read but not changed.
    pub fn protect_dir(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::ReadOnly, true)
    }

    /// Creates a guard for a file that can be read but not changed.
    pub fn protect_file(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::ReadOnly, false)
    }

    /// Creates a guard for a folder that cannot be seen.
    pub fn hide_dir(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::Hidden, true)
    }

    /// Creates a guard for a file that cannot be seen.
    pub fn hide_file(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::Hidden, false)
    }

    /// Creates a guard for a folder that exists and gets no new entries: what is in it then must have guards of its own, or guards in it.
    pub fn no_new_entries(path: impl Into<PathBuf>) -> Self {
        let mut guard = Self::protect_dir(path);
        guard.absent = AbsentGuard::NewEntries;
        guard
    }

    /// Lets nothing hold the place of an absent name: what appears there is renamed.
    pub fn without_placeholder(mut self) -> Self {
        self.absent = AbsentGuard::Renamed;
        self
    }

    /// Guards the name wherever it lies in the workspace, not only at the top.
    pub fn at_any_depth(mut self) -> Self {
        self.any_depth = true;
        self
    }
}

/// The files of the machine that the command sees besides the system's own folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    /// The folder it may change (unless [`only_reads`](Self::only_reads)), seen at its own absolute path; `None` = only `/tmp`.
    pub workspace: Option<PathBuf>,
    /// The paths inside the workspace that it must not change or see.
    pub guards: Vec<PathGuard>,
    /// Links and folders (relative to the workspace) that it must not remove, rename or replace; nothing lifts that. What lies in
    /// such a folder, or where such a link leads, it may change.
    pub pinned: Vec<PathBuf>,
    /// Paths (relative to the workspace) under a guard that this one command may change because an
    /// operator approved it. Never lifts a [`GuardKind::Hidden`].
    pub writable: Vec<PathBuf>,
    /// Further absolute paths it may read.
    pub read_only: Vec<PathBuf>,
    /// Further absolute folders it may change, unless [`only_reads`](Self::only_reads).
    pub read_write: Vec<PathBuf>,
    /// The toolchains it sees, on its `PATH` before the system's programs.
    pub toolchains: Option<Arc<Toolchains>>,
    /// Whether the workspace is read-only and none of its files can be executed.
    pub only_reads: bool,
    /// The copy-on-write view of the workspace that the command works on; the workspace itself does not change. Needs a root file
    /// system of the command's own: refused below [`Strength::NoProc`](crate::Strength::NoProc).
    pub view: Option<OverlayFolders>,
    /// The workspace's git repository, where it lies outside of the workspace.
    pub repository: Option<RepositoryMount>,
    /// Made files that the command sees below `/etc`, by their absolute paths, also in place of files that a jail shows. Only with a root file system of the command's own.
    pub etc: Vec<(PathBuf, Vec<u8>)>,
    /// Made files in the command's own `HOME`, by their paths relative to it, in folders that only the command's user can look into. It may
    /// change them. Only with a root file system of the command's own.
    pub home_files: Vec<(PathBuf, Vec<u8>)>,
    /// Sockets of this program's own, by their absolute paths on the host and in the jail, there in no folder that the jail shows of the host. Only with a root file system of the command's own.
    pub sockets: Vec<(PathBuf, PathBuf)>,
    /// Folders below the command's own `HOME`, such as copies of those of the user's home. Refused below
    /// [`Strength::NoProc`](crate::Strength::NoProc), and for folders that a jail must not show.
    pub home: Vec<HomeFolder>,
}

/// A git repository outside of the workspace, which the command sees at its own path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryMount {
    /// Its path on the host, absolute.
    pub folder: PathBuf,
    /// A folder whose files the command sees in place of the repository's; it may be empty. Needed without a view.
    pub layer: Option<PathBuf>,
    /// The file by which git finds the repository from a folder above the workspace, if it does not lie there itself: a path and a text.
    pub pointer: Option<(PathBuf, Vec<u8>)>,
    /// Where the command's changes go; `None` if it may not change the repository.
    pub view: Option<OverlayFolders>,
}

/// A folder below the command's own `HOME` that outlives it: a copy-on-write view of one of the user's home, or one that the user does not
/// have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeFolder {
    /// The user's, absolute. Without it, the command sees only what commands put there.
    pub folder: Option<PathBuf>,
    /// Where the command sees it, relative to its `HOME`.
    pub at: PathBuf,
    /// Where its changes go. Unlike a view of the workspace, it may hold those of earlier commands.
    pub view: OverlayFolders,
}

/// Where the changes of a command that works on a view go: the folders of an overlay over another folder. Both are empty,
/// on one file system, and outside of that other folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayFolders {
    /// Holds everything that the command changed, in the format of overlayfs with `userxattr`.
    pub upper: PathBuf,
    /// The kernel's working folder; to be removed together with `upper`.
    pub work: PathBuf,
}

impl Mounts {
    /// A workspace without guards.
    pub fn workspace(path: impl Into<PathBuf>) -> Self {
        Self {
            workspace: Some(path.into()),
            ..Self::default()
        }
    }
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program to execute.
    pub program: Program,
    /// The folder it starts in, absolute.
    pub cwd: PathBuf,
    /// The environment in addition to `PATH`, `HOME`, `TMPDIR`, `LANG` and `TERM`, which are always set;
    /// nothing else of this process's own environment is passed on.
    pub env: BTreeMap<OsString, OsString>,
    /// Program folders placed before all others in `PATH`, unless the environment sets `PATH`.
    pub path_first: Vec<PathBuf>,
    /// Program folders placed after the system's in `PATH`, unless the environment sets `PATH`.
    pub path: Vec<PathBuf>,
    /// Its standard input.
    pub stdin: Stdin,
    /// The terminal that it runs on, which is then its standard input, output and error; `stdin` is ignored. Needs a root of its own:
    /// refused below [`Strength::NoProc`](crate::Strength::NoProc) and by passthrough.
    pub terminal: Option<TerminalSpec>,
    /// When the whole process tree is killed, counted from the start; `None` = no time limit.
    pub timeout: Option<Duration>,
    /// The resources it may use.
    pub limits: ProcessLimits,
    /// The files it sees.
    pub mounts: Mounts,
    /// What it can reach over the network.
    pub network: Network,
    /// What it shares of its loopback, if it has a network of its own.
    pub loopback: Option<SharedLoopback>,
    /// Bytes kept in memory of each output stream, if there is no spool.
    pub log_cap: usize,
    /// Where output goes that is too long for memory.
    pub spool: Option<Arc<Spool>>,
}

impl CommandSpec {
    /// Creates a command with default limits, no mounts and no timeout.
    pub fn new(program: Program, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program,
            cwd: cwd.into(),
            env: BTreeMap::new(),
            path_first: Vec::new(),
            path: Vec::new(),
            stdin: Stdin::Null,
            terminal: None,
            timeout: None,
            limits: ProcessLimits::default(),
            mounts: Mounts::default(),
            network: Network::None,
            loopback: None,
            log_cap: DEFAULT_LOG_CAP,
            spool: None,
        }
    }

    /// Creates a command from a program and its arguments.
    pub fn argv<I, S>(argv: I, cwd: impl Into<PathBuf>) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        Self::new(
            Program::Argv(argv.into_iter().map(Into::into).collect()),
            cwd,
        )
    }

    /// Creates a command from a command line: executed directly if it has no shell syntax, else by a shell.
    pub fn line(line: &str, cwd: impl Into<PathBuf>) -> Self {
        match direct_words(line) {
            Some(words) => Self::argv(words, cwd),
            None => Self::new(Program::Shell(line.into()), cwd),
        }
    }

    /// Sets the mounts.
    pub fn with_mounts(mut self, mounts: Mounts) -> Self {
        self.mounts = mounts;
        self
    }

    /// Sets the timeout.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Adds an environment variable.
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the bytes of the standard input.
    pub fn with_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Sets the spool for long output.
    pub fn with_spool(mut self, spool: Option<Arc<Spool>>) -> Self {
        self.spool = spool;
        self
    }

    /// Creates an empty log for one of its streams.
    pub(crate) fn log(&self) -> Log {
        match &self.spool {
            Some(spool) => Log::spooled(Arc::clone(spool)),
            None => Log::new(self.log_cap),
        }
    }

    /// Returns the argument vector that is actually executed.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match &self.program {
            Program::Argv(words) => words.clone(),
            Program::Shell(line) => {
                vec![SHELL.into(), "-c".into(), line.clone()]
            }
        }
    }
}
