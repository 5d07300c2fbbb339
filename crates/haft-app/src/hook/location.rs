//! `Location`: which project an agent's call belongs to, where its relative paths start, and what is uncertain about that.

use std::path::{Path, PathBuf};

use haft_hook::{CallAction, HookEvent};

use crate::config::FILE_NAME;
use crate::problem::Problem;
use crate::site::Site;

/// Maximum number of folders that a doubt names.
const NAMED: usize = 8;

/// Where a call works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The project: its files are the workspace, and its settings count.
    pub(super) workspace: PathBuf,
    /// The folder where relative paths start.
    pub(super) start: PathBuf,
    /// What a person has to look at, whatever rules say.
    pub(super) doubts: Vec<Doubt>,
}

/// A reason why haft cannot know what a call would touch or which rules apply to it. Such a call is asked about, whatever rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Relative paths start in one of these open folders, and the agent does not say which.
    SeveralFolders(Vec<PathBuf>),
    /// A settings file in a folder above, which the user has neither trusted nor declined.
    OuterSettings(PathBuf),
    /// A rule asks about the agent's tool of this name, wherever its command runs.
    Named(String),
}

impl Doubt {
    /// The effect that a person is asked about: its kind and its value.
    pub(super) fn to_effect(&self) -> (&'static str, String) {
        match self {
            Self::SeveralFolders(folders) => {
                let named = folders.iter().take(NAMED);
                let mut names: Vec<String> = named.map(|one| one.display().to_string()).collect();
                if folders.len() > NAMED {
                    names.push(format!("{} more", folders.len() - NAMED));
                }
                (
                    "using relative paths in one of several open folders:",
                    names.join(", "),
                )
            }
            Self::Named(tool) => ("running a tool that rules ask about:", tool.clone()),
            Self::OuterSettings(file) => (
                "working below settings that are neither trusted nor declined:",
                file.display().to_string(),
            ),
        }
    }

    /// The doubt as one text.
    pub(super) fn to_text(&self) -> String {
        let (kind, value) = self.to_effect();
        format!("{kind} {value}")
    }
}

impl Location {
    /// Locates the call of an event. `named` is the folder that the hook's process was started for.
    ///
    /// # Errors
    /// The agent names no folder that exists, or haft cannot read the trust store.
    pub(super) fn of(
        event: &HookEvent,
        named: Option<&Path>,
        site: &Site,
    ) -> Result<Self, Problem> {
        let missing = || {
            let what = "the agent names no folder that exists, so the call cannot be judged";
            Problem::failed(what).advise("start the agent in a folder that exists")
        };
        let roots = distinct_folders(&event.workspace_roots);
        let several = roots.len() > 1;
        let from = match roots.first() {
            _ if several => choose_root(&roots, event),
            Some(root) => Some(root),
            None if event.workspace_roots.is_empty() => None,
            None => return Err(missing()),
        };
        let first = roots.first().map(PathBuf::as_path);
        // A hook may be started in `/` or in the home folder, whatever the agent works in; no project holds the home folder.
        let home = home_of(site);
        let named =
            named.filter(|named| event.cwd.is_none() || !holds_home(home.as_deref(), named));
        let from = from.map(PathBuf::as_path).or(first).or(named);
        let from = from.or(event.cwd.as_deref()).ok_or_else(missing)?;
        let from = from.canonicalize().map_err(|_| missing())?;
        let mut doubts = Vec::new();
        let is_relative = || {
            event
                .call()
                .is_none_or(|call| has_relative_path(&call.actions))
        };
        if several && event.cwd.is_none() && is_relative() {
            doubts.push(Doubt::SeveralFolders(roots));
        }
        let (workspace, outer) = find_project(&from, site)?;
        doubts.extend(outer.map(Doubt::OuterSettings));
        let start = match &event.cwd {
            Some(cwd) => from.join(cwd),
            None => from,
        };
        if !start.is_dir() {
            // It is unknown which folder an agent falls back to.
            return Err(missing());
        }
        Ok(Self {
            workspace,
            start,
            doubts,
        })
    }
}

