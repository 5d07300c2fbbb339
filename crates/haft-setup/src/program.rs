//! `SettingsProgram`: what a file in `programs/` says about the settings of one program.

use std::path::{Path, PathBuf};

use haft_hook::Agent;
use serde::Serialize;
use serde_json::{Value, json};

use crate::edit::{jsonc, toml};
use crate::environment::Environment;
use crate::launch::Launch;
use crate::plain_file;
use crate::registration::Setup;
use crate::site::SetupSite;

/// Maximum size of a settings file, in bytes: larger than any real one.
pub(crate) const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What haft knows about the settings of one program: an MCP client, a coding agent with hooks, or both.
#[derive(Debug)]
pub(crate) struct SettingsProgram {
    /// Its settings of MCP servers.
    pub(crate) client: Option<ClientProgram>,
    /// Its settings of hooks.
    pub(crate) hooks: Option<HookProgram>,
    /// What an import of its servers must know.
    pub(crate) imports: Option<ImportQuirks>,
}

/// The scope of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    /// One folder, which holds the file.
    Project,
    /// Everything that the user does with the client.
    User,
}

/// The format of a settings file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClientFileFormat {
    /// JSON, possibly with comments and trailing commas.
    Json,
    Toml,
    /// Only printed, never edited.
    Printed(fn(&Launch) -> String),
}

/// An MCP client.
#[derive(Debug)]
pub struct ClientProgram {
    /// The name that the user types.
    pub name: &'static str,
    /// Where to paste the output of `mcp snippet`.
    pub paste: &'static str,
    /// Whether the client starts servers in the folder that it works in.
    pub starts_in_project: bool,
    pub(crate) format: ClientFileFormat,
    /// The key of the object that holds the servers.
    pub(crate) servers: &'static str,
    pub(crate) entry: fn(&Launch) -> Value,
    /// The path of the project's settings file in the project.
    pub(crate) project: Option<&'static str>,
    pub(crate) user: Option<fn(&Environment) -> Option<PathBuf>>,
    /// The extension of a settings file that the client reads as well, if it has no file with the usual one.
    pub(crate) other_extension: Option<&'static str>,
    pub(crate) default: InstallScope,
}

/// An entry with a program and its arguments.
pub(crate) fn plain(launch: &Launch) -> Value {
    json!({"command": launch.command, "args": launch.args})
}

/// The same for clients that want the transport to be named.
pub(crate) fn with_type(launch: &Launch) -> Value {
    json!({"type": "stdio", "command": launch.command, "args": launch.args})
}

/// Returns a path below the user's home folder.
pub(crate) fn in_home(environment: &Environment, path: &str) -> Option<PathBuf> {
    Some(environment.folder("HOME")?.join(path))
}

/// Returns a path below the folder of the user's settings.
pub(crate) fn in_config(environment: &Environment, path: &str) -> Option<PathBuf> {
    let folder = moved_by(environment, "XDG_CONFIG_HOME", ".config")?;
    Some(folder.join(path))
}

/// Returns the folder that a variable names, or else the one of this name in the user's home folder.
pub(crate) fn moved_by(environment: &Environment, variable: &str, name: &str) -> Option<PathBuf> {
    environment
        .folder(variable)
        .or_else(|| in_home(environment, name))
}

/// How an agent has its user review hooks, by their text and position.
#[derive(Debug)]
pub(crate) struct HookReview {
    /// Counts those of haft's entries in a file that were reviewed.
    pub(crate) count: fn(SetupSite<'_>, &Path, &[HookPosition]) -> usize,
    /// What to do about those that were not.
    pub(crate) not_reviewed: &'static str,
    /// What to do about others whose position changed.
    pub(crate) moved: &'static str,
}

/// A coding agent with hooks.
#[derive(Debug)]
pub(crate) struct HookProgram {
    pub(crate) agent: Agent,
    /// The names of its programs, first the one that prints the version.
    pub(crate) programs: &'static [&'static str],
    /// Returns the folder that it makes when it is first used; `None` if there is no home folder.
    pub(crate) folder: fn(&Environment) -> Option<PathBuf>,
    /// Returns how haft is registered, for the path of haft's program.
    pub(crate) setup: fn(&str) -> Setup,
    /// Whether it starts haft by its full path. Editors start from a desktop with a `PATH` of its own, and plugins may as well.
    pub(crate) starts_by_path: bool,
    /// Its switch that denies a call when a hook fails.
    pub(crate) switch: Option<Switch>,
    /// Returns the first version that has an event, if versions without it may still be in use.
    pub(crate) since: fn(&str) -> Option<&'static str>,
    /// Returns the settings that switch its hooks off, given the folder that it makes.
    pub(crate) off: fn(&Path, SetupSite<'_>) -> Vec<HooksOff>,
    /// Whether haft makes the first of several files that can hold the hooks, if there is none; else the last.
    pub(crate) makes_first_file: bool,
    /// How it reviews hooks, if it skips those that its user has not reviewed.
    pub(crate) review: Option<HookReview>,
}

impl HookProgram {
    /// Returns an agent that starts haft by its name and has none of the special settings.
    pub(crate) const fn new(
        agent: Agent,
        programs: &'static [&'static str],
        folder: fn(&Environment) -> Option<PathBuf>,
        setup: fn(&str) -> Setup,
    ) -> Self {
        Self {
            agent,
            programs,
            folder,
            setup,
            starts_by_path: false,
            switch: None,
            since: |_| None,
            off: |_, _| Vec::new(),
            makes_first_file: false,
            review: None,
        }
    }
}

