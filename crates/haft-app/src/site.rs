//! `Site`: where an application works: the workspace, haft's state folder, the variables of the process.

use std::path::{Path, PathBuf};

use haft_sandbox::Places;

use crate::config::program::Program;
use crate::config::{Inputs, Settings};
use crate::environment::Environment;
use crate::home::Home;
use crate::problem::{Place, Problem};
use crate::rules;
use crate::trust::Trust;

/// Where an application works.
#[derive(Debug, Clone)]
pub struct Site {
    /// The variables of the process, as it was started.
    pub environment: Environment,
    /// The workspace's real path.
    pub workspace: PathBuf,
    /// The state folder; not made yet.
    pub home: Home,
}

/// What the user says about settings beside the files and variables that are always read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides<'a> {
    /// A settings file (`--config`): trusted.
    pub config: Option<&'a Path>,
    /// Single settings as `key=value` (`-c`), in order.
    pub options: &'a [String],
    /// The profile (`--profile`).
    pub profile: Option<&'a str>,
}

impl Site {
    /// Finds the workspace (the current folder where none is named) and the state folder.
    ///
    /// # Errors
    /// The workspace is no folder, is a home folder or holds one; or no state folder can be found.
    pub fn find(
        workspace: Option<&Path>,
        home: Option<&Path>,
        environment: Environment,
    ) -> Result<Self, Problem> {
        let real = real(workspace)?;
        if workspace.is_some() {
            check_workspace(&real)?;
        }
        let home = Home::locate(home, &environment)?;
        Ok(Self {
            environment,
            workspace: real,
            home,
        })
    }

    /// A site whose parts are known.
    ///
    /// # Errors
    /// The workspace is no folder, or is a home folder or holds one.
    pub fn new(workspace: &Path, home: Home, environment: Environment) -> Result<Self, Problem> {
        let real = real(Some(workspace))?;
        check_workspace(&real)?;
        Ok(Self {
            environment,
            workspace: real,
            home,
        })
    }

    /// Whether it works in a folder of the user's: the server in the background stands in one of haft's own, where nothing lies.
    pub fn has_folder(&self) -> bool {
        let home = self.home.path();
        let real = home.canonicalize();
        !self.workspace.starts_with(real.as_deref().unwrap_or(home))
    }

    /// Refuses a home folder, or one that holds it, for what runs tools in the workspace. Other commands may be given there:
    /// they only look at haft's own state.
    ///
    /// # Errors
    /// The workspace is a home folder or holds one.
    pub fn check_workspace(&self) -> Result<(), Problem> {
        check_workspace(&self.workspace)
    }

    /// Reads the trust store.
    ///
    /// # Errors
    /// The store cannot be read or is damaged.
    pub fn trust(&self) -> Result<Trust, Problem> {
        Trust::load(&self.home)
    }

    /// Reads all settings. `trusted` is whether the workspace's own count in full.
    ///
    /// # Errors
    /// A file cannot be read, or a key or value in it is wrong.
    pub fn settings(&self, overrides: &Overrides<'_>, trusted: bool) -> Result<Settings, Problem> {
        let always = rules::file(self.home.path(), &self.workspace.to_string_lossy());
        Settings::resolve(&Inputs {
            always: Some(&always),
            environment: &self.environment,
            workspace: &self.workspace,
            trusted,
            config: overrides.config,
            options: overrides.options,
            profile: overrides.profile,
            program: None,
        })
    }

    /// Reads the settings of a program that embeds the application. `trusted` is whether the workspace's own count in full, where the
    /// program wants those of the machine.
    ///
    /// # Errors
    /// A key or value is wrong, or a file that is to be read cannot be.
    pub fn settings_of(&self, program: &Program, trusted: bool) -> Result<Settings, Problem> {
        let always = rules::file(self.home.path(), &self.workspace.to_string_lossy());
        Settings::resolve(&Inputs {
            always: Some(&always),
            trusted,
            program: Some(program),
            ..Inputs::new(&self.environment, &self.workspace)
        })
    }
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

fn real(option: Option<&Path>) -> Result<PathBuf, Problem> {
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
