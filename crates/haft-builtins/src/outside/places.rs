//! Resolves the paths of a line from each folder that it may start them in.

use haft::policy::{
    CommandLine, CommandPart, CommandUses, PathAccess, PathCertainty, PathUse, join_words,
};

use super::spot::{PathLocation, join_path, spot};
use super::{Outside, pattern};

/// Maximum number of folders that one line may start relative paths in.
const MAX_FOLDERS: usize = 16;

/// The folders that relative paths of a line may start at; `None` for an unknown folder.
#[derive(Debug, Clone)]
pub(super) struct PathBases(Vec<Option<String>>);

impl PathBases {
    /// Creates the bases with one folder.
    pub(super) fn at(folder: Option<String>) -> Self {
        Self(vec![folder])
    }

    /// Returns true if the only base is the workspace's root.
    pub(super) fn are_root(&self) -> bool {
        self.0.iter().all(|base| base.as_deref() == Some("."))
    }

    /// Adds the folder that a part of the line changes to. The earlier folders stay, because the change may fail.
    pub(super) fn follow(&mut self, outside: &Outside, part: &CommandPart, uses: &CommandUses) {
        let Some(name) = part.program() else {
            // The policy asks about it anyway.
            return;
        };
        if !matches!(name, "cd" | "pushd" | "popd") {
            return;
        }
        let goes = uses
            .paths
            .iter()
            .find(|place| place.how == PathAccess::Goes);
        let known = goes.filter(|place| uses.understood && place.known == PathCertainty::Whole);
        let Some(place) = known.filter(|_| self.0.len() < MAX_FOLDERS) else {
            self.0.push(None);
            return;
        };
        let more: Vec<_> = self
            .0
            .iter()
            .map(|base| folder(outside, base.as_deref()?, &place.path))
            .collect();
        for base in more {
            if !self.0.contains(&base) {
                self.0.push(base);
            }
        }
    }
}

/// Returns the folder that a call names, relative to the root or absolute.
pub(super) fn start(outside: &Outside, cwd: Option<&str>) -> Option<String> {
    let cwd = cwd.unwrap_or(".");
    let cwd = if cwd.is_empty() { "." } else { cwd };
    let path = if cwd.starts_with('~') {
        expand_home(outside, cwd)?
    } else {
        cwd.to_owned()
    };
    folder(outside, ".", &path)
}

/// Resolves a folder by its path from another. Returns `None` if a link leads there or a `..` follows a name: a shell resolves `..`
/// by the names it went through, a program by the real location.
fn folder(outside: &Outside, base: &str, path: &str) -> Option<String> {
    let mut names = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .skip_while(|name| *name == "..");
    if names.any(|name| name == "..") {
        return None;
    }
    match spot(outside, base, path, false) {
        PathLocation::Inside(claim, _) => claim.target.is_none().then_some(claim.path),
        PathLocation::Away(path) => Some(path.to_string_lossy().into_owned()),
        PathLocation::Unknown => None,
    }
}

/// Returns the folders that a line changes to, if it does nothing else, and each change only after the one before succeeded.
pub(super) fn steps(line: &CommandLine, command: &str) -> Option<Vec<PathUse>> {
    let texts: Vec<&str> = command.split("&&").collect();
    if !line.writes.is_empty() || !line.reads.is_empty() || texts.len() != line.parts.len() {
        return None;
    }
    let step = |(part, (text, uses)): (&CommandPart, (&&str, CommandUses))| {
        // Written as plain words, the text holds nothing else, such as a `!` before them.
        let alone = part
            .argv
            .as_ref()
            .is_some_and(|words| join_words(words) == text.trim());
        match &uses.paths[..] {
            [place] if alone && uses.understood && part.program() == Some("cd") => {
                let known = place.known == PathCertainty::Whole && place.how == PathAccess::Goes;
                known.then(|| place.clone())
            }
            _ => None,
        }
    };
    let uses = texts.iter().zip(line.uses());
    line.parts.iter().zip(uses).map(step).collect()
}

/// Returns the folder of the workspace that a path leads to from another one there.
pub(super) fn inner_folder(outside: &Outside, base: &str, path: &str) -> Option<String> {
    let folder = folder(outside, base, path)?;
    let is_inner = !folder.starts_with('/') && outside.root().join(&folder).is_dir();
    is_inner.then_some(folder)
}

/// Expands a path that begins with `~`.
fn expand_home(outside: &Outside, path: &str) -> Option<String> {
    let rest = path.strip_prefix('~')?;
    let home = outside.home.as_ref()?.to_string_lossy();
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{home}{rest}"))
}

/// Resolves a path from each folder. With `entry`, a link at its end is not followed.
pub(super) fn resolve_spots(
    outside: &Outside,
    bases: &PathBases,
    place: &PathUse,
    entry: bool,
) -> Vec<PathLocation> {
    let path = match place.known {
        PathCertainty::Nothing => return vec![PathLocation::Unknown],
        PathCertainty::Home => match expand_home(outside, &place.path) {
            Some(path) => path,
            None => return vec![PathLocation::Unknown],
        },
        PathCertainty::Whole | PathCertainty::Pattern => place.path.clone(),
    };
    let absolute = path.starts_with('/');
    let bases = bases.0.iter().take(if absolute { 1 } else { usize::MAX });
    let from = |base: &Option<String>| {
        let base = if absolute { Some(".") } else { base.as_deref() };
        let Some(base) = base else {
            return vec![PathLocation::Unknown];
        };
        if place.known == PathCertainty::Pattern {
            let whole = join_path(base, &path);
            return match pattern::matches(outside, &whole) {
                pattern::PatternMatches::These(paths) => {
                    let each = paths.iter();
                    each.map(|path| spot(outside, ".", path, entry)).collect()
                }
                pattern::PatternMatches::Away(path) => vec![PathLocation::Away(path)],
                pattern::PatternMatches::Unknown => vec![PathLocation::Unknown],
            };
        }
        vec![spot(outside, base, &path, entry)]
    };
    bases.flat_map(from).collect()
}
