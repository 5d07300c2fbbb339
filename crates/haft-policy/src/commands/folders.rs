//! The folders in which a call's commands run, where their relative paths start.

use haft_command::folder_of;
use haft_shell::{LayerFolder, Line, SimpleCommand, inner_command};

use crate::commands::remembered::parse_line;
use crate::judged_call::JudgedCall;
use haft_files::paths::clean;
use haft_types::permission::{Effect, Permission};

/// Maximum number of folders inspected; a command that may run in more may run anywhere.
const MAX_FOLDERS: usize = 64;
/// How often a change of folder that descends counts: a loop repeats it, and a line states the same one once.
const MAX_REPEATS: usize = 3;

/// The variable with folders that `cd` searches.
const SEARCHED: &str = "CDPATH";

/// The folders in which a command may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFolders {
    /// The folders, each relative to the workspace or absolute.
    pub(crate) paths: Vec<String>,
    /// Whether it may also run in other folders.
    pub(crate) anywhere: bool,
    /// Whether a change of folder that climbs may be repeated, and so lead to any parent.
    pub(crate) climbs: bool,
}

impl RunFolders {
    /// Returns one folder.
    pub(crate) fn at(folder: String) -> Self {
        Self {
            paths: vec![folder],
            anywhere: false,
            climbs: false,
        }
    }

    /// Returns every folder that the commands of a call may run in: the initial one, and those that the line changes to.
    pub(crate) fn of(call: &JudgedCall<'_>) -> Self {
        Self::beside(call, |_| false)
    }

    /// The same without the changes of folder of one effect.
    pub(crate) fn beside(call: &JudgedCall<'_>, is_left_out: impl Fn(&Effect) -> bool) -> Self {
        let others = call.permissions.iter();
        let others = others.filter(|one| !is_left_out(&one.effect));
        let mut moves: Vec<&str> = others.filter_map(moves).collect();
        let variables = call.value().get("env");
        if variables.is_some_and(|variables| variables.get(SEARCHED).is_some()) {
            moves.push("");
        }
        Self::at(start(call)).after(&moves)
    }

    /// Returns the folders in which the commands of a text run, for a shell that starts in these.
    pub(crate) fn of_script(&self, read: &Line) -> Self {
        let moves: Vec<&str> = read.commands.iter().filter_map(part_moves).collect();
        self.clone().after(&moves)
    }

    /// Returns these folders for a line that runs in those of the other.
    pub(crate) fn below(&self, line: &Self) -> Self {
        let each = line.paths.iter();
        let each = each.flat_map(|folder| self.paths.iter().map(|path| within(folder, path)));
        let is_absolute = !self.anywhere && self.paths.iter().all(|path| path.starts_with('/'));
        Self {
            paths: each.collect(),
            anywhere: self.anywhere || (line.anywhere && !is_absolute),
            climbs: self.climbs || (line.climbs && !is_absolute),
        }
    }

    /// Returns the paths that a command in these folders may mean by a path, as rules on files see them, and whether it may mean
    /// others.
    pub(crate) fn paths_of(&self, path: &str, workspace: Option<&str>) -> (Vec<String>, bool) {
        if path.starts_with('/') {
            return (vec![clean(path)], false);
        }
        let each = self.paths.iter();
        let mut found: Vec<String> = each.map(|folder| named(folder, path, workspace)).collect();
        let mut more = self.anywhere;
        if self.climbs {
            match workspace {
                Some(root) => found.extend(parents(root).map(|folder| within(folder, path))),
                None => more = true,
            }
        }
        (found, more)
    }

    /// Adds where these changes of folder lead. Subshells, loops and functions decide which of them count: any may be left out, and
    /// those that descend may be repeated. Where those that climb are repeated is for the caller to judge.
    fn after(mut self, moves: &[&str]) -> Self {
        let climbs = |folder: &str| clean(folder).starts_with("..");
        self.anywhere |= moves.contains(&"");
        self.climbs |= moves.iter().any(|folder| climbs(folder));
        for round in 0..MAX_REPEATS {
            let known = moves.iter().filter(|folder| !folder.is_empty());
            for folder in known.filter(|folder| round == 0 || !climbs(folder)) {
                self.add(folder);
            }
        }
        if self.paths.len() > MAX_FOLDERS {
            self.paths.truncate(MAX_FOLDERS);
            self.anywhere = true;
        }
        self
    }

