//! `AcpOptions`: what holds for every session: state folder, settings, model.

use std::path::{Path, PathBuf};

use haft_app::config::Settings;
use haft_app::environment::Environment;
use haft_app::home::Home;
use haft_app::notices::Notices;
use haft_app::problem::Problem;
use haft_app::run::ApprovalWait;
use haft_app::site::{Overrides, Site};

/// What the user who starts the agent says, for every session.
#[derive(Debug)]
pub struct AcpOptions {
    /// haft's state folder.
    pub home: Home,
    /// The variables of the process.
    pub environment: Environment,
    /// A settings file (`--config`).
    pub config: Option<PathBuf>,
    /// Single settings as `key=value` (`-c`).
    pub set: Vec<String>,
    /// The profile (`--profile`).
    pub profile: Option<String>,
    /// Whether every folder's own settings count (`--trust`).
    pub trust: bool,
    /// The model as `PROVIDER:MODEL`; `model.default` where nothing is said.
    pub model: Option<String>,
    /// Another address than the provider's own.
    pub base_url: Option<String>,
    /// Skills that are loaded when a session begins.
    pub skills: Vec<String>,
    /// Replies to one prompt.
    pub max_turns: Option<u32>,
    /// How long calls wait for a decision.
    pub wait: ApprovalWait,
    /// Where warnings go, beside the client.
    pub notices: Notices,
}

impl AcpOptions {
    /// Where a session in this folder works.
    pub(crate) fn site(&self, folder: &Path) -> Result<Site, Problem> {
        if !folder.is_absolute() {
            let what = format!("the session's folder is {:?}", folder.display().to_string());
            return Err(Problem::usage(what).advise("`cwd` is an absolute path"));
        }
        Site::new(folder, self.home.clone(), self.environment.clone())
    }

    /// The settings that hold there now. As for a command, the folder's own count in full where a person trusts the folder.
    pub(crate) fn settings(&self, site: &Site) -> Result<Settings, Problem> {
        let trusted = self.trust || site.trust()?.trusts(&site.workspace);
        let overrides = Overrides {
            config: self.config.as_deref(),
            options: &self.set,
            profile: self.profile.as_deref(),
        };
        site.settings(&overrides, trusted)
    }
}
