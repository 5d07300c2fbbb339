//! `haft serve` and `haft console`: servers, in the foreground and in the background.

use clap::Args;

/// `haft serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen here; port 0 takes a free one [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Speak MCP on stdin and stdout; opens no port unless --http is given, too
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Ask no token of callers; on loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Be the server that `haft console` starts
    #[arg(long, hide = true, conflicts_with_all = ["http", "stdio", "no_auth"])]
    pub(crate) background: bool,
}

/// `haft console`.
#[derive(Debug, Args)]
pub(crate) struct Console {
    /// Print the login link, and open nothing
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Stop the server in the background
    #[arg(long, conflicts_with = "no_open")]
    pub(crate) stop: bool,
}
