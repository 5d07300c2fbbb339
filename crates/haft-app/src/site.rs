//! `Site`: where an application works: the workspace, haft's state folder, the process's variables.

use std::path::{Path, PathBuf};

use haft_sandbox::Places;
use haft_setup::site::{SetupSite, StateFolder};

use crate::config::program::ProgramSettings;
use crate::config::{LayerInputs, Settings};
use crate::environment::Environment;
use crate::home::{Home, rule_file};
use crate::plain_file::name_loop;
use crate::problem::{Problem, SourceLocation};
use crate::trust::TrustStore;

/// Where an application works.
#[derive(Debug, Clone)]
pub struct Site {
    /// The variables of the process at its start.
    pub environment: Environment,
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    /// The state folder, which may not exist yet.
    pub home: Home,
}

/// Settings that the user gives in addition to the files and variables that are always read.
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
    /// Finds the workspace (by default the current folder) and the state folder.
    ///
    /// # Errors
    /// The workspace is not a folder, is a home folder or contains one; or no state folder can be found.
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

    /// Returns a site of known parts.
    ///
    /// # Errors
    /// The workspace is not a folder, or is a home folder or contains one.
    pub fn new(workspace: &Path, home: Home, environment: Environment) -> Result<Self, Problem> {
        let real = real(Some(workspace))?;
        check_workspace(&real)?;
        Ok(Self {
            environment,
            workspace: real,
            home,
        })
    }

    /// Returns whether it works in a folder of the user: the background server works in an empty folder of haft's own.
    pub fn has_folder(&self) -> bool {
        let home = self.home.path();
        let real = home.canonicalize();
        !self.workspace.starts_with(real.as_deref().unwrap_or(home))
    }

    /// Refuses a home folder, or a folder that contains one, for anything that runs tools in the workspace. Other commands work there: they
    /// only read haft's own state.
    ///
    /// # Errors
    /// The workspace is a home folder or contains one.
    pub fn check_workspace(&self) -> Result<(), Problem> {
        check_workspace(&self.workspace)
    }

    /// Returns what edits of other programs' settings need of it.
    pub fn setup(&self) -> SetupSite<'_> {
        SetupSite {
            environment: &self.environment,
            workspace: &self.workspace,
            home: StateFolder(self.home.path()),
        }
    }

    /// Reads the trust store.
    ///
    /// # Errors
    /// The store cannot be read or is damaged.
    pub fn trust(&self) -> Result<TrustStore, Problem> {
        TrustStore::load(&self.home)
    }

    /// Reads all settings. `trusted` says whether the workspace's own take full effect.
    ///
    /// # Errors
    /// A file cannot be read, or a key or value in it is wrong.
    pub fn settings(&self, overrides: &Overrides<'_>, trusted: bool) -> Result<Settings, Problem> {
        let always = rule_file(self.home.path(), &self.workspace.to_string_lossy());
        Settings::resolve(&LayerInputs {
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

    /// Reads the settings of a program that embeds the application. `trusted` says whether the workspace's own take full effect, if the
    /// program uses the machine's settings.
    ///
    /// # Errors
    /// A key or value is wrong, or a file cannot be read.
    pub fn settings_of(
        &self,
        program: &ProgramSettings,
        trusted: bool,
    ) -> Result<Settings, Problem> {
        let always = rule_file(self.home.path(), &self.workspace.to_string_lossy());
        Settings::resolve(&LayerInputs {
            always: Some(&always),
            trusted,
            program: Some(program),
            ..LayerInputs::new(&self.environment, &self.workspace)
        })
    }
}

/// Decides which folders tools may work in; nothing else does.
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
        .at(SourceLocation::file(folder))
        .advise("work in a folder of its own: change to it, or name it with --workspace"))
}

fn real(option: Option<&Path>) -> Result<PathBuf, Problem> {
    let given = option.unwrap_or(Path::new("."));
    let wrong = |what: String| {
        Problem::usage(what)
            .at(SourceLocation::file(given))
            .advise("--workspace takes an existing folder")
    };
    let real = given
        .canonicalize()
        .map_err(|e| wrong(format!("cannot find the workspace: {}", name_loop(e))))?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(wrong("the workspace is not a folder".to_owned()))
    }
}
