//! `haft mcp`: clients connected and disconnected; servers looked at and pinned.

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

impl ClientFile {
    /// The same, only looked at.
    pub(crate) fn as_dry_run(&self) -> Self {
        Self {
            name: self.name.clone(),
            dry_run: true,
            ..*self
        }
    }
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
    /// List the MCP servers behind haft
    List,
    /// Start or reach a server, and show its tools, what changed since it was pinned, and what to look at
    Inspect {
        /// The server's name in settings
        name: String,
    },
    /// Take over the tools that a server has now: they are offered from then on, and no others
    Pin {
        /// The server's name in settings
        name: String,
        /// Ask nothing
        #[arg(long)]
        yes: bool,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl McpAction {
    /// Whether it is about servers behind haft: the others are about clients in front of it.
    pub(crate) fn is_about_servers(&self) -> bool {
        matches!(self, Self::List | Self::Inspect { .. } | Self::Pin { .. })
    }
}
