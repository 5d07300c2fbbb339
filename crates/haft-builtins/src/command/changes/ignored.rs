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
    patterns: Mutex<HashMap<PathBuf, Option<FolderPatterns>>>,
    exclude: FolderPatterns,
}

/// The patterns of one file.
#[derive(Debug)]
struct FolderPatterns {
    all: Gitignore,
    /// Whether they ignore everything in their folder, as the `.gitignore` does that pytest, mypy and ruff put in their caches: git then
    /// shows nothing of the folder, as if it ignored the folder itself.
    cover_folder: bool,
}

impl FolderPatterns {
    fn none() -> Self {
        Self {
            all: Gitignore::empty(),
            cover_folder: false,
        }
    }
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
        self.may_cover(path) && (self.is_below(path.parent(), seen) || self.matches(path, folder))
    }

    /// Returns true if git could ignore a path: it is none of git's own, and neither tracked nor in another repository.
    pub(super) fn may_cover(&self, path: &Path) -> bool {
        let in_git = path
            .components()
            .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
        !in_git && path.to_str().is_some() && !self.tracks(path) && !self.is_elsewhere(path)
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

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, Option<FolderPatterns>>> {
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
        let ignored = self.is_below(folder.parent(), seen)
            || self.matches(folder, true)
            || self.covers_itself(folder);
        seen.insert(folder.to_owned(), ignored);
        ignored
    }

    /// Returns true if a folder's own patterns ignore everything in it.
    fn covers_itself(&self, folder: &Path) -> bool {
        let mut known = self.known();
        let patterns = known.entry(folder.to_owned());
        let patterns = patterns.or_insert_with(|| self.patterns_of(folder));
        patterns.as_ref().is_some_and(|own| own.cover_folder)
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
            let matched = patterns.all.matched(path, folder);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        self.exclude.all.matched(path, folder).is_ignore()
    }
}

impl Ignored {
    fn patterns_of(&self, folder: &Path) -> Option<FolderPatterns> {
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
fn exclude(workspace: &Workspace) -> Option<FolderPatterns> {
    let outside = workspace.repository();
    if outside.is_some_and(|outside| outside.prefix() != Path::new("")) {
        return Some(FolderPatterns::none());
    }
    patterns(workspace, Path::new(""), ".git/info/exclude")
}

/// Reads the patterns in a file, for paths below `folder`. Returns `None` if haft cannot read them exactly as git does.
fn patterns(workspace: &Workspace, folder: &Path, name: &str) -> Option<FolderPatterns> {
    let file = folder.join(name);
    if workspace.host_path(&file).symlink_metadata().is_err() {
        return Some(FolderPatterns::none());
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
    if text.starts_with('\u{feff}') || !text.lines().all(is_read_as_by_git) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.lines() {
        builder.add_line(None, line).ok()?;
    }
    Some(FolderPatterns {
        all: builder.build().ok()?,
        cover_folder: ignores_all(&text),
    })
}

/// Returns whether the matcher takes a line for what git takes it for, as far as they are known to differ: git reads braces literally, strips
/// blanks alone from the end, ends a line at a NUL, knows classes of characters by name, and escapes in brackets.
fn is_read_as_by_git(line: &str) -> bool {
    if line.starts_with('#') {
        return true;
    }
    let text = line.trim_end_matches(' ');
    let blank_kept = text.len() < line.len() && text.ends_with('\\') && !line.ends_with("\\ ");
    let in_brackets = line.contains("[:") || (line.contains('[') && line.contains('\\'));
    !(line.contains(['{', '}', '\0'])
        || text.ends_with(char::is_whitespace)
        || text.ends_with("\\\\")
        || blank_kept
        || in_brackets)
}

/// Returns whether patterns ignore everything in their folder, and say nothing else.
pub(super) fn ignores_all(text: &str) -> bool {
    let lines = text.lines().map(str::trim_end);
    let mut rules = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    rules.next() == Some("*") && rules.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_patterns_when_the_matcher_reads_it_otherwise_than_git_counts_for_nothing() {
        for (line, expect) in [
            ("build", true),
            ("build/ ", true),
            ("!build", true),
            ("a\\ ", true),
            ("[ab]uild", true),
            ("build\t", false),
            ("build\t ", false),
            ("build\r", false),
            ("build\u{a0}", false),
            ("build\u{3000}", false),
            ("build\\  ", false),
            ("build\\\\ ", false),
            ("build\0x", false),
            ("{build}", false),
            ("buil[[:alpha:]]", false),
            ("buil[\\d]", false),
        ] {
            assert_eq!(is_read_as_by_git(line), expect, "{line:?}");
        }
    }

    #[test]
    fn patterns_when_one_star_is_all_they_say_ignore_all() {
        for (text, expect) in [
            ("*", true),
            ("# Created by pytest automatically.\n*\n", true),
            ("*\r\n", true),
            ("", false),
            ("#*\n", false),
            ("*\n!keep\n", false),
            ("*.log\n", false),
        ] {
            assert_eq!(ignores_all(text), expect, "{text:?}");
        }
    }
}
