//! The command line as typed: commands and options, before anything is resolved.
#![expect(
    clippy::doc_markdown,
    reason = "these comments are the help texts, shown as they are"
)]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod examples;
pub(crate) mod unknown;
mod agent;
mod approvals;
mod hook;
mod mcp;
mod runs;
mod serve;
mod token;

pub(crate) use agent::AgentRunCommand;
pub(crate) use approvals::{ApprovalsAction, ReviewWord};
pub(crate) use hook::{Exec, Hook, HookAction, HookFiles};
pub(crate) use mcp::{AddServer, ClientFileArgs, ImportServers, Mcp, McpAction, SettingsFileArgs};
pub(crate) use runs::{ExportFormat, ListRuns, RunSelector, Runs, RunsAction, VerifyRuns};
pub(crate) use serve::{Console, Serve};
pub(crate) use token::{Token, TokenAction};

/// The tool runtime for agents: one governed path between a language model and the world.
#[derive(Debug, Parser)]
#[command(name = "haft", version, after_help = examples::ROOT, arg_required_else_help = true)]
#[command(
    infer_long_args = false,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command, before or after it.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "Common options")]
pub(crate) struct GlobalOptions {
    /// The folder that tools work in [default: the current one]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Also read this settings file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for haft's state [default: $HAFT_HOME, or haft in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The verdict where no rule matches: read-only, workspace or trusted
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Set one setting, for example -c limits.max_calls=50
    #[arg(short = 'c', global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Trust the workspace's haft.toml for this run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print more to stderr
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print only errors to stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    // At a terminal, unless `NO_COLOR` or `TERM=dumb` says no. (A doc comment here would make every --help long.)
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set up this folder: write settings, trust it, connect a client
    #[command(after_help = examples::INIT)]
    Init(Init),
    /// Serve the governed tools over MCP, with the HTTP API
    #[command(after_help = examples::SERVE)]
    Serve(Serve),
    /// Open the console in the browser, for all folders
    #[command(after_help = examples::CONSOLE)]
    Console(Console),
    /// List tools, or show one
    #[command(after_help = examples::TOOLS)]
    Tools(Tools),
    /// Call a tool
    #[command(after_help = examples::CALL)]
    Call(CallCommand),
    /// Run a script whose tool calls go through the executor
    #[command(after_help = examples::CHAIN)]
    Chain(Chain),
    /// Run an agent: a model works on a task until it answers
    #[command(after_help = examples::RUN)]
    Run(AgentRunCommand),
    /// Govern coding agents through their hooks: check, ask about and record their own calls
    #[command(after_help = examples::HOOK)]
    Hook(Hook),
    /// Run a command in the jail, as `run_command` does
    #[command(after_help = examples::EXEC)]
    Exec(Exec),
    /// Show the policy, explain a verdict, test the examples of rules
    #[command(after_help = examples::POLICY)]
    Policy(Policy),
    /// List and decide pending approval requests
    #[command(after_help = examples::APPROVALS)]
    Approvals(Approvals),
    /// List, inspect, verify and resume runs
    #[command(after_help = examples::RUNS)]
    Runs(Runs),
    /// List and read artifacts: large results
    Artifacts(Artifacts),
    /// List, show and check skills
    Skills(Skills),
    /// List memories, and accept or reject proposed ones
    Memory(Memory),
    /// Show settings and where each value comes from
    Config(Config),
    /// Trust a folder's own settings and skills
    Trust(Trust),
    /// Create, list and revoke access tokens for others
    #[command(after_help = examples::TOKEN)]
    Token(Token),
    /// Check the setup and suggest fixes
    Doctor,
    /// Connect MCP clients to haft, and MCP servers behind it
    #[command(after_help = examples::MCP)]
    Mcp(Mcp),
    /// Print the help of a command, with examples
    Help {
        /// The command, for example `mcp install` [default: all]
        command: Vec<String>,
    },
    /// Print the version
    Version,
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// `haft init`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Init {
    /// Also connect this client, by its hooks if it has any: claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, opencode
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// Also make haft an MCP server of a client that has hooks
    #[arg(long, requires = "client")]
    pub(crate) mcp: bool,
    /// Connect it in this folder's settings
    #[arg(long, requires = "client", conflicts_with = "user")]
    pub(crate) project: bool,
    /// Connect it in the user's settings, for all folders
    #[arg(long, requires = "client")]
    pub(crate) user: bool,
    /// Trust the folder and its skills, and edit the client's hooks, without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print what would be written without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `haft tools`.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Show this tool in full
    pub(crate) name: Option<String>,
    /// Print the exact declarations for a dialect: mcp, openai-chat, openai-responses, anthropic, gemini
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
    /// Search the tools and rank them by relevance
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["name", "dialect"])]
    pub(crate) search: Option<String>,
}

/// What a tool is called with.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// Single arguments, read by the tool's schema; KEY:=JSON for any JSON value
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub(crate) pairs: Vec<String>,
    /// All arguments as one object: JSON, @FILE, or - for stdin
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(crate) args: Option<String>,
}

impl CallArguments {
    /// Whether they come from stdin, which then cannot answer questions.
    pub(crate) fn are_from_stdin(&self) -> bool {
        self.args.as_deref() == Some("-")
    }
}

/// `haft call`.
#[derive(Debug, Args)]
pub(crate) struct CallCommand {
    /// The tool's name
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) arguments: CallArguments,
    /// Wait for an approval decision [default: limits.approval_timeout_s]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[expect(
        clippy::option_option,
        reason = "absent, given bare, given with a number: clap's own form"
    )]
    pub(crate) wait: Option<Option<u64>>,
}

