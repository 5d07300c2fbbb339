//! A user's folder and a project in which haft edits settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use haft_hook::Agent;
use haft_setup::clients::{ClientProgram, InstallScope, Launch, install as client};
use haft_setup::environment::Environment;
use haft_setup::hook_settings::{self, HookEditOptions, HookLauncher, InstallEdit};
use haft_setup::problem::Problem;
use haft_setup::site::{SetupSite, StateFolder};

/// Files with their bytes, and folders.
pub(crate) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

pub(crate) struct Lab {
    root: tempfile::TempDir,
    environment: Environment,
    work: PathBuf,
    state: PathBuf,
}

/// What a program lets haft edit.
#[derive(Clone, Copy)]
pub(crate) enum Edit {
    Server(&'static ClientProgram),
    Hooks(Agent),
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "server",
            Self::Hooks(_) => "hooks",
        })
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        // Each edit is synced to its disk, and there are thousands.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let root = root.unwrap();
        let real = root.path().canonicalize().unwrap();
        for folder in ["work", "user"] {
            fs::create_dir(real.join(folder)).unwrap();
        }
        let user = real.join("user").display().to_string();
        Self {
            environment: Environment::from(&[("HOME", user.as_str())][..]),
            work: real.join("work"),
            state: real.join("state"),
            root,
        }
    }

    pub(crate) fn site(&self) -> SetupSite<'_> {
        SetupSite {
            environment: &self.environment,
            workspace: &self.work,
            home: StateFolder(&self.state),
        }
    }

    pub(crate) fn order(&self, agent: Agent, level: InstallScope) -> HookEditOptions<'_> {
        HookEditOptions {
            agent,
            level,
            site: self.site(),
            dry_run: false,
        }
    }

    pub(crate) fn install(
        &self,
        edit: Edit,
        word: &str,
        level: InstallScope,
    ) -> Result<Vec<InstallEdit>, Problem> {
        match edit {
            Edit::Server(program) => {
                let launch = Launch {
                    command: "/opt/haft".into(),
                    args: vec!["serve".into(), word.into()],
                };
                Ok(vec![client::install(
                    program,
                    level,
                    self.site(),
                    &launch,
                    false,
                )?])
            }
            Edit::Hooks(agent) => {
                let program = HookLauncher {
                    name: "/opt/haft".into(),
                    path: "/opt/haft".into(),
                    options: Vec::new(),
                };
                hook_settings::install(self.order(agent, level), &program)
            }
        }
    }

    pub(crate) fn uninstall(
        &self,
        edit: Edit,
        level: InstallScope,
    ) -> Result<Vec<InstallEdit>, Problem> {
        match edit {
            Edit::Server(program) => {
                Ok(vec![client::uninstall(program, level, self.site(), false)?])
            }
            Edit::Hooks(agent) => hook_settings::uninstall(self.order(agent, level)),
        }
    }

    /// Returns everything in the user's folders with its bytes, and the records that haft has of it.
    pub(crate) fn tree(&self) -> Tree {
        let mut found = self.user_tree();
        add(&self.state.join("settings"), &mut found);
        found
    }

    pub(crate) fn user_tree(&self) -> Tree {
        let mut found = Tree::new();
        let root = self.root.path().canonicalize().unwrap();
        for folder in ["work", "user"] {
            add(&root.join(folder), &mut found);
        }
        found
    }

    pub(crate) fn base(&self, level: InstallScope) -> PathBuf {
        match level {
            InstallScope::User => self.work.with_file_name("user"),
            InstallScope::Project => self.work.clone(),
        }
    }
}

pub(crate) fn add(folder: &Path, found: &mut Tree) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), None);
            add(&path, found);
        } else {
            found.insert(path.clone(), Some(fs::read(&path).unwrap()));
        }
    }
}
