//! The rules of ignore files: `.ignore`, `.gitignore`, `.git/info/exclude` and git's global file, with ripgrep's precedence.
//!
//! The patterns are those of the `ignore` crate. Its own walk goes by path and opens every ignore file that it sees. This one is given the
//! entries of a folder and reads a `.gitignore` only where it counts, in a repository. Its reads are bounded and never follow a link.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use haft::workspace::{EntryKind, WorkspaceView};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{CWD, FileType, Mode, OFlags};

/// Maximum bytes read of an ignore file; the rest has no effect.
const MAX_READ: u64 = 1 << 20;
/// Maximum length of a line in an ignore file, in bytes; longer lines are skipped.
const MAX_LINE: usize = 4 << 10;
/// Maximum number of patterns per ignore file.
const MAX_PATTERNS: usize = 10_000;
/// Maximum number of patterns of a folder and all folders above it: all are in memory while the folder is walked.
const MAX_HELD: usize = 50_000;
/// Maximum size of a file that names the repository of a worktree, in bytes.
const MAX_POINTER: u64 = 4 << 10;

/// Which of the relevant files a folder contains.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "names that lie there or do not"
)]
pub(super) struct Markers {
    pub(super) ignore: bool,
    pub(super) git_ignore: bool,
    pub(super) git: bool,
    /// True if `.git` is a file that names the repository.
    pub(super) git_is_file: bool,
    pub(super) jj: bool,
}

impl Markers {
    /// Records a name in the folder.
    pub(super) fn note(&mut self, name: &[u8], kind: EntryKind) {
        match name {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.git_ignore = true,
            b".git" => {
                self.git = true;
                self.git_is_file = kind == EntryKind::File;
            }
            b".jj" => self.jj = true,
            _ => {}
        }
    }

    /// Looks up the relevant files of a folder whose entries were not read.
    fn of(folder: &Path) -> Self {
        let kind = |name| folder.join(name).symlink_metadata().ok();
        let exists = |name| kind(name).is_some();
        Self {
            ignore: exists(".ignore"),
            git_ignore: exists(".gitignore"),
            git: exists(".git"),
            git_is_file: kind(".git").is_some_and(|kind| kind.is_file()),
            jj: exists(".jj"),
        }
    }
}

/// The rules of a folder, on top of those of the folders above it. Paths are absolute.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    ignore: Gitignore,
    git_ignore: Gitignore,
    git_exclude: Gitignore,
    /// True if the folder is the root of a repository, so that no `.gitignore` above it applies.
    is_repository: bool,
    /// True if the folder is in a repository.
    in_repository: bool,
    /// Number of patterns, including those of the folders above.
    held: usize,
    global: Arc<Gitignore>,
}

impl IgnoreRules {
    /// Returns the rules of all folders above this one.
    pub(super) fn above(view: &WorkspaceView, folder: &Path) -> Arc<Self> {
        // Like ripgrep, apply git's global patterns relative to the current folder.
        let global = std::env::current_dir().map_or_else(
            |_| Gitignore::empty(),
            |current| GitignoreBuilder::new(current).build_global().0,
        );
        let top = Self {
            above: None,
            ignore: Gitignore::empty(),
            git_ignore: Gitignore::empty(),
            git_exclude: Gitignore::empty(),
            is_repository: false,
            in_repository: false,
            held: 0,
            global: Arc::new(global),
        };
        let mut above: Vec<&Path> = folder.ancestors().skip(1).collect();
        above.reverse();
        above.iter().fold(Arc::new(top), |rules, folder| {
            rules.below(view, folder, Markers::of(folder))
        })
    }

    /// Returns the rules within a folder that contains these files.
    pub(super) fn below(
        self: &Arc<Self>,
        view: &WorkspaceView,
        folder: &Path,
        markers: Markers,
    ) -> Arc<Self> {
        let is_repository = markers.git || markers.jj;
        let in_repository = self.in_repository || is_repository;
        let reads_git_ignore = markers.git_ignore && in_repository;
        if !(is_repository || markers.ignore || reads_git_ignore) {
            return Arc::clone(self);
        }
        let files = IgnoreFiles { view, folder };
        let mut held = self.held;
        let mut read = |file: Option<PathBuf>| {
            let room = MAX_PATTERNS.min(MAX_HELD.saturating_sub(held));
            let (patterns, count) =
                file.map_or((Gitignore::empty(), 0), |file| files.patterns(&file, room));
            held += count;
            patterns
        };
        let git = markers.git.then(|| folder.join(".git"));
        let exclude = git.and_then(|git| {
            if markers.git_is_file {
                files.worktree_repository(&git)
            } else {
                Some(git)
            }
        });
        let ignore = read(markers.ignore.then(|| folder.join(".ignore")));
        let git_ignore = read(reads_git_ignore.then(|| folder.join(".gitignore")));
        let git_exclude = read(exclude.map(|git| git.join("info/exclude")));
        Arc::new(Self {
            above: Some(Arc::clone(self)),
            ignore,
            git_ignore,
            git_exclude,
            is_repository,
            in_repository,
            held,
            global: Arc::clone(&self.global),
        })
    }

