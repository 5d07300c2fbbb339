//! `GitFolders`: whether a path is git's own, whatever the repository's folder is called.
//!
//! Git takes settings from `.git`, from what a `.git` file or a `commondir` names, and from any folder that has the shape of a
//! repository, such as a bare one; and it obeys the files that these settings name ([`NamedByGit`]). Everything that judges or guards such paths asks here: file tools, what a command changed on a
//! copy, and the search for what to guard in the workspace itself.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::git_named::NamedByGit;
use super::{GIT, OutsideRepository, Workspace, is_git};

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

/// The folder in a repository's folder with the repositories of submodules.
const MODULES: &str = "modules";

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
    /// The settings of a repository that name the path, if it is so that it counts, with the name as in [`Self::name`].
    pub named_by: Option<PathBuf>,
}

impl GitPath {
    /// Returns the path as it would be if the repository's folder was called `.git`, which is how rules and guards judge it. What makes
    /// a folder a repository is judged like a new folder of that name, and what settings name like these settings.
    pub fn name(&self) -> PathBuf {
        if let Some(settings) = &self.named_by {
            return settings.clone();
        }
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
    /// Sorted.
    changed: Vec<&'a Path>,
    /// What `.git` files and `commondir` files name.
    named: HashSet<PathBuf>,
    by_settings: NamedByGit,
    /// The repositories at and above a folder, the nearest last. Each folder is looked at once, however many paths are below it.
    above: HashMap<PathBuf, Arc<Vec<FoundFolder>>>,
}

/// A folder that is a repository, or becomes one.
#[derive(Debug, Clone)]
struct FoundFolder {
    path: PathBuf,
    kind: FolderKind,
}

impl FoundFolder {
    /// Returns a path in the folder as one of the repository.
    fn with(&self, path: &Path) -> Option<GitPath> {
        Some(GitPath {
            folder: self.path.clone(),
            within: path.strip_prefix(&self.path).ok()?.to_owned(),
            is_new: self.kind == FolderKind::Becoming,
            named_by: None,
        })
    }
}

impl<'a> GitFolders<'a> {
    /// Reads the `.git` files and `commondir` files of a workspace in which these paths change.
    pub fn find<P: AsRef<Path> + ?Sized + 'a>(
        workspace: &'a Workspace,
        changed: impl IntoIterator<Item = &'a P>,
    ) -> Self {
        let links = workspace.links();
        // In any other folder a file `commondir` means nothing to git.
        let counts = |pointer: &&PathBuf| {
            let head = || workspace.host_path(&pointer.with_file_name("HEAD"));
            is_git(pointer) || head().symlink_metadata().is_ok()
        };
        let pointers = links.pointers().filter(counts);
        let targets = pointers.filter_map(|pointer| {
            let target = workspace.git_pointer(pointer)?;
            Some((pointer.clone(), target))
        });
        let pointers: Vec<(PathBuf, PathBuf)> = targets.collect();
        let targets = pointers.iter().map(|(_, target)| target);
        let mut repositories: BTreeSet<PathBuf> = links.repositories().cloned().collect();
        repositories.extend(targets.cloned());
        repositories.insert(PathBuf::from(GIT));
        repositories.extend(workspace.repository().map(OutsideRepository::own_part));
        let repositories = repositories.into_iter();
        let by_settings = NamedByGit::read(workspace, repositories, &pointers);
        Self {
            named: pointers.into_iter().map(|(_, target)| target).collect(),
            by_settings,
            ..Self::by_shape(workspace, changed)
        }
    }

    /// Returns what the settings of the repositories name in the workspace.
    pub fn named_by_settings(&self) -> &NamedByGit {
        &self.by_settings
    }

