//! The command line as typed: commands and options, before anything is resolved.
#![expect(
    clippy::doc_markdown,
    reason = "these comments are the help texts, shown as they are"
)]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod examples;
pub(crate) mod later;
mod agent;
mod hook;
mod mcp;
mod serve;
mod token;

pub(crate) use agent::Run;
pub(crate) use hook::{Exec, Hook, HookAction, HookFiles};
pub(crate) use mcp::{AddServer, ClientFile, ImportServers, Mcp, McpAction, SettingsFile};
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
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command, before or after it.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Options {
    /// The folder that tools work in [default: the current one]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Read this settings file, too
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Keep state here [default: $HAFT_HOME, or haft in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The verdict where no rule matches: read-only, workspace or trusted
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Set one setting, for example -c limits.max_calls=50
    #[arg(short = 'c', global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Let the workspace's haft.toml count in full, for this run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on stderr
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print only errors to stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to colour
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
    /// Set up this folder: fitting settings, trust, a client connected
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
    Call(Call),
    /// Run a script whose tool calls go through the executor
    #[command(after_help = examples::CHAIN)]
    Chain(Chain),
    /// Do a task: a model, its tool calls, approvals, until an answer
    #[command(after_help = examples::RUN)]
    Run(Run),
    /// Govern coding agents by their hooks: their own calls judged, asked about and recorded
    #[command(after_help = examples::HOOK)]
    Hook(Hook),
    /// Run a command in the jail, as `run_command` does
    #[command(after_help = examples::EXEC)]
    Exec(Exec),
    /// Show the policy, explain a verdict, test the rules' examples
    #[command(after_help = examples::POLICY)]
    Policy(Policy),
    /// Decide pending approvals: an inbox at a terminal, a list elsewhere
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
    /// Make, list and take back access tokens for others
    #[command(after_help = examples::TOKEN)]
    Token(Token),
    /// Check the setup and suggest fixes
    Doctor,
    /// Connect MCP clients: print their settings, or put them in place
    #[command(after_help = examples::MCP)]
    Mcp(Mcp),
    /// Print the help of a command, with examples
    Help {
        /// The command: `mcp install`; none for all
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
    /// Connect this client, too: claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, opencode
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// Connect it in the settings of this folder
    #[arg(long, requires = "client", conflicts_with = "user")]
    pub(crate) project: bool,
    /// Connect it in the user's settings, for all folders
    #[arg(long, requires = "client")]
    pub(crate) user: bool,
    /// Trust the folder with the skills that it brings, unasked
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `haft tools`.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Show this tool whole
    pub(crate) name: Option<String>,
    /// Print the exact declarations for a dialect: mcp
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
    /// Rank the tools by how well they fit a few words
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["name", "dialect"])]
    pub(crate) search: Option<String>,
}

/// What a tool is called with.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// The arguments one by one, read as the tool takes them; KEY:=JSON for any value
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub(crate) pairs: Vec<String>,
    /// The arguments as a whole: JSON, @FILE, or - for stdin
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
pub(crate) struct Call {
    /// The tool's name
    pub(crate) tool: String,
    #[command(flatten)]
    pub(crate) arguments: CallArguments,
    /// Wait for a person's decision [default: limits.approval_timeout_s]
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
    /// The script: Python in a file, or - for stdin
    pub(crate) file: PathBuf,
    /// End it after this many seconds [default: chain.total_timeout_s]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Wait for a person's decision [default: limits.approval_timeout_s]
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
    /// Say why a call would be allowed, asked about or denied
    Explain {
        /// The tool's name
        tool: String,
        #[command(flatten)]
        arguments: CallArguments,
    },
    /// Test the rules' own examples
    Check,
    /// List, edit and remove the rules kept with approvals in this workspace
    Rules {
        #[command(subcommand)]
        action: Option<RulesAction>,
    },
}

/// What to do with the rules kept with approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesAction {
    /// List them with their ids (the default)
    List,
    /// Make a rule say something else
    Edit {
        /// The rule's id, or a prefix of it that no other rule has
        id: String,
        /// The new rule, for example `Edit(/docs/**)`
        rule: String,
        /// Cover all that the rule says, not only calls like the one that was approved
        #[arg(long)]
        any_call: bool,
    },
    /// Remove a rule: calls that it covered are asked about again
    Remove {
        /// The rule's id, or a prefix of it that no other rule has
        id: String,
    },
}

