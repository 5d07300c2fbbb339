//! What ignore files leave out: `.ignore`, `.gitignore`, `.git/info/exclude` and git's global file, with ripgrep's precedence.
//!
//! The patterns are those of the `ignore` crate. Its own walk goes by path and opens every ignore file it sees; this one is told
//! what lies in a folder, and reads a `.gitignore` only where it counts: in a repository.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Which of the files that matter here lie in a folder.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four names that lie there or do not"
)]
pub(super) struct Markers {
    pub(super) ignore: bool,
    pub(super) git_ignore: bool,
    pub(super) git: bool,
    pub(super) jj: bool,
}

impl Markers {
    /// Takes note of a name that lies in the folder.
    pub(super) fn note(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.git_ignore = true,
            b".git" => self.git = true,
            b".jj" => self.jj = true,
            _ => {}
        }
    }

    /// What lies in a folder of which no list was read.
    fn of(folder: &Path) -> Self {
        let exists = |name| folder.join(name).exists();
        Self {
            ignore: exists(".ignore"),
            git_ignore: exists(".gitignore"),
            git: exists(".git"),
            jj: exists(".jj"),
        }
    }
}

/// The rules of a folder, on those of the folders above it. Paths are absolute.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Gitignore,
    git_ignore: Gitignore,
    git_exclude: Gitignore,
    /// The folder is the root of a repository: no `.gitignore` from above counts below it.
    is_repository: bool,
    /// It lies in one.
    in_repository: bool,
    global: Arc<Gitignore>,
}

impl Rules {
    /// The rules of all folders above this one.
    pub(super) fn above(folder: &Path) -> Arc<Self> {
        // Git's global patterns count from the current folder, as ripgrep reads them.
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
            global: Arc::new(global),
        };
        let mut above: Vec<&Path> = folder.ancestors().skip(1).collect();
        above.reverse();
        above.iter().fold(Arc::new(top), |rules, folder| {
            rules.below(folder, Markers::of(folder))
        })
    }

    /// The rules within a folder in which these lie.
    pub(super) fn below(self: &Arc<Self>, folder: &Path, markers: Markers) -> Arc<Self> {
        let git = markers.git.then(|| folder.join(".git"));
        let git_kind = git.as_ref().and_then(|git| git.metadata().ok());
        let is_repository = git_kind.is_some() || (markers.jj && folder.join(".jj").exists());
        let in_repository = self.in_repository || is_repository;
        let reads_git_ignore = markers.git_ignore && in_repository;
        if !(is_repository || markers.ignore || reads_git_ignore) {
            return Arc::clone(self);
        }
        let read = |wanted: bool, name: &str| {
            if wanted {
                patterns(folder, &folder.join(name))
            } else {
                Gitignore::empty()
            }
        };
        let exclude = git.and_then(|git| {
            if git_kind.is_some_and(|kind| kind.is_file()) {
                worktree_repository(&git)
            } else {
                Some(git)
            }
        });
        Arc::new(Self {
            above: Some(Arc::clone(self)),
            ignore: read(markers.ignore, ".ignore"),
            git_ignore: read(reads_git_ignore, ".gitignore"),
            git_exclude: exclude.map_or_else(Gitignore::empty, |git| {
                patterns(folder, &git.join("info/exclude"))
            }),
            is_repository,
            in_repository,
            global: Arc::clone(&self.global),
        })
    }

    /// What the rules say about a path: ignored, shown whatever else says, or nothing.
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

    /// What the patterns of one kind say, those of the nearest folder first.
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

/// The patterns of an ignore file for the paths below a folder; none where it cannot be read.
fn patterns(folder: &Path, file: &Path) -> Gitignore {
    // A pipe would never end.
    if !file.is_file() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(folder);
    // Patterns that are not understood are left out, as git does.
    let _ = builder.add(file);
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The repository of a worktree, whose `.git` is a file that names it.
fn worktree_repository(file: &Path) -> Option<PathBuf> {
    let first_line = |file: &Path| BufReader::new(File::open(file).ok()?).lines().next()?.ok();
    let git = PathBuf::from(first_line(file)?.strip_prefix("gitdir: ")?);
    let common = first_line(&git.join("commondir"))?;
    Some(if common.starts_with('.') {
        git.join(common)
    } else {
        PathBuf::from(common)
    })
}
