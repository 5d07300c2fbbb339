//! `haft approvals`: requests listed, shown and decided.

use clap::{Subcommand, ValueEnum};

use super::ScopeWord;

/// What to do about what waits.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsAction {
    /// List what is pending, oldest first (the default without a terminal)
    List {
        /// Also list decided and expired requests
        #[arg(long)]
        all: bool,
    },
    /// Show a request in full: what would run, why approval is needed, what it would change
    Show {
        /// The request's id or a unique prefix of it: ap-…
        id: String,
        /// Show this file alone and whole, before and after: what the request does not show of it
        #[arg(long, value_name = "PATH")]
        file: Option<String>,
        /// Where to begin in the file, in bytes
        #[arg(long, value_name = "BYTES", requires = "file", default_value_t = 0)]
        offset: u64,
    },
    /// Approve a request; if its client is gone, the call runs here
    Approve {
        /// The request's id or a unique prefix of it: ap-…
        id: String,
        /// Run it with these arguments instead: JSON, @FILE, or - for stdin
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        edit: Option<String>,
        /// How long the approval holds: for this call, for its session, or always, by a saved rule
        #[arg(long, value_name = "SCOPE")]
        scope: Option<ScopeWord>,
        /// The rule to save with --scope always [default: the narrowest that allows this call]
        #[arg(long, value_name = "RULE")]
        rule: Option<String>,
        /// Do not ask at the terminal; required for a critical call without a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Deny a request
    Deny {
        /// The request's id or a unique prefix of it: ap-…
        id: String,
        /// A message for the caller
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        /// Also end the caller's session
        #[arg(long)]
        stop: bool,
    },
    /// Answer the questions of a request, or answer in place of the tool
    Answer {
        /// The request's id or a unique prefix of it: ap-…
        id: String,
        /// The answers by question id: JSON, @FILE, or - for stdin; {"text": "…"} in place of a tool
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        answers: String,
    },
    /// List what the reviewer said of requests, newest first; say whether you would have said the same; or show how often
    Review {
        /// The request's id or a unique prefix of it: ap-…
        #[arg(conflicts_with = "stats")]
        id: Option<String>,
        /// Whether you would have said what the reviewer said
        #[arg(value_enum)]
        word: Option<ReviewWord>,
        /// Show figures: verdicts, failures and cost by class, and how often a person said otherwise
        #[arg(long)]
        stats: bool,
        /// Maximum number of requests to list
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Print pending requests and every change, until interrupted
    Watch,
}

/// What a person says of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReviewWord {
    /// The person would have said the same
    Agree,
    /// The person would have said otherwise
    Disagree,
}