/// `haft chain`.
#[derive(Debug, Args)]
pub(crate) struct Chain {
    /// The Python script: a file, or - for stdin
    pub(crate) file: PathBuf,
    /// Stop it after this many seconds [default: chain.total_timeout_s]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Wait for approval decisions, at most chain.approval_timeout_s each
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[expect(
        clippy::option_option,
        reason = "absent, given bare, given with a number: clap's own form"
    )]
    pub(crate) wait: Option<Option<u64>>,
}

/// `haft policy`.
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) action: Option<PolicyAction>,
}

/// What to do with the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Print the effective policy (the default)
    Show,
    /// Explain why a call would be allowed, asked about or denied
    Explain {
        /// The tool's name
        tool: String,
        #[command(flatten)]
        arguments: CallArguments,
    },
    /// Test the examples of the rules
    Check,
    /// Show what changed settings, or a rule of an approval, let through
    Diff(PolicyDiffArguments),
    /// List, edit and remove the rules that approvals added in this workspace
    Rules {
        #[command(subcommand)]
        action: Option<RulesAction>,
    },
}

/// `haft policy diff`.
#[derive(Debug, Args)]
pub(crate) struct PolicyDiffArguments {
    /// The old settings file; it counts alone, over the built-in values
    #[arg(required_unless_present = "kept")]
    pub(crate) old: Option<PathBuf>,
    /// The new settings file
    #[arg(required_unless_present = "kept")]
    pub(crate) new: Option<PathBuf>,
    /// The id of a rule that an approval added (`haft policy rules`): what it lets through beyond all others
    #[arg(long, value_name = "ID", conflicts_with_all = ["old", "new"])]
    pub(crate) kept: Option<String>,
}

/// What to do with the rules kept with approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesAction {
    /// List these rules with their ids (the default)
    List,
    /// Replace a rule
    Edit {
        /// The rule's id, or a unique prefix of it
        id: String,
        /// The new rule, for example `Edit(/docs/**)`
        rule: String,
        /// Apply the rule to every call that it matches, not only to calls like the approved one
        #[arg(long)]
        any_call: bool,
    },
    /// Remove a rule: haft asks again about the calls that it covered
    Remove {
        /// The rule's id, or a unique prefix of it
        id: String,
    },
}

/// `haft approvals`.
#[derive(Debug, Args)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    pub(crate) action: Option<ApprovalsAction>,
}

/// How long an approval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ScopeWord {
    // For this call.
    #[default]
    Once,
    // Until the session ends.
    Session,
    // By a rule that is kept for this workspace.
    Always,
}

/// `haft artifacts`.
#[derive(Debug, Args)]
pub(crate) struct Artifacts {
    #[command(subcommand)]
    pub(crate) action: Option<ArtifactsAction>,
}

/// What to do with artifacts.
#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactsAction {
    /// List artifacts, newest first (the default)
    List,
    /// Print an artifact's bytes
    Get {
        /// The ref: sha256-…
        #[arg(value_name = "REF")]
        reference: String,
        /// Only bytes A to B, counted from 0 (A- to the end, -N for the last N)
        #[arg(long, value_name = "A-B", allow_hyphen_values = true)]
        range: Option<String>,
    },
}

/// `haft skills`.
#[derive(Debug, Args)]
pub(crate) struct Skills {
    #[command(subcommand)]
    pub(crate) action: Option<SkillsAction>,
}

/// What to do with skills.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsAction {
    /// List the available skills (the default)
    List,
    /// Show a skill in full: its instructions, requests and files
    Show {
        /// The skill's name
        name: String,
    },
    /// Check the skill in a folder
    Check {
        /// The folder that holds SKILL.md
        dir: PathBuf,
        /// Apply the Agent Skills format strictly
        #[arg(long)]
        strict: bool,
    },
}

/// `haft memory`.
#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) action: Option<MemoryAction>,
}

/// What to do with memories.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryAction {
    /// List memories, newest first (the default)
    List,
    /// List memory candidates, newest first
    Candidates,
    /// Show a memory in full, with its history
    Show {
        /// The memory's id: mem-…
        id: String,
    },
    /// Accept a candidate, so that it is recalled from now on
    Accept {
        /// The candidate's id: mem-…
        id: String,
    },
    /// Reject a candidate; haft keeps it for seven days
    Reject {
        /// The candidate's id: mem-…
        id: String,
    },
    /// Search memories, best match first
    Search {
        /// Search words, without any syntax
        query: String,
    },
    /// Add a memory of your own; it is accepted at once
    Add {
        /// The text; - reads it from stdin
        text: String,
        /// For every folder (user) or only this folder (project)
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        scope: String,
        /// A tag; may be given several times
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
    },
    /// Change a memory's text or tags
    Edit {
        /// The memory's id: mem-…
        id: String,
        /// The new text; - reads it from stdin [default: the old text]
        text: Option<String>,
        /// A tag, replacing the old tags; may be given several times
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
    },
    /// Remove a memory with its history
    Remove {
        /// The memory's id: mem-…
        id: String,
    },
}

/// `haft config`.
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: Option<ConfigAction>,
}

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print all settings and where each comes from (the default)
    Show,
    /// Explain one setting: its meaning, value and source, and which values it overrides
    Explain {
        /// The key, as in haft.toml: limits.max_calls
        key: String,
    },
    /// Print the JSON Schema of haft.toml
    Schema,
    /// Write a commented haft.toml to the workspace
    Init,
}

/// `haft trust`.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// The folder [default: the workspace]
    pub(crate) dir: Option<PathBuf>,
    /// Revoke the trust
    #[arg(long)]
    pub(crate) remove: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
