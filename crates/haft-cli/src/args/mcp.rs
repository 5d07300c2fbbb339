//! `haft mcp`: connects and disconnects clients; adds, imports, inspects and pins servers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `haft mcp`.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) action: McpAction,
}

/// A client and which of its settings files.
#[derive(Debug, Args)]
pub(crate) struct ClientFileArgs {
    /// The client: claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, opencode
    #[arg(value_name = "CLIENT")]
    pub(crate) name: String,
    /// Edit this folder's settings [default: if the client has such settings]
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// Edit the user's settings, for all folders
    #[arg(long)]
    pub(crate) user: bool,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl ClientFileArgs {
    /// The same, only looked at.
    pub(crate) fn as_dry_run(&self) -> Self {
        Self {
            name: self.name.clone(),
            dry_run: true,
            ..*self
        }
    }
}

/// Which of haft's settings files is edited.
#[derive(Debug, Args)]
pub(crate) struct SettingsFileArgs {
    /// Edit the user's settings, for all folders (the default)
    #[arg(long, conflicts_with = "here")]
    pub(crate) global: bool,
    /// Edit the haft.toml of this folder
    #[arg(long)]
    pub(crate) here: bool,
    /// Show what would change without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A server to be put behind haft.
#[derive(Debug, Args)]
pub(crate) struct AddServer {
    /// The server's name; its tools are named NAME.tool
    pub(crate) name: String,
    /// The URL of a server that speaks Streamable HTTP
    #[arg(
        value_name = "URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub(crate) url: Option<String>,
    /// An environment variable for the server's process; secrets as ${env:NAME} or ${file:PATH}
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// An HTTP header for every request to the server; secrets as ${env:NAME} or ${file:PATH}
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,
    /// The folder that the server's process starts in
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) cwd: Option<PathBuf>,
    /// What the server's process may connect to: whatever this machine can reach, or nothing [default: none]
    #[arg(long, value_parser = ["host", "none"], conflicts_with = "url")]
    pub(crate) network: Option<String>,
    /// A folder that the server's process may read
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) read: Vec<PathBuf>,
    /// A folder that the server's process may change
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) write: Vec<PathBuf>,
    /// Believe the hints that the server's tools declare
    #[arg(long)]
    pub(crate) trusted: bool,
    #[command(flatten)]
    pub(crate) file: SettingsFileArgs,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Servers of other settings to be put behind haft.
#[derive(Debug, Args)]
pub(crate) struct ImportServers {
    /// A client's settings file, or the folder of a plugin [default: those of the clients that haft knows]
    #[arg(value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Import a server under another name
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<String>,
    /// Copy secrets that are written out in those settings
    #[arg(long)]
    pub(crate) copy_secrets: bool,
    /// What the processes may connect to: whatever this machine can reach, or nothing [default: none]
    #[arg(long, value_parser = ["host", "none"])]
    pub(crate) network: Option<String>,
    #[command(flatten)]
    pub(crate) file: SettingsFileArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What to do about MCP.
#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Print the settings that connect a client to haft
    Snippet {
        /// The client: claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, opencode, goose
        client: String,
    },
    /// Connect a client: add haft to its settings; keeps everything else in them
    Install {
        #[command(flatten)]
        client: ClientFileArgs,
        /// Write haft's path even if it lies in the workspace, where agents may change it
        #[arg(long)]
        here: bool,
    },
    /// Remove haft from a client's settings
    Uninstall {
        #[command(flatten)]
        client: ClientFileArgs,
    },
    /// List the MCP servers behind haft
    List,
    /// Add a server behind haft to the settings; keeps everything else in them
    Add(AddServer),
    /// Remove a server from the settings and delete its pins
    Remove {
        /// The server's name in settings
        name: String,
        #[command(flatten)]
        file: SettingsFileArgs,
    },
    /// Import the servers of other clients: Claude Code and Desktop, Cursor, VS Code, Codex, Goose, Gemini CLI, Zed
    Import(ImportServers),
    /// Start or connect to a server and show its tools, what changed since it was pinned, and what to review
    Inspect {
        /// The server's name in settings
        name: String,
    },
    /// Pin the tools that a server has now: only these are offered from now on
    Pin {
        /// The server's name in settings
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Sign in to a server that requires OAuth: prints the URL of the page to open
    Login {
        /// The server's name in settings
        name: String,
    },
    /// Sign out of a server: revoke haft's tokens for it if possible, and delete them
    Logout {
        /// The server's name in settings
        name: String,
    },
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

impl McpAction {
    /// Whether it is about servers behind haft: the others are about clients in front of it.
    pub(crate) fn is_about_servers(&self) -> bool {
        matches!(
            self,
            Self::List
                | Self::Inspect { .. }
                | Self::Pin { .. }
                | Self::Login { .. }
                | Self::Logout { .. }
        )
    }
}
