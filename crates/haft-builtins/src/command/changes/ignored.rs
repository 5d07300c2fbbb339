//! `Ignored`: the files that git ignores according to the workspace's settings before a command's changes.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::workspace::Workspace;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::{Mutex, MutexGuard};

use crate::command::index;

/// Maximum size of a pattern file, in bytes.
const MAX_PATTERN_FILE: u64 = 1 << 20;

/// The ignore rules of the workspace's repository. Pattern files outside the workspace do not count: haft asks about a file that
/// only they ignore.
#[derive(Debug)]
pub(super) struct Ignored {
    workspace: Workspace,
    tracked: HashSet<Vec<u8>>,
    /// The patterns of each folder looked up so far; `None` if it belongs to another repository, or if haft cannot read its file
    /// exactly as git does.
    patterns: Mutex<HashMap<PathBuf, Option<Gitignore>>>,
    exclude: Gitignore,
}

impl Ignored {
    /// Returns `None` if the workspace is not a repository or its index cannot be read.
    pub(super) fn of(workspace: &Workspace) -> Option<Self> {
        let tracked = index::tracked_files(workspace)?;
        Some(Self {
            tracked: tracked.into_iter().collect(),
            patterns: Mutex::default(),
            exclude: exclude(workspace)?,
            workspace: workspace.clone(),
        })
    }

    /// Returns true if git ignores a file or folder and tracks nothing there. `seen` caches the results for parent folders.
    fn covers(&self, path: &Path, folder: bool, seen: &mut HashMap<PathBuf, bool>) -> bool {
        let in_git = path
            .components()
            .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
        if in_git || path.to_str().is_none() || self.tracks(path) || self.is_elsewhere(path) {
            return false;
        }
        self.is_below(path.parent(), seen) || self.matches(path, folder)
    }

    /// Returns the highest path at or above this one that git ignores; `None` if it does not ignore this one.
    pub(super) fn top<'p>(
        &self,
        path: &'p Path,
        folder: bool,
        seen: &mut HashMap<PathBuf, bool>,
    ) -> Option<&'p Path> {
        if !self.covers(path, folder, seen) {
            return None;
        }
        let mut top = path;
        for above in path.ancestors().skip(1) {
            if self.is_below(Some(above), seen) {
                top = above;
            }
        }
        Some(top)
    }

    /// Returns true if a path belongs to another repository, which may track it.
    fn is_elsewhere(&self, path: &Path) -> bool {
        let mut known = self.known();
        let mut above = path.ancestors().skip(1);
        above.any(|folder| {
            let patterns = known.entry(folder.to_owned());
            patterns
                .or_insert_with(|| self.patterns_of(folder))
                .is_none()
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, Option<Gitignore>>> {
        self.patterns.lock()
    }

    /// Returns true if a parent folder is ignored, and with it everything below.
    fn is_below(&self, folder: Option<&Path>, seen: &mut HashMap<PathBuf, bool>) -> bool {
        let Some(folder) = folder.filter(|folder| *folder != Path::new("")) else {
            return false;
        };
        if let Some(known) = seen.get(folder) {
            return *known;
        }
        let ignored = self.is_below(folder.parent(), seen) || self.matches(folder, true);
        seen.insert(folder.to_owned(), ignored);
        ignored
    }

    /// Returns true if a pattern matches the path; the patterns of the nearest folder take precedence.
    fn matches(&self, path: &Path, folder: bool) -> bool {
        let mut known = self.known();
        for above in path.ancestors().skip(1) {
            let patterns = known
                .entry(above.to_owned())
                .or_insert_with(|| self.patterns_of(above));
            let Some(patterns) = patterns else {
                return false;
            };
            let matched = patterns.matched(path, folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        self.exclude.matched(path, folder).is_ignore()
    }
}

impl Ignored {
    fn patterns_of(&self, folder: &Path) -> Option<Gitignore> {
        let is_root = folder == Path::new("");
        let git = self.workspace.root().join(folder).join(".git");
        let other = !is_root && (git.symlink_metadata().is_ok() || self.tracks(folder));
        (!other).then(|| patterns(&self.workspace, folder, ".gitignore"))?
    }

    fn tracks(&self, path: &Path) -> bool {
        self.tracked.contains(path.as_os_str().as_encoded_bytes())
    }
}

/// Reads the repository's own patterns. They start at the top of the work tree: if that lies above, none count.
fn exclude(workspace: &Workspace) -> Option<Gitignore> {
    let outside = workspace.repository();
    if outside.is_some_and(|outside| outside.prefix() != Path::new("")) {
        return Some(Gitignore::empty());
    }
    patterns(workspace, Path::new(""), ".git/info/exclude")
}

/// Reads the patterns in a file, for paths below `folder`. Returns `None` if haft cannot read them exactly as git does.
fn patterns(workspace: &Workspace, folder: &Path, name: &str) -> Option<Gitignore> {
    let file = folder.join(name);
    if workspace.host_path(&file).symlink_metadata().is_err() {
        return Some(Gitignore::empty());
    }
    let open = workspace.open_file(&file).ok()?;
    let within = open.stamp.bytes() <= MAX_PATTERN_FILE;
    let mut text = String::new();
    within.then(|| {
        open.file
            .take(MAX_PATTERN_FILE)
            .read_to_string(&mut text)
            .ok()
    })??;
    // Git treats braces literally, but the matcher does not.
    if text.starts_with('\u{feff}') || text.contains(['{', '}']) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.lines() {
        builder.add_line(None, line).ok()?;
    }
    builder.build().ok()
}