    /// Judges folders by their shape alone.
    pub(super) fn by_shape<P: AsRef<Path> + ?Sized + 'a>(
        workspace: &'a Workspace,
        changed: impl IntoIterator<Item = &'a P>,
    ) -> Self {
        let mut changed: Vec<&Path> = changed.into_iter().map(AsRef::as_ref).collect();
        changed.sort_unstable();
        Self {
            workspace,
            changed,
            named: HashSet::new(),
            by_settings: NamedByGit::default(),
            above: HashMap::new(),
        }
    }

    /// Returns where a path lies in a repository whose folder is not called `.git`: in one that exists, or among what makes a folder
    /// one after the changes. Also returns where settings of a repository name a path anywhere.
    pub fn locate(&mut self, path: &Path) -> Option<GitPath> {
        if let Some(named) = self.by_settings.at(path) {
            return Some(GitPath {
                folder: PathBuf::new(),
                within: path.to_owned(),
                is_new: false,
                named_by: Some(named.settings.clone()),
            });
        }
        if is_git(path) {
            return None;
        }
        self.repositories_of(path).into_iter().find_map(|found| {
            let at = found.with(path)?;
            let is_inside = match found.kind {
                FolderKind::Plain => false,
                FolderKind::Repository => path != Path::new(""),
                FolderKind::Becoming => makes_repository(&at.within),
            };
            is_inside.then_some(at)
        })
    }

    /// Returns where a path in a `.git` folder lies in the repositories of submodules, by the shape of their folders: a submodule's name
    /// may have slashes, and parts such as `objects`. The path within one that only becomes a repository is one that makes it one.
    pub fn in_submodules(&mut self, path: &Path) -> Vec<GitPath> {
        if !is_git(path) {
            return Vec::new();
        }
        let is_module = |folder: &Path| {
            let above = folder.parent().into_iter().flat_map(Path::iter);
            let mut inner = above.skip_while(|part| !part.eq_ignore_ascii_case(GIT));
            inner.any(|part| part == MODULES)
        };
        let all = self.repositories_of(path).into_iter();
        let modules = all.filter(|found| found.path != path && is_module(&found.path));
        let each = modules.filter_map(|found| found.with(path));
        each.filter(|at| !at.is_new || makes_repository(&at.within))
            .collect()
    }

    /// Returns what [`locate`](Self::locate) finds, for a file tool: it may change nothing in a repository except the
    /// files of a working tree within it.
    pub fn locate_for_tool(&mut self, path: &Path) -> Option<GitPath> {
        let found = self.locate(path)?;
        (found.named_by.is_some() || !self.is_in_working_tree(&found)).then_some(found)
    }

    /// Returns the repository's folder of which a changed path is a part: what changes in one repository only makes sense together. All
    /// of a new folder that becomes a repository belongs to it; of a folder that was there before, what git keeps in it.
    pub fn unit(&mut self, path: &Path) -> Option<PathBuf> {
        let is_git = |path: &&Path| {
            path.file_name()
                .is_some_and(|name| name.eq_ignore_ascii_case(GIT))
        };
        if let Some(folder) = path.ancestors().find(is_git) {
            return Some(folder.to_owned());
        }
        let found = self.repositories_of(path).into_iter().find_map(|found| {
            let at = found.with(path)?;
            let belongs = match found.kind {
                FolderKind::Plain => false,
                FolderKind::Repository => path != Path::new(""),
                FolderKind::Becoming => {
                    self.is_new(&found.path) || belongs_to_repository(&at.within)
                }
            };
            belongs.then_some(at)
        })?;
        (!self.is_in_working_tree(&found)).then_some(found.folder)
    }

    fn is_new(&self, folder: &Path) -> bool {
        let place = self.workspace.host_path(folder);
        place.symlink_metadata().is_err()
    }

    /// Returns true if a folder between the repository's and the path has a `.git` of its own.
    fn is_in_working_tree(&self, path: &GitPath) -> bool {
        let first = path.within.iter().next();
        if OWN_FOLDERS.iter().any(|own| first == Some(own.as_ref())) {
            return false;
        }
        let root = self.workspace.host_path(&path.folder);
        let mut below = path.within.ancestors().filter(|at| *at != Path::new(""));
        below.any(|at| root.join(at).join(GIT).symlink_metadata().is_ok())
    }

    /// Returns the repositories at and above a path, the nearest first.
    fn repositories_of(&mut self, path: &Path) -> Vec<FoundFolder> {
        // The path itself is mostly a file, and is not asked for again: very many would fill the memory.
        let itself = self.repository_at(path).into_iter();
        let above = path.parent().map(|parent| self.repositories_above(parent));
        let above = above.iter().flat_map(|all| all.iter().rev().cloned());
        itself.chain(above).collect()
    }

    fn repositories_above(&mut self, folder: &Path) -> Arc<Vec<FoundFolder>> {
        let mut unknown = Vec::new();
        let known = folder.ancestors().find_map(|at| {
            let known = self.above.get(at).cloned();
            if known.is_none() {
                unknown.push(at);
            }
            known
        });
        let mut all = known.unwrap_or_default();
        for at in unknown.into_iter().rev() {
            if let Some(found) = self.repository_at(at) {
                all = Arc::new(all.iter().cloned().chain([found]).collect());
            }
            self.above.insert(at.to_owned(), Arc::clone(&all));
        }
        all
    }

    fn repository_at(&self, folder: &Path) -> Option<FoundFolder> {
        let kind = self.inspect(folder);
        let path = folder.to_owned();
        (kind != FolderKind::Plain).then_some(FoundFolder { path, kind })
    }

    fn inspect(&self, folder: &Path) -> FolderKind {
        if self.named.contains(folder) {
            return FolderKind::Repository;
        }
        let place = self.workspace.host_path(folder);
        let before = |name: &str| place.join(name).symlink_metadata().is_ok();
        if has_repository_shape(before) {
            return FolderKind::Repository;
        }
        let changes = |name: &str| {
            let path = folder.join(name);
            let next = self.changed.partition_point(|changed| **changed < *path);
            let next = self.changed.get(next);
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
pub fn makes_repository(within: &Path) -> bool {
    let first = within.iter().next().unwrap_or_default().to_string_lossy();
    first.starts_with("config")
        || matches!(
            &*first,
            "HEAD" | "objects" | "refs" | "hooks" | "info" | "commondir"
        )
}

/// Returns true for what git keeps in a repository's folder, beside which a folder may hold other files.
fn belongs_to_repository(within: &Path) -> bool {
    const FILES: [&str; 4] = ["description", "index", "packed-refs", "shallow"];
    let first = within.iter().next().unwrap_or_default().to_string_lossy();
    let first = first.strip_suffix(".lock").unwrap_or(&first);
    makes_repository(within)
        || OWN_FOLDERS.contains(&first)
        || FILES.contains(&first)
        || matches!(
            first,
            "gitdir" | "reftable" | "rr-cache" | "lfs" | "COMMIT_EDITMSG"
        )
        || first.ends_with("_HEAD")
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
        let inside = self.below(&end)?;
        (end.is_dir() && inside != Path::new("")).then_some(inside)
    }

    /// Whether a path is git's own, by its name, or by the shape that a folder above it has or gets by a change at this path.
    pub(crate) fn is_git_place(&self, real: &Path) -> bool {
        is_git(real)
            || GitFolders::by_shape(self, [real])
                .locate_for_tool(real)
                .is_some()
    }
}
