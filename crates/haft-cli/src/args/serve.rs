//! `haft serve` and `haft console`: servers, in the foreground and in the background.

use clap::Args;

/// `haft serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on; port 0 picks a free one [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Speak MCP on stdin and stdout; opens no port unless --http is also given
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Do not require a token from callers; loopback only
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Run as the background server of `haft console`
    #[arg(long, hide = true, conflicts_with_all = ["http", "stdio", "no_auth"])]
    pub(crate) background: bool,
}

/// `haft console`.
#[derive(Debug, Args)]
pub(crate) struct Console {
    /// Print the login link without opening the browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Stop the background server
    #[arg(long, conflicts_with = "no_open")]
    pub(crate) stop: bool,
}
