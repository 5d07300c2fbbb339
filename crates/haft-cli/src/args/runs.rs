//! `haft runs` as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `haft runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// List runs, newest first (the default)
    List(ListRuns),
    /// Show the calls of a run with their results, or one call in full
    Show(RunSelector),
    /// Verify the hash chain of a run, or of all runs, or the signed log of all finished runs
    Verify(VerifyRuns),
    /// Print the public key of the log; keep a copy of it elsewhere
    LogKey,
    /// Print a run's record as JSON lines, for programs that collect them
    Export {
        /// The run's id, or a unique prefix of it
        run: String,
        /// The lines as recorded, or as events of the Open Cybersecurity Schema Framework
        #[arg(long, value_name = "FORMAT", value_enum, default_value = "record")]
        format: ExportFormat,
    },
    /// Resume a suspended or interrupted run; nothing runs twice
    Resume {
        /// The run's id
        run: String,
    },
    /// List what clients' runs have read that counts for their next ones, or forget it
    Marks {
        /// Forget it, and which files such runs wrote
        #[arg(long)]
        clear: bool,
        /// Only of this client
        #[arg(long, value_name = "NAME")]
        client: Option<String>,
    },
    /// End the commands of a run that serve or work in the background, or one of them
    Stop {
        /// The run's id, or a unique prefix of it
        run: String,
        /// The task to end, as `haft runs show` lists it
        command: Option<String>,
    },
    /// Open a port of a run's server to browsers of this machine, until Ctrl-C
    Expose {
        /// The run's id, or a unique prefix of it
        run: String,
        /// The port at which a command of the run serves
        #[arg(value_parser = clap::value_parser!(u16).range(1024..))]
        port: u16,
    },
    /// Show the files that a run changed, from before its first change to after its last one
    Diff(RunSelector),
    /// Undo the changes of a run: shows them first; undoes all or nothing
    Undo {
        #[command(flatten)]
        of: RunSelector,
        /// Undo the whole session of the agent that the run belongs to, the last call first, until one cannot be undone
        #[arg(long, conflicts_with = "call")]
        session: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        /// Also undo files that have changed since; their current version is saved as NAME.before-undo
        #[arg(long)]
        force: bool,
    },
}

/// What to verify.
#[derive(Debug, Args)]
pub(crate) struct VerifyRuns {
    /// The run's id, or a unique prefix of it
    #[arg(required_unless_present_any = ["all", "log"])]
    pub(crate) run: Option<String>,
    /// Verify every run
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
    /// Verify the signed log of all finished runs, and the record of each
    #[arg(long, conflicts_with_all = ["run", "all"])]
    pub(crate) log: bool,
    /// A file with checkpoints of the log that were kept elsewhere; may be given several times
    #[arg(long = "checkpoint", value_name = "FILE", requires = "log")]
    pub(crate) checkpoints: Vec<PathBuf>,
    /// The key that must have signed, as `haft runs log-key` printed it [default: that of record.key]
    #[arg(long, value_name = "KEY", requires = "log")]
    pub(crate) key: Option<String>,
    /// Records of runs that ended before this day or time (RFC 3339) may have been deleted
    #[arg(long, value_name = "TIME", requires = "log")]
    pub(crate) kept_since: Option<String>,
}

/// How a run is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExportFormat {
    // The lines of the record.
    #[default]
    Record,
    // Events of the Open Cybersecurity Schema Framework.
    Ocsf,
}

/// Which runs to list.
#[derive(Debug, Args, Default)]
pub(crate) struct ListRuns {
    /// The most runs to list [default: 50 at a terminal]
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,
    /// Only runs with a call of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// Only runs with a call that ended like this: failed, ok, error, denied, suspended, timeout, cancelled
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only runs in this state: open, suspended, closed
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Only runs of this folder
    #[arg(long)]
    pub(crate) here: bool,
}

/// A run, or one call of it.
#[derive(Debug, Args)]
pub(crate) struct RunSelector {
    /// The run's id
    pub(crate) run: String,
    /// One call of the run and the calls made within it, for example call-3
    pub(crate) call: Option<String>,
}
