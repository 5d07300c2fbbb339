//! MCP clients: where each stores its settings, and how it is told to start haft.

use std::path::{Path, PathBuf};

use haft_hook::Agent;
use serde_json::json;

use crate::nearest::nearest;
use crate::problem::Problem;
use crate::program::ClientFileFormat;
use crate::programs;
use crate::site::SetupSite;

pub use crate::launch::Launch;
pub use crate::program::{ClientProgram, InstallScope};

pub mod install;
pub mod settings_file;

/// The name of haft's entry in a client's settings.
pub const SERVER: &str = "haft";

impl ClientProgram {
    /// Finds a client by its name, or by that of its agent: `claude` is `claude-code`.
    ///
    /// # Errors
    /// A [`Problem`] that lists the known clients.
    pub fn find(name: &str) -> Result<&'static Self, Problem> {
        programs::client_named(name).ok_or_else(|| {
            if Agent::from_name(name).is_some() {
                let what = format!("haft knows no settings of `{name}` for MCP servers");
                return Problem::usage(what)
                    .advise(format!("its hooks work: haft hook install {name}"));
            }
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
        programs::clients().map(|client| client.name).collect()
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
            ClientFileFormat::Printed(snippet) => snippet(launch),
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
            _ if matches!(self.format, ClientFileFormat::Printed(_)) => Err(Problem::usage(
                format!("haft does not edit the settings of {}", self.name),
            )
            .advise(format!("paste them: haft mcp snippet {}", self.name))),
            InstallScope::Project => {
                let file = self
                    .project
                    .ok_or_else(|| missing("one project").advise("install it with --user"))?;
                Ok(self.existing(site.workspace.join(file)))
            }
            InstallScope::User => {
                let user = self.user.and_then(|user| user(site.environment));
                let file = user.ok_or_else(|| {
                    Problem::failed("there is no home folder: HOME is not set")
                        .advise("set HOME to an absolute path")
                })?;
                Ok(self.existing(file))
            }
        }
    }

    /// Returns the variant of a settings file that exists.
    fn existing(&self, file: PathBuf) -> PathBuf {
        let other = self.other_extension.map(|other| file.with_extension(other));
        let other = other.filter(|other| !file.exists() && other.exists());
        other.unwrap_or(file)
    }
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
