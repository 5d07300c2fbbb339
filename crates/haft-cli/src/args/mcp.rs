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

/// Which of haft's settings files is edited.
#[derive(Debug, Args)]
pub(crate) struct SettingsFile {
    /// In the user's settings, for all folders (the default)
    #[arg(long, conflicts_with = "here")]
    pub(crate) global: bool,
    /// In the haft.toml of this folder
    #[arg(long)]
    pub(crate) here: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A server to be put behind haft.
#[derive(Debug, Args)]
pub(crate) struct AddServer {
    /// Its name: its tools are named NAME.tool
    pub(crate) name: String,
    /// The address of a server that speaks Streamable HTTP
    #[arg(
        value_name = "URL",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub(crate) url: Option<String>,
    /// A variable of its process; a secret as ${env:NAME} or ${file:PATH}
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header of every request to it; a secret as ${env:NAME} or ${file:PATH}
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,
    /// The folder that its process starts in
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) cwd: Option<PathBuf>,
    /// What its process reaches: all that this machine does, or nothing [default: none]
    #[arg(long, value_parser = ["host", "none"], conflicts_with = "url")]
    pub(crate) network: Option<String>,
    /// A folder that its process reads
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) read: Vec<PathBuf>,
    /// A folder that its process changes
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) write: Vec<PathBuf>,
    /// Believe what its tools say of themselves
    #[arg(long)]
    pub(crate) trusted: bool,
    #[command(flatten)]
    pub(crate) file: SettingsFile,
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
    /// Another name for a server: a name is taken once
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<String>,
    /// Copy secrets that stand in those settings as they are
    #[arg(long)]
    pub(crate) copy_secrets: bool,
    /// What the processes reach: all that this machine does, or nothing [default: none]
    #[arg(long, value_parser = ["host", "none"])]
    pub(crate) network: Option<String>,
    #[command(flatten)]
    pub(crate) file: SettingsFile,
    /// Ask nothing
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
    /// Put a server behind haft: into the settings, which keep everything else in them
    Add(AddServer),
    /// Take a server out of the settings again, and forget what was pinned of it
    Remove {
        /// The server's name in settings
        name: String,
        #[command(flatten)]
        file: SettingsFile,
    },
    /// Put the servers of other clients behind haft: Claude Code and Desktop, Cursor, VS Code, Codex, Goose, Gemini CLI, Zed
    Import(ImportServers),
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
    /// Sign in at a server that wants to know who asks: prints the address of the page that lets haft in
    Login {
        /// The server's name in settings
        name: String,
    },
    /// Forget what lets haft in at a server
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
