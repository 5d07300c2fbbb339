//! `Invocation`: one start of haft: options, site, screen.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;

use haft::approval::Approver;
use haft_app::changeable::changeable;
use haft_app::clients::text_of;
use haft_app::config::{FILE_NAME, Settings};
use haft_app::environment::Environment;
use haft_app::host::{ApproverParts, Host, MakeApprover};
use haft_app::notices::Notices;
use haft_app::problem::Problem;
use haft_app::reload::LoadSettings;
use haft_app::site::{Overrides, Site};
use haft_app::trust::{TrustChoice, TrustStore, trust_command};
use haft_sandbox::Places;

use crate::args::GlobalOptions;
use crate::screen::{Screen, visible};
use crate::terminal::Terminal;
use crate::terminal::typed::TypedLines;

/// The context of every command.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// The options, as typed.
    pub(crate) options: GlobalOptions,
    /// Workspace, state folder and variables.
    pub(crate) site: Site,
    /// Where to print.
    pub(crate) screen: Screen,
    /// The lines typed at the terminal.
    pub(crate) lines: TypedLines,
}

impl Invocation {
    /// Finds the workspace and the state folder.
    pub(crate) fn new(options: GlobalOptions) -> Result<Self, Problem> {
        let site = Site::find(
            options.workspace.as_deref(),
            options.home.as_deref(),
            Environment::read(),
        )?;
        Ok(Self {
            screen: Screen::new(&options),
            options,
            site,
            lines: TypedLines::default(),
        })
    }

    /// Reads all settings; asks once about a folder with its own haft.toml, if a user can answer.
    pub(crate) fn settings(&self) -> Result<Settings, Problem> {
        let trust = self.site.trust()?;
        let trusted = self.options.trust || trust.trusts(&self.site.workspace);
        let settings = self.resolve(trusted)?;
        if trusted || settings.warnings.is_empty() {
            return Ok(self.warned(settings));
        }
        if trust.declined(&self.site.workspace) || !is_interactive() {
            return Ok(self.warned(settings));
        }
        let yes = self.ask_for_trust(&settings)?;
        let answer = if yes {
            TrustChoice::Trust
        } else {
            TrustChoice::Decline
        };
        TrustStore::change(&self.site.home, &self.site.workspace, answer)?;
        if yes {
            Ok(self.warned(self.resolve(true)?))
        } else {
            Ok(settings)
        }
    }

    /// Reads all settings as [`settings`](Self::settings) does, but does not ask.
    pub(crate) fn settings_unasked(&self) -> Result<Settings, Problem> {
        let trusted = self.options.trust || self.site.trust()?.trusts(&self.site.workspace);
        Ok(self.warned(self.resolve(trusted)?))
    }

    /// Returns what is haft's own and what tools may change, from which no program is started. If the settings do not load, only
    /// programs of the system are started.
    pub(crate) fn places(&self) -> Places {
        let settings = self.settings_with(&[]);
        settings.map_or_else(
            |_| Places::default(),
            |settings| changeable(&self.site, &settings),
        )
    }

    /// Reads all settings with additional options after the typed ones; does not ask or print anything.
    pub(crate) fn settings_with(&self, options: &[String]) -> Result<Settings, Problem> {
        let trusted = self.options.trust || self.site.trust()?.trusts(&self.site.workspace);
        let all = [&self.options.set[..], options].concat();
        let overrides = Overrides {
            options: &all,
            ..self.overrides()
        };
        self.site.settings(&overrides, trusted)
    }

    /// Returns a function that reads all settings again as [`settings`](Self::settings) does, but does not ask.
    pub(crate) fn reload(&self) -> LoadSettings {
        let at = self.clone();
        Box::new(move || {
            let trusted = at.options.trust || at.site.trust()?.trusts(&at.site.workspace);
            let settings = at.resolve(trusted)?;
            Ok(settings)
        })
    }

    /// Returns what this command provides to an application. `asks` tells whether the user at this terminal may be asked.
    pub(crate) fn host(&self, asks: bool) -> Host {
        let (screen, lines) = (self.screen, self.lines.clone());
        let approver = (asks && is_interactive()).then(|| -> MakeApprover {
            Box::new(move |parts: ApproverParts| -> Arc<dyn Approver> {
                Arc::new(Terminal::new(screen, parts, lines))
            })
        });
        Host {
            approver,
            notices: Notices::new(move |text| screen.warn(&visible::line(text))),
            ..Host::default()
        }
    }

    /// Returns the command line that trusts the workspace, as it can be typed in any folder, for the state folder of this command.
    pub(crate) fn trust_command(&self) -> String {
        let home = self.options.home.as_ref().map(|_| self.site.home.path());
        let line = trust_command(&self.site.workspace, home);
        visible::line(&line)
    }

    /// Returns the common options for another start of haft, from any folder and with other variables. `workspace` tells whether to name
    /// the folder even if the user did not.
    pub(crate) fn carried(&self, workspace: bool) -> Result<Vec<String>, Problem> {
        let mut args = Vec::new();
        let mut option = |name: &str, value: String| args.extend([name.to_owned(), value]);
        if workspace || self.options.workspace.is_some() {
            option("--workspace", text_of(&self.site.workspace)?);
        }
        let variable = self.site.environment.get("HAFT_HOME");
        if self.options.home.is_some() || variable.is_some_and(|home| !home.is_empty()) {
            option("--home", text_of(self.site.home.path())?);
        }
        if let Some(config) = &self.options.config {
            let absolute = std::path::absolute(config)
                .map_err(|e| Problem::failed(format!("cannot find the settings file: {e}")))?;
            option("--config", text_of(&absolute)?);
        }
        if let Some(profile) = &self.options.profile {
            option("--profile", profile.clone());
        }
        for set in &self.options.set {
            option("-c", set.clone());
        }
        if self.options.trust {
            args.push("--trust".to_owned());
        }
        Ok(args)
    }

    fn resolve(&self, trusted: bool) -> Result<Settings, Problem> {
        self.site.settings(&self.overrides(), trusted)
    }

    fn overrides(&self) -> Overrides<'_> {
        Overrides {
            config: self.options.config.as_deref(),
            options: &self.options.set,
            profile: self.options.profile.as_deref(),
        }
    }

    fn warned(&self, settings: Settings) -> Settings {
        for warning in &settings.warnings {
            self.screen.warn(&visible::line(warning));
        }
        settings
    }

    fn ask_for_trust(&self, settings: &Settings) -> Result<bool, Problem> {
        for warning in &settings.warnings {
            self.screen.err(&visible::line(warning));
        }
        let folder = visible::line(&self.site.workspace.display().to_string());
        self.screen.err(&format!(
            "trust {folder}? Its {FILE_NAME} could then allow calls. [y/N]"
        ));
        yes()
    }
}

/// Reads the answer to a question; anything but a yes is a no.
pub(crate) fn yes() -> Result<bool, Problem> {
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|e| Problem::failed(format!("cannot read the answer: {e}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Returns whether a user sees a prompt and can answer it.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
