//! `haft hook` and `haft exec` as typed.

use clap::Args;

/// `haft hook`.
#[derive(Debug, Args)]
pub(crate) struct Hook {
    /// The agent that calls: claude, codex, cursor, gemini, copilot, cline, windsurf, devin, opencode, goose, droid, amp
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
}

/// `haft exec`.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// The program and its arguments; one word alone is a line for the shell
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
    /// Wait for a person's decision [default: limits.approval_timeout_s]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) wait: Option<u64>,
}
