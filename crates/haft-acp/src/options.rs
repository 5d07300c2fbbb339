//! `AcpOptions`: what applies to every session: state folder, settings, model.

use std::path::{Path, PathBuf};

use haft_app::config::Settings;
use haft_app::environment::Environment;
use haft_app::home::Home;
use haft_app::notices::Notices;
use haft_app::problem::Problem;
use haft_app::run::ApprovalWait;
use haft_app::site::{Overrides, Site};

/// The options given by the user who starts the agent, for every session.
#[derive(Debug)]
pub struct AcpOptions {
    /// haft's state folder.
    pub home: Home,
    /// The variables of the process.
    pub environment: Environment,
    /// A settings file (`--config`).
    pub config: Option<PathBuf>,
    /// Individual settings as `key=value` (`-c`).
    pub set: Vec<String>,
    /// The profile (`--profile`).
    pub profile: Option<String>,
    /// Whether every folder's own settings apply (`--trust`).
    pub trust: bool,
    /// The model as `PROVIDER:MODEL`; `None` = `model.default`.
    pub model: Option<String>,
    /// A base URL other than the provider's own.
    pub base_url: Option<String>,
    /// Skills loaded when a session starts.
    pub skills: Vec<String>,
    /// Maximum number of replies to one prompt.
    pub max_turns: Option<u32>,
    /// How long calls wait for a decision.
    pub wait: ApprovalWait,
    /// Where warnings go, in addition to the client.
    pub notices: Notices,
}

impl AcpOptions {
    /// Returns the site of a session in this folder.
    pub(crate) fn site(&self, folder: &Path) -> Result<Site, Problem> {
        if !folder.is_absolute() {
            let what = format!("the session's folder is {:?}", folder.display().to_string());
            return Err(Problem::usage(what).advise("`cwd` is an absolute path"));
        }
        Site::new(folder, self.home.clone(), self.environment.clone())
    }

    /// Returns the settings that apply there now. As for a command, the folder's own apply in full if the user trusts the folder.
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