/// `haft runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// List runs, newest first (the default)
    List(ListRuns),
    /// Show the calls of a run with their results, or one call whole
    Show(OfRun),
    /// Check the hash chain of a run, or of all
    Verify {
        /// The run's id, or its beginning
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// Every run there is
        #[arg(long, conflicts_with = "run")]
        all: bool,
    },
    /// Go on with an interrupted run; nothing runs twice
    Resume {
        /// The run's id
        run: String,
    },
    /// Show the files that a run changed, from before its first change to after its last
    Diff(OfRun),
    /// Take back what a run changed: shown first, all of it or nothing
    Undo {
        #[command(flatten)]
        of: OfRun,
        /// Ask nothing
        #[arg(long)]
        yes: bool,
        /// Also undo where a file was changed since: it is kept beside, as NAME.before-undo
        #[arg(long)]
        force: bool,
    },
}

/// Which runs to list.
#[derive(Debug, Args, Default)]
pub(crate) struct ListRuns {
    /// At most so many [default: 50 at a terminal]
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: Option<u32>,
    /// With a call of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    /// With a call that ended like this: failed, ok, error, denied, suspended, timeout, cancelled
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// In this state: open, suspended, closed
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Of this folder alone
    #[arg(long)]
    pub(crate) here: bool,
}

/// A run, or one call of it.
#[derive(Debug, Args)]
pub(crate) struct OfRun {
    /// The run's id
    pub(crate) run: String,
    /// One call of the run, with those made within it: call-3
    pub(crate) call: Option<String>,
}

/// `haft approvals`.
#[derive(Debug, Args)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    pub(crate) action: Option<ApprovalsAction>,
}

/// What to do about what waits.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsAction {
    /// List what is pending, oldest first (the default without a terminal)
    List {
        /// Also what was decided or has ended
        #[arg(long)]
        all: bool,
    },
    /// Show one whole: what would run, why it is asked, what it would change
    Show {
        /// The approval's id, or its beginning: ap-…
        id: String,
    },
    /// Approve it; a call that nobody waits for any more runs here
    Approve {
        /// The approval's id, or its beginning: ap-…
        id: String,
        /// Run it with these arguments instead: JSON, @FILE, or - for stdin
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        edit: Option<String>,
        /// For how long: this call, its session, or by a rule that is kept
        #[arg(long, value_name = "SCOPE")]
        scope: Option<ScopeWord>,
        /// The rule to keep, with --scope always [default: the narrowest that allows this call]
        #[arg(long, value_name = "RULE")]
        rule: Option<String>,
        /// Do not ask at the terminal; needed for a critical call where there is none
        #[arg(long)]
        yes: bool,
    },
    /// Deny it
    Deny {
        /// The approval's id, or its beginning: ap-…
        id: String,
        /// A word for the caller
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
        /// End the caller's session, too
        #[arg(long)]
        stop: bool,
    },
    /// Answer a question, or answer in place of a tool
    Answer {
        /// The approval's id, or its beginning: ap-…
        id: String,
        /// The answers by their ids: JSON, @FILE, or - for stdin; {"text": "…"} in place of a tool
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        answers: String,
    },
    /// Print what waits and whatever changes, until it is interrupted
    Watch,
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
        /// Only the bytes A to B, counted from 0 (A- from there on, -N the last N)
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
    /// List the skills found (the default)
    List,
    /// Show one whole: what it says, asks for and brings
    Show {
        /// The skill's name
        name: String,
    },
    /// Check the skill in a folder
    Check {
        /// The folder that holds SKILL.md
        dir: PathBuf,
        /// By the letter of the Agent Skills format
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
    /// List what is remembered, newest first (the default)
    List,
    /// List what waits for a decision, newest first
    Candidates,
    /// Show one whole, with its history
    Show {
        /// The memory's id: mem-…
        id: String,
    },
    /// Take a candidate in: it is recalled from then on
    Accept {
        /// The candidate's id: mem-…
        id: String,
    },
    /// Turn a candidate down; it is kept for seven days
    Reject {
        /// The candidate's id: mem-…
        id: String,
    },
    /// Find memories by words, the best first
    Search {
        /// Words, in no syntax
        query: String,
    },
    /// Add a memory of your own, which counts at once
    Add {
        /// The text; - reads it from stdin
        text: String,
        /// For you in every folder (user) or for this folder alone (project)
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        scope: String,
        /// A word to find it by; may be given several times
        #[arg(long = "tag", value_name = "TAG")]
        tags: Vec<String>,
    },
    /// Change a memory's text or tags
    Edit {
        /// The memory's id: mem-…
        id: String,
        /// The new text; - reads it from stdin; without it the text stays
        text: Option<String>,
        /// The words to find it by, in place of those it has; may be given several times
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
    /// Explain one setting: meaning, value, source, what it beat
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
    /// Take the trust back
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