/// An agent's switch, which `haft hook install` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// The switch as an entry has it.
    pub text: &'static str,
    /// The first version that knows it, if older ones have hooks, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<&'static str>,
}

/// A setting that switches an agent's hooks off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HooksOff {
    pub(crate) file: PathBuf,
    pub(crate) setting: &'static str,
}

impl HooksOff {
    /// Returns the files in which this member is true.
    pub(crate) fn by_member(
        files: impl IntoIterator<Item = PathBuf>,
        member: &'static str,
    ) -> Vec<Self> {
        let files = files.into_iter();
        files
            .filter(|file| read_json(file)[member] == true)
            .map(|file| Self {
                file,
                setting: member,
            })
            .collect()
    }
}

/// The entry of one event, as haft writes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookRegistration {
    pub(crate) event: String,
    pub(crate) value: Value,
}

/// An entry of haft in a file of hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookPosition {
    pub(crate) event: String,
    /// Its position in the event's list, or that of its group.
    pub(crate) item: usize,
    /// Its position in the group.
    pub(crate) handler: Option<usize>,
    /// The tools that the group is for, if not for all.
    pub(crate) matcher: Option<String>,
    /// The words of its command.
    pub(crate) words: Vec<String>,
    /// How many entries of the event come after it.
    pub(crate) behind: usize,
    /// Whether its group holds nothing but haft.
    pub(crate) is_alone: bool,
}

/// Reads a file of JSON; `null` if that fails.
pub(crate) fn read_json(file: &Path) -> Value {
    let text = plain_file::read(file, MAX_BYTES).unwrap_or_default();
    jsonc::read(&text).unwrap_or_default()
}

/// Reads a file of TOML; an empty table if that fails.
pub(crate) fn read_toml(file: &Path) -> Value {
    let text = plain_file::read(file, MAX_BYTES).unwrap_or_default();
    let table = toml::parse(&text).unwrap_or_default();
    serde_json::to_value(table).unwrap_or_default()
}

/// The files of a program at a level, besides that of its MCP client.
pub(crate) type MoreFiles = fn(SetupSite<'_>, InstallScope) -> Vec<PathBuf>;

/// What an import of a program's servers must know.
#[derive(Debug)]
pub(crate) struct ImportQuirks {
    /// The name of the client.
    pub(crate) client: &'static str,
    /// The ends of the paths of its files.
    pub(crate) path_ends: &'static [&'static str],
    /// The ends of other files that can only be its own.
    pub(crate) extensions: &'static [&'static str],
    /// Further files with servers.
    pub(crate) server_files: MoreFiles,
    /// Further files with rules about the tools of servers.
    pub(crate) rule_files: MoreFiles,
    /// The manifest of its plugin packages.
    pub(crate) manifest: Option<&'static str>,
    /// The variables for the workspace.
    pub(crate) workspace_names: &'static [&'static str],
    /// The variables for the folder of a plugin package.
    pub(crate) package_names: &'static [&'static str],
    /// Turns its variables into the form `${NAME}`.
    pub(crate) convert: Option<fn(&str) -> String>,
    /// Whether it inserts files into texts: an import does not do what the client would not.
    pub(crate) inserts_files: bool,
    /// Whether `timeout` is in milliseconds; else in seconds.
    pub(crate) in_milliseconds: bool,
    /// Whether a plain `url` means the transport of 2024-11-05.
    pub(crate) url_is_sse: bool,
}

impl ImportQuirks {
    /// Returns a client whose files are recognised by the ends of their paths, without special settings.
    pub(crate) const fn new(client: &'static str, path_ends: &'static [&'static str]) -> Self {
        Self {
            client,
            path_ends,
            extensions: &[],
            server_files: |_, _| Vec::new(),
            rule_files: |_, _| Vec::new(),
            manifest: None,
            workspace_names: &[],
            package_names: &[],
            convert: None,
            inserts_files: false,
            in_milliseconds: false,
            url_is_sse: false,
        }
    }
}

/// Whether a text is the name of a variable.
pub(crate) fn is_variable(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
