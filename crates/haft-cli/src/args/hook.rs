//! `haft hook` and `haft exec` as typed.

use clap::{Args, Subcommand};

/// `haft hook`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    override_usage = "haft hook [OPTIONS] AGENT\n       haft hook [OPTIONS] <COMMAND>"
)]
pub(crate) struct Hook {
    /// The agent that calls: claude, codex, cursor, gemini, copilot, cline, windsurf, devin, opencode, goose, droid, amp
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    #[command(subcommand)]
    pub(crate) action: Option<HookAction>,
}

/// What to do about the hooks of agents.
#[derive(Debug, Subcommand)]
pub(crate) enum HookAction {
    /// Add haft to an agent's hooks; keeps everything else in its settings
    Install(InstallHook),
    /// Remove haft from an agent's hooks
    Uninstall(HookFiles),
    /// Show which agents are governed, what is missing, what fails open and what bypasses haft
    Status {
        /// The agent [default: all installed]
        agent: Option<String>,
    },
}

/// An agent and which of its files.
#[derive(Debug, Args)]
pub(crate) struct HookFiles {
    /// The agent: claude, codex, cursor, gemini, copilot, cline, windsurf, devin, opencode, goose, droid, amp [default: all installed]
    pub(crate) agent: Option<String>,
    /// Edit this folder's files [default: the user's, for all folders]
    #[arg(long)]
    pub(crate) project: bool,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What is put in.
#[derive(Debug, Args)]
pub(crate) struct InstallHook {
    #[command(flatten)]
    pub(crate) files: HookFiles,
    /// Print what to add by hand without writing it
    #[arg(long)]
    pub(crate) print: bool,
    /// Write haft's path even if it lies in the workspace, where agents may change it
    #[arg(long)]
    pub(crate) here: bool,
}

/// `haft exec`.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The program and its arguments; a single word is a command line for the shell
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
    /// Run it on this terminal, as an editor or a REPL needs it
    #[arg(short = 't', long)]
    pub(crate) tty: bool,
    /// Run it directly in the workspace, until it ends or is stopped: a server, a watcher
    #[arg(long, conflicts_with = "tty")]
    pub(crate) background: bool,
    /// The agent's session that the command belongs to, as the hook names it
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Keep variables and functions for the session's next command
    #[arg(long, hide = true, requires = "session")]
    pub(crate) shell_state: bool,
    /// Wait for an approval decision [default: limits.approval_timeout_s]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) wait: Option<u64>,
}
