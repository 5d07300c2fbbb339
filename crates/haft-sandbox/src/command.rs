//! What is to be run: program, folder, environment, limits, mounts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_shell::direct_words;

use crate::outlet::Outlet;
use crate::output::{DEFAULT_LOG_CAP, Log, Spool};
use crate::toolchains::Toolchains;

/// The shell of command lines. Where it is absent, none is run.
pub const SHELL: &str = "/bin/bash";

/// What is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments, executed as they are.
    Argv(Vec<OsString>),
    /// A line for `bash -c`, and for no other shell: another would read it otherwise than whoever judged it.
    Shell(OsString),
}

/// What the command reads from its standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
}

/// What the command reaches over the network.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Network {
    /// Nothing: an empty network of its own with a loopback that no one else shares. Passthrough
    /// cannot give this and does not pretend to.
    #[default]
    None,
    /// An empty network of its own in which one address, [`OUTLET_ADDRESS`](crate::OUTLET_ADDRESS), is
    /// answered by this outlet outside. Needs namespaces: refused below [`Strength::NoProc`](crate::Strength::NoProc)
    /// and by passthrough.
    Outlet(Arc<dyn Outlet>),
    /// The machine's own network and its names, with every address this machine reaches.
    Host,
}

impl PartialEq for Network {
    /// Two outlets are the same only if they are one.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Host, Self::Host) => true,
            (Self::Outlet(one), Self::Outlet(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Eq for Network {}

/// What one command may use up. Without a delegated cgroup, memory is limited for each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Memory in MiB.
    pub memory_mb: Option<u64>,
    /// Processes and threads together.
    pub pids: Option<u32>,
    /// The largest file it may write, in MiB.
    pub file_mb: Option<u64>,
    /// Processor time in seconds for each process.
    pub cpu_s: Option<u64>,
    /// Open descriptors in each process.
    pub open_files: u64,
    /// The size of its private `/tmp` in MiB.
    pub tmp_mb: u64,
}

impl Default for ProcessLimits {
    /// 4 GiB of memory, 512 processes, files of 4 GiB, 4,096 descriptors, 1 GiB of `/tmp`: more than a
    /// build of a large project takes, less than makes a small machine unusable.
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
    /// May be read, not changed, not made if it is absent.
    ReadOnly,
    /// Neither read nor changed: an empty file or folder is seen instead.
    Hidden,
}

/// A path of the workspace that the command must not change (or see).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Relative to the workspace; compared byte by byte.
    pub path: PathBuf,
    /// What is forbidden.
    pub kind: GuardKind,
    /// Whether it is a folder; what stands in its place while it is absent.
    pub folder: bool,
    /// For a single name: also below other folders, where it exists when the command starts.
    pub any_depth: bool,
}

impl Guard {
    fn new(path: impl Into<PathBuf>, kind: GuardKind, folder: bool) -> Self {
        Self {
            path: path.into(),
            kind,
            folder,
            any_depth: false,
        }
    }

    /// A folder that may be read, not changed.
    pub fn protect_dir(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::ReadOnly, true)
    }

    /// A file that may be read, not changed.
    pub fn protect_file(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::ReadOnly, false)
    }

    /// A folder that cannot be seen.
    pub fn hide_dir(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::Hidden, true)
    }

    /// A file that cannot be seen.
    pub fn hide_file(path: impl Into<PathBuf>) -> Self {
        Self::new(path, GuardKind::Hidden, false)
    }

    /// Guards the name wherever it lies in the workspace, not only at the top.
    pub fn at_any_depth(mut self) -> Self {
        self.any_depth = true;
        self
    }
}