    /// Returns what the rules say about a path: ignored, explicitly included, or nothing.
    pub(super) fn judge(&self, path: &Path, is_folder: bool) -> Match<()> {
        let mut found = self.first(path, is_folder, false, |rules| &rules.ignore);
        if self.in_repository {
            found = found
                .or_else(|| self.first(path, is_folder, true, |rules| &rules.git_ignore))
                .or_else(|| self.first(path, is_folder, true, |rules| &rules.git_exclude))
                .or_else(|| answer(&self.global, path, is_folder));
        }
        found.unwrap_or(Match::None)
    }

    /// Returns what the patterns of one kind say, starting with those of the nearest folder.
    fn first(
        &self,
        path: &Path,
        is_folder: bool,
        ends_at_repository: bool,
        patterns: impl Fn(&Self) -> &Gitignore,
    ) -> Option<Match<()>> {
        let mut rules = Some(self);
        while let Some(here) = rules {
            let found = answer(patterns(here), path, is_folder);
            if found.is_some() {
                return found;
            }
            let ends = ends_at_repository && here.is_repository;
            rules = here.above.as_deref().filter(|_| !ends);
        }
        None
    }
}

fn answer(patterns: &Gitignore, path: &Path, is_folder: bool) -> Option<Match<()>> {
    if patterns.is_empty() {
        return None;
    }
    match patterns.matched(path, is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(Match::Ignore(())),
        Match::Whitelist(_) => Some(Match::Whitelist(())),
    }
}

/// Reads the ignore files of a folder: regular files of limited size, no links.
///
/// Files named by a folder of the workspace are read only beneath its root, and only if the view shows them. Otherwise anyone who
/// can write there could use a search to learn the contents of files that the view does not show.
struct IgnoreFiles<'a> {
    view: &'a WorkspaceView,
    folder: &'a Path,
}

impl IgnoreFiles<'_> {
    /// Returns the patterns of an ignore file for the paths below the folder, and their number; none if it cannot be read.
    fn patterns(&self, file: &Path, most: usize) -> (Gitignore, usize) {
        let Some(text) = self.read(file, MAX_READ) else {
            return (Gitignore::empty(), 0);
        };
        let mut builder = GitignoreBuilder::new(self.folder);
        let mut count = 0;
        for (number, line) in lines(&text).enumerate() {
            if count == most {
                break;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            count += 1;
            // Like git, skip patterns that are invalid.
            let line = if number == 0 {
                line.trim_start_matches('\u{feff}')
            } else {
                line
            };
            let _ = builder.add_line(Some(file.to_owned()), line);
        }
        let patterns = builder.build();
        patterns.map_or_else(|_| (Gitignore::empty(), 0), |patterns| (patterns, count))
    }

    /// Returns the repository of a worktree, whose `.git` is a file that names it.
    fn worktree_repository(&self, file: &Path) -> Option<PathBuf> {
        let first_line = |file: &Path| {
            let text = self.read(file, MAX_POINTER)?;
            Some(lines(&text).next()?.to_owned())
        };
        let git = PathBuf::from(first_line(file)?.strip_prefix("gitdir: ")?);
        let common = first_line(&git.join("commondir"))?;
        Some(if common.starts_with('.') {
            git.join(common)
        } else {
            PathBuf::from(common)
        })
    }

    /// Reads the beginning of a regular file.
    fn read(&self, file: &Path, most: u64) -> Option<Vec<u8>> {
        let root = self.view.root();
        let file = plain(file);
        let open = match file.strip_prefix(root) {
            Ok(real) if self.view.shows(real) => self.view.open_file(real).ok()?.file,
            Err(_) if !self.folder.starts_with(root) => open_outside(&file)?,
            Ok(_) | Err(_) => return None,
        };
        let mut text = Vec::new();
        open.take(most).read_to_end(&mut text).ok()?;
        Some(text)
    }
}

/// Returns the effective lines in order, without lines that are too long, up to the first line that is not text.
fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| line.len() <= MAX_LINE)
        .map_while(|line| std::str::from_utf8(line).ok())
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// Returns the path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Opens a regular file of a folder above the workspace, where no tool writes.
fn open_outside(file: &Path) -> Option<File> {
    // NONBLOCK: opening a pipe must not wait for a writer.
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(CWD, file, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then(|| File::from(fd))
}