/// Returns the folders that exist, by their real paths, each once.
fn distinct_folders(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in folders.iter().filter_map(|one| one.canonicalize().ok()) {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

/// Chooses the open folder that a call works in: the one around the agent's folder, else the one around every absolute path that the call
/// names.
fn choose_root<'r>(roots: &'r [PathBuf], event: &HookEvent) -> Option<&'r PathBuf> {
    if let Some(cwd) = &event.cwd {
        return innermost_root(roots, cwd);
    }
    let call = event.call()?;
    let mut paths = call.actions.iter().filter_map(absolute_path).map(Path::new);
    let root = innermost_root(roots, paths.next()?)?;
    paths
        .all(|path| innermost_root(roots, path) == Some(root))
        .then_some(root)
}

/// Returns the innermost of these folders that a path is in.
fn innermost_root<'r>(roots: &'r [PathBuf], path: &Path) -> Option<&'r PathBuf> {
    let real = path
        .ancestors()
        .find_map(|folder| folder.canonicalize().ok())?;
    let around = roots.iter().filter(|root| real.starts_with(root));
    around.max_by_key(|root| root.as_os_str().len())
}

/// The absolute path that an action works at, if it names one.
fn absolute_path(action: &CallAction) -> Option<&str> {
    let path = match action {
        CallAction::Command(command) => command.cwd.as_deref()?,
        CallAction::Read { path } | CallAction::Edit { path, .. } => path,
        _ => return None,
    };
    path.starts_with('/').then_some(path)
}

/// Whether one of these actions depends on the folder that the agent works in.
fn has_relative_path(actions: &[CallAction]) -> bool {
    actions.iter().any(|action| match action {
        CallAction::Command(_) => absolute_path(action).is_none(),
        CallAction::Read { path } | CallAction::Edit { path, .. } => !path.starts_with(['/', '~']),
        _ => false,
    })
}

/// Returns the user's home folder, by its real path if it exists.
fn home_of(site: &Site) -> Option<PathBuf> {
    let home = site.environment.folder("HOME");
    home.map(|home| home.canonicalize().unwrap_or(home))
}

/// Whether the home folder is this folder, or below it.
fn holds_home(home: Option<&Path>, folder: &Path) -> bool {
    let real = folder.canonicalize();
    home.is_some_and(|home| home.starts_with(real.as_deref().unwrap_or(folder)))
}

/// Finds the project around a folder, and a settings file above the project that the user has neither trusted nor declined.
///
/// The project is the nearest folder with settings that the user trusts, so that an agent cannot escape them by making a repository or
/// settings in a folder below. Without trusted settings, it is the nearest folder with settings or a repository.
fn find_project(from: &Path, site: &Site) -> Result<(PathBuf, Option<PathBuf>), Problem> {
    let home = home_of(site);
    let above: Vec<&Path> = from
        .ancestors()
        .take_while(|folder| !holds_home(home.as_deref(), folder))
        .collect();
    let has = |folder: &Path, name: &str| folder.join(name).symlink_metadata().is_ok();
    let set: Vec<&Path> = above
        .iter()
        .copied()
        .filter(|folder| has(folder, FILE_NAME))
        .collect();
    let mut nearest = above
        .iter()
        .filter(|folder| set.contains(folder) || has(folder, ".git"));
    let nearest = nearest.next().copied().unwrap_or(from);
    if set.is_empty() {
        return Ok((nearest.to_owned(), None));
    }
    let trust = site.trust()?;
    if let Some(trusted) = set.iter().find(|folder| trust.trusts(folder)) {
        return Ok(((*trusted).to_owned(), None));
    }
    let mut open = set
        .iter()
        .filter(|folder| **folder != nearest && nearest.starts_with(folder))
        .filter(|folder| !trust.declined(folder));
    let outer = open.next().map(|folder| folder.join(FILE_NAME));
    Ok((nearest.to_owned(), outer))
}
