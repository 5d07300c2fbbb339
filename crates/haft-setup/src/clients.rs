//! MCP clients: where each stores its settings, and how it is told to start haft.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::environment::Environment;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::site::SetupSite;

pub use crate::launch::Launch;

pub mod install;
pub mod settings_file;

/// The name of haft's entry in a client's settings.
pub const SERVER: &str = "haft";

/// The scope of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallScope {
    /// One folder, which holds the file.
    Project,
    /// Everything that the user does with the client.
    User,
}

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientFileFormat {
    /// JSON, possibly with comments and trailing commas.
    Json,
    Toml,
    /// Only printed, never edited.
    Yaml,
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
    format: ClientFileFormat,
    /// The key of the object that holds the servers.
    servers: &'static str,
    entry: fn(&Launch) -> Value,
    /// The path of the project's settings file in the project.
    project: Option<&'static str>,
    user: Option<fn(&Environment) -> Option<PathBuf>>,
    default: InstallScope,
}

const CLIENTS: [ClientProgram; 9] = [
    ClientProgram {
        name: "claude-code",
        paste: ".mcp.json in the project",
        starts_in_project: true,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: with_type,
        project: Some(".mcp.json"),
        user: Some(claude_code),
        default: InstallScope::Project,
    },
    ClientProgram {
        name: "claude-desktop",
        paste: "claude_desktop_config.json",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: plain,
        project: None,
        user: Some(|env| Some(config(env)?.join("Claude/claude_desktop_config.json"))),
        default: InstallScope::User,
    },
    ClientProgram {
        name: "cursor",
        paste: ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: plain,
        project: Some(".cursor/mcp.json"),
        user: Some(|env| Some(env.folder("HOME")?.join(".cursor/mcp.json"))),
        default: InstallScope::Project,
    },
    ClientProgram {
        name: "vscode",
        paste: ".vscode/mcp.json in the project",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "servers",
        entry: with_type,
        project: Some(".vscode/mcp.json"),
        user: Some(|env| Some(config(env)?.join("Code/User/mcp.json"))),
        default: InstallScope::Project,
    },
    ClientProgram {
        name: "codex",
        paste: "~/.codex/config.toml",
        starts_in_project: true,
        format: ClientFileFormat::Toml,
        servers: "mcp_servers",
        entry: plain,
        project: Some(".codex/config.toml"),
        user: Some(codex),
        // Codex ignores a project's own file until the user trusts the project.
        default: InstallScope::User,
    },
    ClientProgram {
        name: "gemini",
        paste: ".gemini/settings.json in the project, or ~/.gemini/settings.json",
        starts_in_project: true,
        format: ClientFileFormat::Json,
        servers: "mcpServers",
        entry: plain,
        project: Some(".gemini/settings.json"),
        user: Some(|env| Some(env.folder("HOME")?.join(".gemini/settings.json"))),
        default: InstallScope::Project,
    },
    ClientProgram {
        name: "zed",
        paste: "~/.config/zed/settings.json",
        starts_in_project: false,
        format: ClientFileFormat::Json,
        servers: "context_servers",
        entry: zed,
        project: None,
        user: Some(|env| Some(config(env)?.join("zed/settings.json"))),
        default: InstallScope::User,
    },
    ClientProgram {
        name: "opencode",
        paste: "opencode.json in the project, or ~/.config/opencode/opencode.json",
        starts_in_project: true,
        format: ClientFileFormat::Json,
        servers: "mcp",
        entry: opencode,
        project: Some("opencode.json"),
        user: Some(|env| Some(config(env)?.join("opencode/opencode.json"))),
        default: InstallScope::Project,
    },
    ClientProgram {
        name: "goose",
        paste: "~/.config/goose/config.yaml",
        starts_in_project: false,
        format: ClientFileFormat::Yaml,
        servers: "extensions",
        entry: plain,
        project: None,
        user: None,
        default: InstallScope::User,
    },
];