    /// Adds where a change of folder leads from each of these.
    fn add(&mut self, folder: &str) {
        for at in 0..self.paths.len().min(MAX_FOLDERS) {
            let next = within(&self.paths[at], folder);
            if !self.paths.contains(&next) {
                self.paths.push(next);
            }
        }
    }

    /// Returns the folders of a command that a wrapper runs, for a line that runs in these.
    pub(crate) fn behind(&self, folder: LayerFolder<'_>) -> Self {
        match folder {
            LayerFolder::Same => self.clone(),
            LayerFolder::In(folder) if folder.is_empty() || folder.starts_with(['~', '$']) => {
                Self {
                    anywhere: true,
                    ..self.clone()
                }
            }
            LayerFolder::In(folder) => Self {
                paths: self.paths.iter().map(|path| within(path, folder)).collect(),
                anywhere: self.anywhere && !folder.starts_with('/'),
                climbs: self.climbs && !folder.starts_with('/'),
            },
            LayerFolder::Anywhere => Self {
                anywhere: true,
                ..self.clone()
            },
        }
    }
}

/// Returns the folders above an absolute path.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/');
    ends.map(move |(at, _)| if at == 0 { "/" } else { &path[..at] })
}

/// Returns where a command goes if it changes the folder for those after it; empty where that is unknown.
pub(crate) fn moves(permission: &Permission) -> Option<&str> {
    match &permission.effect {
        Effect::Run {
            argv: Some(words), ..
        } => folder_of(words),
        Effect::Run { command, .. } => may_move(command).then_some(""),
        _ => None,
    }
}

/// Whether a command that is only partly known before run time may change the folder. One that cannot be parsed may.
pub(crate) fn may_move(command: &str) -> bool {
    parse_line(command).map_or(true, |read| {
        read.commands.iter().any(|part| part_moves(part).is_some())
    })
}

/// Returns where a command of a line goes; empty where that is unknown. `cd` searches the folders in a variable.
fn part_moves(part: &SimpleCommand) -> Option<&str> {
    let searched = part.assignments.iter().any(|name| name == SEARCHED);
    searched.then_some("").or_else(|| folder_of(&part.words))
}

/// Returns the folder that the call names in `cwd`, cleaned; `.` where it names none.
fn start(call: &JudgedCall<'_>) -> String {
    let cwd = call.value().get("cwd");
    clean(cwd.and_then(serde_json::Value::as_str).unwrap_or(""))
}

/// Whether its commands may run in a folder other than the workspace's root.
pub(crate) fn may_change_folder(call: &JudgedCall<'_>) -> bool {
    start(call) != "." || changes_folder(call)
}

/// Whether one of its commands changes to another folder.
pub(crate) fn changes_folder(call: &JudgedCall<'_>) -> bool {
    let look = || call.permissions.iter().any(|p| moves(p).is_some());
    // Asked for each of thousands of changed files, by calls that run nothing.
    call.runs_command() && *call.changes_folder.get_or_init(look)
}

/// Whether one of its commands does so by itself, and not by a file of commands, which mostly sets variables: `source venv/bin/activate`.
pub(crate) fn changes_folder_itself(call: &JudgedCall<'_>) -> bool {
    let is_file = |words: &[String]| {
        let name = inner_command(words).words.first();
        name.is_some_and(|name| matches!(&**name, "." | "source"))
    };
    changes_folder(call)
        && call.permissions.iter().any(|one| {
            let argv = match &one.effect {
                Effect::Run { argv, .. } => argv.as_deref(),
                _ => None,
            };
            moves(one).is_some() && !argv.is_some_and(is_file)
        })
}

/// Returns a path that a command names in a folder, as rules on files see it. A path that leaves the workspace by `..` becomes
/// absolute, since it may lead back in.
pub(crate) fn named(folder: &str, path: &str, workspace: Option<&str>) -> String {
    let path = within(folder, path);
    match workspace {
        Some(root) if path.split('/').next() == Some("..") => within(root, &path),
        _ => path,
    }
}

/// Resolves a path against a folder.
pub(crate) fn within(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder == "." {
        clean(path)
    } else {
        clean(&format!("{folder}/{path}"))
    }
}
