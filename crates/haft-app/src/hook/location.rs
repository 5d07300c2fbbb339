//! `Location`: which project a call of an agent belongs to, where its relative paths start, and what is not certain about that.

use std::path::{Path, PathBuf};

use haft_hook::{Action, Event};

use crate::config::FILE_NAME;
use crate::problem::Problem;
use crate::site::Site;

/// Most folders that a doubt names.
const NAMED: usize = 8;

/// Where a call works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The project: what lies in it is in the workspace, and its settings count.
    pub(super) workspace: PathBuf,
    /// The folder that relative paths start at.
    pub(super) start: PathBuf,
    /// What a person has to look at first.
    pub(super) doubts: Vec<Doubt>,
}

/// Why it cannot be known what a call would touch, or which rules speak of it: it is asked about, whatever rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Relative paths start in one of these open folders, and the agent does not say in which.
    SeveralFolders(Vec<PathBuf>),
    /// Settings in a folder above, about which the user has not said whether they may count.
    OuterSettings(PathBuf),
    /// A rule asks about the agent's tool of this name, wherever its command runs.
    Named(String),
}

impl Doubt {
    /// What a person reads: what is done, and in view of what.
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

    /// The same as one text.
    pub(super) fn to_text(&self) -> String {
        let (kind, value) = self.to_effect();
        format!("{kind} {value}")
    }
}

impl Location {
    /// Where the call of an event works. `named` is the folder that the hook's process was started for.
    ///
    /// # Errors
    /// The agent names no folder that exists, or the trust store cannot be read.
    pub(super) fn of(event: &Event, named: Option<&Path>, site: &Site) -> Result<Self, Problem> {
        let missing = || {
            let what = "the agent names no folder that is there, so the call cannot be judged";
            Problem::failed(what).advise("start the agent in a folder that exists")
        };
        let roots = distinct(&event.workspace_roots);
        let several = roots.len() > 1;
        let from = match roots.first() {
            _ if several => chosen(&roots, event),
            Some(root) => Some(root),
            None if event.workspace_roots.is_empty() => None,
            None => return Err(missing()),
        };
        let first = roots.first().map(PathBuf::as_path);
        let from = from.map(PathBuf::as_path).or(first).or(named);
        let from = from.or(event.cwd.as_deref()).ok_or_else(missing)?;
        let from = from.canonicalize().map_err(|_| missing())?;
        let mut doubts = Vec::new();
        let starts = || event.call().is_none_or(|call| starts(&call.actions));
        if several && event.cwd.is_none() && starts() {
            doubts.push(Doubt::SeveralFolders(roots));
        }
        let (workspace, outer) = project(&from, site)?;
        doubts.extend(outer.map(Doubt::OuterSettings));
        let start = match &event.cwd {
            Some(cwd) => from.join(cwd),
            None => from,
        };
        if !start.is_dir() {
            // Where an agent falls back to is not known.
            return Err(missing());
        }
        Ok(Self {
            workspace,
            start,
            doubts,
        })
    }
}

/// The folders that exist, by their real paths, each once.
fn distinct(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in folders.iter().filter_map(|one| one.canonicalize().ok()) {
        if !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

/// The one of several open folders that a call works in: that of the agent's folder, else the one in which all lies that the call names
/// by absolute paths.
fn chosen<'r>(roots: &'r [PathBuf], event: &Event) -> Option<&'r PathBuf> {
    if let Some(cwd) = &event.cwd {
        return around(roots, cwd);
    }
    let call = event.call()?;
    let mut found = call.actions.iter().filter_map(place).map(Path::new);
    let root = around(roots, found.next()?)?;
    found
        .all(|path| around(roots, path) == Some(root))
        .then_some(root)
}

/// The innermost of these folders in which a path lies.
fn around<'r>(roots: &'r [PathBuf], path: &Path) -> Option<&'r PathBuf> {
    let real = path
        .ancestors()
        .find_map(|folder| folder.canonicalize().ok())?;
    let around = roots.iter().filter(|root| real.starts_with(root));
    around.max_by_key(|root| root.as_os_str().len())
}

/// The absolute path that an action names as its place.
fn place(action: &Action) -> Option<&str> {
    let path = match action {
        Action::Command(command) => command.cwd.as_deref()?,
        Action::Read { path } | Action::Edit { path, .. } => path,
        _ => return None,
    };
    path.starts_with('/').then_some(path)
}

/// Whether one of these actions starts in the folder that the agent works in.
fn starts(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Command(_) => place(action).is_none(),
        Action::Read { path } | Action::Edit { path, .. } => !path.starts_with(['/', '~']),
        _ => false,
    })
}

/// The project around a folder, and settings above it that may say more about it.
///
/// It is the nearest folder with settings that the user trusts: a repository or settings of its own that an agent makes in a folder
/// below take nothing away from them. Where there is none, it is the nearest folder with settings or a repository.
fn project(from: &Path, site: &Site) -> Result<(PathBuf, Option<PathBuf>), Problem> {
    let home = site.environment.folder("HOME");
    let home = home.map(|home| home.canonicalize().unwrap_or(home));
    // A project never holds the home folder.
    let holds_home = |folder: &&Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let above: Vec<&Path> = from
        .ancestors()
        .take_while(|folder| !holds_home(folder))
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