impl ClientProgram {
    /// Finds a client by name; `gemini-cli` is an alias of `gemini`.
    ///
    /// # Errors
    /// A [`Problem`] that lists the known clients.
    pub fn find(name: &str) -> Result<&'static Self, Problem> {
        let wanted = if name == "gemini-cli" { "gemini" } else { name };
        let client = CLIENTS.iter().find(|client| client.name == wanted);
        client.ok_or_else(|| {
            let names = Self::names();
            let near = nearest(name, &names).map(|near| format!("did you mean `{near}`? "));
            Problem::usage(format!("unknown client `{name}`")).advise(format!(
                "{}there are {}",
                near.unwrap_or_default(),
                names.join(", ")
            ))
        })
    }

    /// Returns the names of all clients.
    pub fn names() -> Vec<&'static str> {
        CLIENTS.iter().map(|client| client.name).collect()
    }

    /// Returns the level to use if the user names none.
    pub fn level(&self, asked: Option<InstallScope>) -> InstallScope {
        asked.unwrap_or(self.default)
    }

    /// Returns whether the client has settings at this level that haft can edit.
    pub fn has(&self, level: InstallScope) -> bool {
        match level {
            InstallScope::Project => self.project.is_some(),
            InstallScope::User => self.user.is_some(),
        }
    }

    /// Returns the settings that connect the client, ready to paste.
    pub fn snippet(&self, launch: &Launch) -> String {
        let entry = (self.entry)(launch);
        match self.format {
            ClientFileFormat::Json => format!("{:#}\n", json!({ self.servers: { SERVER: entry } })),
            ClientFileFormat::Toml => launch.to_toml(self.servers, SERVER),
            ClientFileFormat::Yaml => goose(launch),
        }
    }

    /// Returns the path of the settings file of this level.
    ///
    /// # Errors
    /// A [`Problem`] if the client has no such file or haft does not edit it.
    pub fn file(&self, level: InstallScope, site: SetupSite<'_>) -> Result<PathBuf, Problem> {
        let missing =
            |what: &str| Problem::usage(format!("{} has no settings for {what}", self.name));
        match level {
            _ if self.format == ClientFileFormat::Yaml => Err(Problem::usage(format!(
                "haft does not edit the settings of {}",
                self.name
            ))
            .advise(format!("paste them: haft mcp snippet {}", self.name))),
            InstallScope::Project => {
                let file = self
                    .project
                    .ok_or_else(|| missing("one project").advise("install it with --user"))?;
                Ok(existing(site.workspace.join(file)))
            }
            InstallScope::User => {
                let user = self.user.and_then(|user| user(site.environment));
                let file = user.ok_or_else(|| {
                    Problem::failed("there is no home folder: HOME is not set")
                        .advise("set HOME to an absolute path")
                })?;
                Ok(existing(file))
            }
        }
    }
}

/// Returns the variant of `opencode.json` that exists: opencode also reads `opencode.jsonc`.
fn existing(file: PathBuf) -> PathBuf {
    let other = file.with_extension("jsonc");
    let opencode = file.file_name().is_some_and(|name| name == "opencode.json");
    if opencode && !file.exists() && other.exists() {
        other
    } else {
        file
    }
}

/// Returns the folder of the user's settings.
fn config(environment: &Environment) -> Option<PathBuf> {
    let home = || Some(environment.folder("HOME")?.join(".config"));
    environment.folder("XDG_CONFIG_HOME").or_else(home)
}

fn claude_code(environment: &Environment) -> Option<PathBuf> {
    let folder = environment
        .folder("CLAUDE_CONFIG_DIR")
        .or_else(|| environment.folder("HOME"))?;
    Some(folder.join(".claude.json"))
}

fn codex(environment: &Environment) -> Option<PathBuf> {
    let home = || Some(environment.folder("HOME")?.join(".codex"));
    let folder = environment.folder("CODEX_HOME").or_else(home)?;
    Some(folder.join("config.toml"))
}

fn plain(launch: &Launch) -> Value {
    json!({"command": launch.command, "args": launch.args})
}

fn with_type(launch: &Launch) -> Value {
    json!({"type": "stdio", "command": launch.command, "args": launch.args})
}

fn zed(launch: &Launch) -> Value {
    json!({"command": launch.command, "args": launch.args, "env": {}})
}

fn opencode(launch: &Launch) -> Value {
    let mut command = vec![launch.command.clone()];
    command.extend(launch.args.iter().cloned());
    json!({"type": "local", "command": command, "enabled": true})
}

/// Every JSON string is a YAML string.
fn goose(launch: &Launch) -> String {
    let args: Vec<String> = launch
        .args
        .iter()
        .map(|arg| format!("      - {}\n", json!(arg)))
        .collect();
    format!(
        "extensions:\n  haft:\n    type: stdio\n    name: haft\n    enabled: true\n    timeout: 600\n    cmd: {}\n    args:\n{}",
        json!(launch.command),
        args.concat()
    )
}

/// Returns a path as text for settings.
///
/// # Errors
/// A [`Problem`] if the path is not UTF-8.
pub fn text_of(path: &Path) -> Result<String, Problem> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Problem::failed(format!(
            "{} is not UTF-8; the settings of a client cannot hold it",
            path.display()
        ))
    })
}