/// What the command sees of the machine's files besides the system's own folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    /// The folder it may change (unless it [only reads](Self::only_reads)), seen at its own absolute path; none = only `/tmp`.
    pub workspace: Option<PathBuf>,
    /// What inside the workspace it must not change or see.
    pub guards: Vec<Guard>,
    /// Paths (relative to the workspace) that lie under a guard and that this one command may change:
    /// what somebody approved. Never lifts a [`GuardKind::Hidden`].
    pub writable: Vec<PathBuf>,
    /// Further absolute paths it may read.
    pub read_only: Vec<PathBuf>,
    /// Further absolute folders it may change, unless it [only reads](Self::only_reads).
    pub read_write: Vec<PathBuf>,
    /// The toolchains it sees, on its `PATH` before the system's programs.
    pub toolchains: Option<Arc<Toolchains>>,
    /// The workspace may be read, not changed, and no file of it is executed.
    pub only_reads: bool,
    /// The command works on a copy-on-write view of the workspace, which itself stays as it is. Needs a root of its own:
    /// refused below [`Strength::NoProc`](crate::Strength::NoProc).
    pub view: Option<View>,
    /// Folders of the user's home that the command sees copies of below its own `HOME`: not below
    /// [`Strength::NoProc`](crate::Strength::NoProc), and none that a jail must not show.
    pub home: Vec<HomeFolder>,
}

/// A folder of the user's home that a command sees a copy-on-write view of below its own `HOME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeFolder {
    /// Its path on the host, absolute.
    pub folder: PathBuf,
    /// Where the command sees it, relative to its `HOME`.
    pub at: PathBuf,
    /// Where its changes go. Unlike a view of the workspace it may hold those of earlier commands.
    pub view: View,
}

/// Where the changes of a command go that works on a view: an overlay of these folders over another. Both are empty,
/// on one file system, and outside of the other folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Everything that the command changed is in here afterwards, in the form of overlayfs with `userxattr`.
    pub upper: PathBuf,
    /// The kernel's own; to be removed together with `upper`.
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
    /// What is executed.
    pub program: Program,
    /// The folder it starts in, absolute.
    pub cwd: PathBuf,
    /// The environment beside `PATH`, `HOME`, `TMPDIR`, `LANG` and `TERM`, which it always has;
    /// nothing else of this process's own is passed on.
    pub env: BTreeMap<OsString, OsString>,
    /// Folders of programs before all others in `PATH`, where the environment has no `PATH` of its own.
    pub path_first: Vec<PathBuf>,
    /// Folders of programs behind those of the system in `PATH`, likewise.
    pub path: Vec<PathBuf>,
    /// What it reads.
    pub stdin: Stdin,
    /// When the whole tree is ended, counted from the start; none = never by time.
    pub timeout: Option<Duration>,
    /// What it may use up.
    pub limits: ProcessLimits,
    /// What it sees.
    pub mounts: Mounts,
    /// What it reaches.
    pub network: Network,
    /// Bytes kept in memory of each output stream, where there is no spool.
    pub log_cap: usize,
    /// Where output goes that is too long for memory.
    pub spool: Option<Arc<Spool>>,
}

impl CommandSpec {
    /// A command with default limits, no mounts and no timeout.
    pub fn new(program: Program, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program,
            cwd: cwd.into(),
            env: BTreeMap::new(),
            path_first: Vec::new(),
            path: Vec::new(),
            stdin: Stdin::Null,
            timeout: None,
            limits: ProcessLimits::default(),
            mounts: Mounts::default(),
            network: Network::None,
            log_cap: DEFAULT_LOG_CAP,
            spool: None,
        }
    }

    /// A program with its arguments.
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

    /// A command line: executed directly where it has no shell syntax, else by a shell.
    pub fn line(line: &str, cwd: impl Into<PathBuf>) -> Self {
        match direct_words(line) {
            Some(words) => Self::argv(words, cwd),
            None => Self::new(Program::Shell(line.into()), cwd),
        }
    }

    /// The same with these mounts.
    pub fn with_mounts(mut self, mounts: Mounts) -> Self {
        self.mounts = mounts;
        self
    }

    /// The same, ended after this time.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same with one more variable.
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The same, reading these bytes.
    pub fn with_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// The same, whose long output goes to this spool.
    pub fn with_spool(mut self, spool: Option<Arc<Spool>>) -> Self {
        self.spool = spool;
        self
    }

    /// An empty log for one of its streams.
    pub(crate) fn log(&self) -> Log {
        match &self.spool {
            Some(spool) => Log::spooled(Arc::clone(spool)),
            None => Log::new(self.log_cap),
        }
    }

    /// The argument vector that is really executed.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match &self.program {
            Program::Argv(words) => words.clone(),
            Program::Shell(line) => {
                vec![SHELL.into(), "-c".into(), line.clone()]
            }
        }
    }
}
