//! `haft token`: access tokens for others.

use clap::{Args, Subcommand};

/// `haft token`.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) action: Option<TokenAction>,
}

/// What to do about access tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// List the tokens: for whom, with which view, until when (the default)
    List,
    /// Make a token and print it, once: haft keeps its hash alone
    Add {
        /// For whom it is: the name that records and requests show
        name: String,
        /// The only tools that it has, as views.NAME.tools in settings says them
        #[arg(long, value_name = "NAME")]
        view: Option<String>,
        /// How many days it holds
        #[arg(long, value_name = "DAYS", default_value_t = 90)]
        days: u32,
    },
    /// Take a token back: a server that runs refuses it from its next request on
    Remove {
        /// For whom it was
        name: String,
    },
}
