//! `Invocation`: what one start of haft stands on: options, environment, workspace, home, screen.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use haft_sandbox::Places;

use crate::approvals::rule;
use crate::args::Options;
use crate::environment::Environment;
use crate::home::Home;
use crate::problem::{Place, Problem};
use crate::screen::{Screen, visible};
use crate::settings::{FILE_NAME, Inputs, Settings};
use crate::trust::Trust;

/// What every command is given.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// As typed.
    pub(crate) options: Options,
    /// As started.
    pub(crate) environment: Environment,
    /// The workspace's real path.
    pub(crate) workspace: PathBuf,
    /// The state folder; not made yet.
    pub(crate) home: Home,
    /// Where to print.
    pub(crate) screen: Screen,
}

impl Invocation {
    /// Finds workspace and home.
    pub(crate) fn new(options: Options) -> Result<Self, Problem> {
        let environment = Environment::read();
        let workspace = workspace(options.workspace.as_deref())?;
        if options.workspace.is_some() {
            check_workspace(&workspace)?;
        }
        let home = Home::locate(options.home.as_deref(), &environment)?;
        Ok(Self {
            screen: Screen::new(&options),
            options,
            environment,
            workspace,
            home,
        })
    }

    /// Refuses a home folder, or one that holds it, for what runs tools in the workspace. Other commands may
    /// be given there: they only look at haft's own state.
    pub(crate) fn check_workspace(&self) -> Result<(), Problem> {
        check_workspace(&self.workspace)
    }

    /// Reads all settings; asks once about a folder with a haft.toml of its own, where somebody can answer.
    pub(crate) fn settings(&self) -> Result<Settings, Problem> {
        let mut trust = Trust::load(&self.home)?;
        let trusted = self.options.trust || trust.trusts(&self.workspace);
        let settings = self.resolve(trusted)?;
        if trusted || settings.warnings.is_empty() {
            return Ok(self.told(settings));
        }
        if trust.declined(&self.workspace) || !somebody_is_there() {
            return Ok(self.told(settings));
        }
        let yes = self.ask_for_trust(&settings)?;
        trust.set(&self.workspace, yes)?;
        trust.save(&self.home)?;
        if yes {
            Ok(self.told(self.resolve(true)?))
        } else {
            Ok(settings)
        }
    }

    fn resolve(&self, trusted: bool) -> Result<Settings, Problem> {
        let always = rule::file(self.home.path(), &self.workspace.to_string_lossy());
        Settings::resolve(&Inputs {
            always: Some(&always),
            environment: &self.environment,
            workspace: &self.workspace,
            trusted,
            config: self.options.config.as_deref(),
            options: &self.options.set,
            profile: self.options.profile.as_deref(),
        })
    }

    fn told(&self, settings: Settings) -> Settings {
        for warning in &settings.warnings {
            self.screen.warn(&visible::line(warning));
        }
        settings
    }

    fn ask_for_trust(&self, settings: &Settings) -> Result<bool, Problem> {
        for warning in &settings.warnings {
            self.screen.err(&visible::line(warning));
        }
        let folder = visible::line(&self.workspace.display().to_string());
        self.screen.err(&format!(
            "trust {folder}? Its {FILE_NAME} could then allow calls. [y/N]"
        ));
        let mut answer = String::new();
        io::stdin()
            .lock()
            .read_line(&mut answer)
            .map_err(|e| Problem::failed(format!("read the answer: {e}")))?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}

/// Whether a person sees a question and can answer it.
pub(crate) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The one place that decides which folder tools may work in.
fn check_workspace(folder: &Path) -> Result<(), Problem> {
    let places = Places::default();
    let Some(home) = places.home_within(folder) else {
        return Ok(());
    };
    let what = if home == folder {
        "the workspace is your home folder: tools would reach keys, tokens and start-up files"
    } else {
        "the workspace holds your home folder: tools would reach keys, tokens and start-up files"
    };
    Err(Problem::usage(what)
        .at(Place::file(folder))
        .advise("work in a folder of its own: change to it, or name it with --workspace"))
}

fn workspace(option: Option<&Path>) -> Result<PathBuf, Problem> {
    let given = option.unwrap_or(Path::new("."));
    let wrong = |what: String| {
        Problem::usage(what)
            .at(Place::file(given))
            .advise("--workspace takes an existing folder")
    };
    let real = given
        .canonicalize()
        .map_err(|e| wrong(format!("find the workspace: {e}")))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(wrong("the workspace is not a folder".to_owned()))
    }
}
