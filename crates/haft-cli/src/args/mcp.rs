//! `haft mcp`: clients connected and disconnected.

use std::ffi::OsString;

use clap::{Args, Subcommand};

/// `haft mcp`.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) action: McpAction,
}

/// A client and which of its settings files.
#[derive(Debug, Args)]
pub(crate) struct ClientFile {
    /// The client: claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, opencode
    #[arg(value_name = "CLIENT")]
    pub(crate) name: String,
    /// In the settings of this folder [default: where the client has such]
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// In the user's settings, for all folders
    #[arg(long)]
    pub(crate) user: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What to do about MCP.
#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Print the settings that connect a client to haft
    Snippet {
        /// The client: claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, opencode, goose
        client: String,
    },
    /// Connect a client: add haft to its settings and keep everything else in them
    Install {
        #[command(flatten)]
        client: ClientFile,
    },
    /// Take haft out of a client's settings again
    Uninstall {
        #[command(flatten)]
        client: ClientFile,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}
