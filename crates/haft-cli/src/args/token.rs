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
    /// List the tokens with their names, views and expiry dates (the default)
    List,
    /// Create a token and print it once; haft stores only its hash
    Add {
        /// The name of its holder, which records and requests show
        name: String,
        /// The view that limits its tools: NAME of a views.NAME setting
        #[arg(long, value_name = "NAME")]
        view: Option<String>,
        /// Days until it expires
        #[arg(long, value_name = "DAYS", default_value_t = 90)]
        days: u32,
    },
    /// Revoke a token: a running server refuses it from the next request on
    Remove {
        /// The name of its holder
        name: String,
    },
}
