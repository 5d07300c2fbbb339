//! `GitFolders`: whether a path is git's own, whatever the repository's folder is called.
//!
//! Git takes settings from `.git`, from what a `.git` file or a `commondir` names, and from any folder that has the shape of a
//! repository, such as a bare one. Everything that judges or guards such paths asks here: file tools, what a command changed on a
//! copy, and the search for what to guard in the workspace itself.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{GIT, Workspace, is_git};

/// Maximum size of a `.git` file or `commondir`, in bytes: a path and a word.
const MAX_POINTER: u64 = 8 * 1024;

/// What git keeps in a repository's folder besides data that has names of its own. A folder of another name in it may be a working tree.
const OWN_FOLDERS: [&str; 8] = [
    "objects",
    "refs",
    "hooks",
    "info",
    "logs",
    "modules",
    "worktrees",
    "branches",
];

/// Returns true if git treats a folder with these names as a repository. A linked worktree has its objects in another folder.
pub fn has_repository_shape(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// A path in a repository's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitPath {
    /// The folder, relative to the root; empty for the root itself.
    pub folder: PathBuf,
    /// The path within it; empty for the folder itself.
    pub within: PathBuf,
    /// Whether the folder only becomes a repository by the changes.
    pub is_new: bool,
}

impl GitPath {
    /// Returns the path as it would be if the repository's folder was called `.git`, which is how rules and guards judge it. What makes
    /// a folder a repository is judged like a new folder of that name.
    pub fn name(&self) -> PathBuf {
        let git = self.folder.join(GIT);
        if self.is_new || self.within == Path::new("") {
            git
        } else {
            git.join(&self.within)
        }
    }
}

/// The kind of a folder before and after a change set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderKind {
    Plain,
    Repository,
    /// The change set turns the folder into a repository.
    Becoming,
}

/// The folders of a workspace that git treats as repositories, before and after some changes.
#[derive(Debug)]
pub struct GitFolders<'a> {
    workspace: &'a Workspace,
    changed: BTreeSet<PathBuf>,
    /// What `.git` files and `commondir` files name.
    named: HashSet<PathBuf>,
    seen: HashMap<PathBuf, FolderKind>,
}

impl<'a> GitFolders<'a> {
    /// Reads the `.git` files and `commondir` files of a workspace in which these paths change.
    pub fn find(
        workspace: &'a Workspace,
        changed: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        let links = workspace.links();
        // In any other folder a file `commondir` means nothing to git.
        let counts = |pointer: &&PathBuf| {
            let head = || workspace.root().join(pointer.with_file_name("HEAD"));
            is_git(pointer) || head().symlink_metadata().is_ok()
        };
        let pointers = links.pointers().filter(counts);
        let targets = pointers.filter_map(|pointer| workspace.git_pointer(pointer));
        Self {
            named: targets.collect(),
            ..Self::by_shape(workspace, changed)
        }
    }

    /// Judges folders by their shape alone.
    fn by_shape(
        workspace: &'a Workspace,
        changed: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        Self {
            workspace,
            changed: changed.into_iter().map(Into::into).collect(),
            named: HashSet::new(),
            seen: HashMap::new(),
        }
    }

    /// Returns where a path lies in a repository whose folder is not called `.git`: in one that exists, or among what makes a folder
    /// one after the changes.
    pub fn locate(&mut self, path: &Path) -> Option<GitPath> {
        if is_git(path) {
            return None;
        }
        path.ancestors().find_map(|folder| {
            let within = path.strip_prefix(folder).ok()?;
            let kind = self.kind(folder);
            let is_inside = match kind {
                FolderKind::Plain => false,
                FolderKind::Repository => path != Path::new(""),
                FolderKind::Becoming => makes_repository(within),
            };
            is_inside.then(|| GitPath {
                folder: folder.to_owned(),
                within: within.to_owned(),
                is_new: kind == FolderKind::Becoming,
            })
        })
    }

    /// Returns what [`locate`](Self::locate) finds, for a file tool: it may change nothing in a repository except the
    /// files of a working tree within it.
    pub(crate) fn locate_for_tool(&mut self, path: &Path) -> Option<GitPath> {
        let found = self.locate(path)?;
        (!self.is_in_working_tree(&found)).then_some(found)
    }

    /// Returns true if a folder between the repository's and the path has a `.git` of its own.
    fn is_in_working_tree(&self, path: &GitPath) -> bool {
        let first = path.within.iter().next();
        if OWN_FOLDERS.iter().any(|own| first == Some(own.as_ref())) {
            return false;
        }
        let root = self.workspace.root().join(&path.folder);
        let mut below = path.within.ancestors().filter(|at| *at != Path::new(""));
        below.any(|at| root.join(at).join(GIT).symlink_metadata().is_ok())
    }

    fn kind(&mut self, folder: &Path) -> FolderKind {
        if let Some(known) = self.seen.get(folder) {
            return *known;
        }
        let found = self.inspect(folder);
        self.seen.insert(folder.to_owned(), found);
        found
    }

    fn inspect(&self, folder: &Path) -> FolderKind {
        if self.named.contains(folder) {
            return FolderKind::Repository;
        }
        let place = self.workspace.root().join(folder);
        let before = |name: &str| place.join(name).symlink_metadata().is_ok();
        if has_repository_shape(before) {
            return FolderKind::Repository;
        }
        let changes = |name: &str| {
            let path = folder.join(name);
            let next = self.changed.range(path.clone()..).next();
            next.is_some_and(|next| next.starts_with(&path))
        };
        if has_repository_shape(|name| before(name) || changes(name)) {
            FolderKind::Becoming
        } else {
            FolderKind::Plain
        }
    }
}

/// Returns true for what makes a folder a repository or steers git in it. The folder also has files that do not belong to the repository.
pub(crate) fn makes_repository(within: &Path) -> bool {
    let first = within.iter().next().unwrap_or_default().to_string_lossy();
    first.starts_with("config")
        || matches!(
            &*first,
            "HEAD" | "objects" | "refs" | "hooks" | "info" | "commondir"
        )
}

impl Workspace {
    /// Returns the folder below the root that a `.git` file or a `commondir` names. Returns `None` for the root itself too.
    pub fn git_pointer(&self, pointer: &Path) -> Option<PathBuf> {
        let open = self.open_file(pointer).ok()?;
        let mut text = String::new();
        let mut file = open.file.take(MAX_POINTER);
        file.read_to_string(&mut text).ok()?;
        let path = text.trim_end_matches(['\n', '\r']);
        let path = match pointer.file_name()?.to_str()? {
            GIT => path.strip_prefix("gitdir:")?.trim_start(),
            _ => path,
        };
        if path.is_empty() {
            return None;
        }
        let root = self.root();
        let end = root.join(pointer.parent()?).join(path);
        let end = end.canonicalize().ok()?;
        let inside = end.strip_prefix(root).ok()?;
        (end.is_dir() && inside != Path::new("")).then(|| inside.to_owned())
    }

    /// Whether a path is git's own, by its name, or by the shape that a folder above it has or gets by a change at this path.
    pub(crate) fn is_git_place(&self, real: &Path) -> bool {
        is_git(real)
            || GitFolders::by_shape(self, [real])
                .locate_for_tool(real)
                .is_some()
    }
}
