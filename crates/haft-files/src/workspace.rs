//! `Workspace`: the folder that tools work in, and the boundary that no path crosses.
//!
//! A path is used in two steps. [`Workspace::place`] follows it, link by link, to its real location, and
//! refuses it if that is outside. Operations on a [`ResolvedPath`] then open that real path beneath the root's own
//! descriptor with no links allowed ([`haft_types::beneath`]), so if a folder or link is swapped in between, the operation
//! fails instead of escaping. Paths are literal bytes: nothing is expanded, and nothing is normalized where the name exists.
//! Its hidden paths are stated here, once: the policy, the tools and skills take them from their workspace.
//! The rules for all paths are in `docs/reference/paths.md`; "path rule 3" refers to one of them.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::secret_names::SecretNames;
use haft_types::beneath;
use haft_types::permission::PathClaim;

mod change;
mod error;
mod folder;
pub mod git_file;
mod git_folders;
mod git_locks;
mod git_named;
mod git_objects;
pub mod git_settings;
mod import;
mod kind;
mod links;
mod list;
mod place;
mod put_back;
mod read;
mod remove;
mod repository;
mod spelling;
mod view;
mod write;

#[cfg(test)]
mod tests;

pub use crate::paths::composed;
pub use change::FileUpdate;
pub use error::WorkspaceError;
pub use folder::Folder;
pub use git_folders::makes_repository;
pub use git_folders::{GitFolders, GitPath, has_repository_shape};
pub(crate) use git_locks::GitLocks;
pub use git_named::{NamedByGit, NamedPath};
pub use git_objects::{object_hash_in, repository_above};
pub(crate) use import::{Import, OutsideFile, next_data, open_within};
pub use kind::EntryKind;
use links::LinkCache;
pub use links::Links;
pub use links::{OutsideLinks, TooManyLinks};
pub use list::DirEntry;
pub use place::ResolvedPath;
pub use read::{FileStamp, OpenFile};
pub(crate) use remove::FileRemoval;
pub use repository::OutsideRepository;
use repository::RepositoryPlace;
pub use view::PathFilter;
pub use view::WorkspaceView;
pub(crate) use write::draft_name;
pub use write::{WriteMode, WriteReceipt};

/// The entry below which nothing may be written, moved or deleted, in any letter case (path rule 7).
const GIT: &str = ".git";

/// A folder that no path leaves. Cheap to clone.
#[derive(Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    /// The root as the host wrote it: absolute paths may also start with it.
    given: PathBuf,
    /// The root without links, resolved once.
    root: PathBuf,
    fd: Arc<OwnedFd>,
    /// The hidden paths below the root, relative to it, without links.
    own: Vec<PathBuf>,
    /// Every hidden path, absolute and sorted: as given, and where its links lead.
    hidden: Arc<[PathBuf]>,
    /// The names of files that hold secrets.
    secrets: SecretNames,
    /// Whether files of a `.git` folder may be changed.
    git: bool,
    /// Whether files may be changed in repositories whose folders have other names.
    repositories: bool,
    /// The workspace's git repository if it lies outside of the root.
    repository: Option<Arc<OutsideRepository>>,
    /// Why a repository that something names is not shown.
    refused: Option<Arc<str>>,
    /// The links below the root, which all copies of this workspace share.
    links: Arc<LinkCache>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace")
            .field("root", &self.inner.root)
            .field("own", &self.inner.own)
            .finish_non_exhaustive()
    }
}

impl Workspace {
    /// Opens a folder as the root.
    ///
    /// # Errors
    /// [`WorkspaceError::NotADirectory`] if `root` is not a folder, [`WorkspaceError::Io`] if it cannot be opened.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let io = |e: io::Error| WorkspaceError::io("open", &root.to_string_lossy(), e);
        let given = std::path::absolute(root).map_err(io)?;
        let canonical = root.canonicalize().map_err(io)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&canonical, flags, Mode::empty()).map_err(|e| io(e.into()))?;
        Ok(Self {
            inner: Arc::new(Inner {
                given,
                root: canonical,
                fd: Arc::new(fd),
                own: Vec::new(),
                hidden: Arc::default(),
                secrets: SecretNames::default(),
                git: false,
                repositories: false,
                repository: None,
                refused: None,
                links: Arc::default(),
            }),
        })
    }

    /// Hides these paths and everything below them: no operation reads, lists, searches, writes or removes them, and no command
    /// can name them. For state, settings and secrets, inside or outside the root. A relative path starts at the root.
    ///
    /// A policy takes the hidden paths from its workspace, so call this before
    /// `haft::policy::PolicyBuilder::workspace`.
    pub fn with_hidden(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let inner = Arc::make_mut(&mut self.inner);
        let mut hidden = inner.hidden.to_vec();
        for path in paths {
            let absolute = inner.root.join(path);
            let real = canonical_prefix(&absolute);
            if let Ok(relative) = real.strip_prefix(&inner.root) {
                inner.own.push(relative.to_path_buf());
            }
            hidden.extend([absolute, real]);
        }
        hidden.sort();
        hidden.dedup();
        inner.hidden = hidden.into();
        self
    }

    /// Looks for the workspace's git repository outside of the root (a linked worktree, a submodule, a package in a larger repository).
    /// From then on paths below `.git` lie in it. One that is not really the workspace's own is not used:
    /// [`refused_repository`](Self::refused_repository) says why.
    pub fn with_repository(mut self) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let (found, why) = match repository::find(&self.inner.root, home.as_deref()) {
            RepositoryPlace::Inside => (None, None),
            RepositoryPlace::Outside(found) => (Some(Arc::new(found)), None),
            RepositoryPlace::Refused(why) => (None, Some(why.into())),
        };
        let inner = Arc::make_mut(&mut self.inner);
        inner.repository = found;
        inner.refused = why;
        self
    }

    /// Returns the workspace's git repository if it lies outside of the root.
    pub fn repository(&self) -> Option<&OutsideRepository> {
        self.inner.repository.as_deref()
    }

    /// Returns why a repository that a `.git` file or a folder above names is not used, as a clause.
    pub fn refused_repository(&self) -> Option<&str> {
        self.inner.refused.as_deref()
    }

    /// Fails if the workspace's repository is no longer the one that was found when the workspace was opened.
    ///
    /// # Errors
    /// What has changed, as a sentence.
    pub fn check_repository(&self) -> Result<(), String> {
        let now = Self::clone(self).with_repository();
        match (self.repository(), now.repository()) {
            (None, None) => Ok(()),
            (Some(then), Some(now)) if then.is_same(now) && then.is_still_there() => Ok(()),
            _ => Err(
                "the workspace's git repository has changed since haft opened the workspace: restart haft"
                    .to_owned(),
            ),
        }
    }

    /// Returns the path on this machine of a real path below the root: of `.git` and below in the repository, wherever it lies.
    pub fn host_path(&self, real: &Path) -> PathBuf {
        match (self.repository(), real.strip_prefix(GIT)) {
            (Some(outside), Ok(rest)) if rest == Path::new("") => outside.folder().to_owned(),
            (Some(outside), Ok(rest)) => outside.folder().join(rest),
            _ => self.inner.root.join(real),
        }
    }

    /// Returns the path below the root of a path on this machine, if it has one: the reverse of [`host_path`](Self::host_path). It
    /// follows no links.
    pub fn below(&self, host: &Path) -> Option<PathBuf> {
        let of_git = || {
            let within = host.strip_prefix(self.repository()?.folder()).ok()?;
            Some(Path::new(GIT).join(within))
        };
        let inside = host.strip_prefix(&self.inner.root).ok();
        inside.map(Path::to_owned).or_else(of_git)
    }

    /// Whether a real path is that of a repository outside of the root.
    pub(crate) fn is_repository(&self, real: &Path) -> bool {
        self.inner.repository.is_some() && real == Path::new(GIT)
    }

    /// Returns the folder, in the workspace or the repository, that a real path is opened beneath, and the path below it.
    pub(crate) fn base_of<'a>(&self, real: &'a Path) -> (BorrowedFd<'_>, &'a Path) {
        match (&self.inner.repository, real.strip_prefix(GIT)) {
            (Some(outside), Ok(rest)) => (outside.fd.as_fd(), rest),
            _ => (self.inner.fd.as_fd(), real),
        }
    }

    /// Replaces the standard names of files that hold secrets. A policy takes them from
    /// its workspace.
    pub fn with_secret_names(mut self, names: SecretNames) -> Self {
        Arc::make_mut(&mut self.inner).secrets = names;
        self
    }

    /// Returns the names of files that hold secrets.
    pub fn secret_names(&self) -> &SecretNames {
        &self.inner.secrets
    }

    /// Returns the workspace for changes that were judged one by one: it may also change `.git` folders.
    pub(crate) fn with_git(&self) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.git = true;
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the workspace for an undo, which restores a repository in a folder of any other name than `.git` as a whole.
    pub(crate) fn with_repositories(&self) -> Self {
        let mut inner = Inner::clone(&self.inner);
        inner.repositories = true;
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns all links below the root, as they are now. The first call searches the whole workspace, later ones look at each folder.
    pub fn links(&self) -> Arc<Links> {
        self.inner.links.links(&self.inner.root)
    }

    /// Returns the root, without links.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// Returns the path as the policy must see it, with where its links lead.
    ///
    /// # Errors
    /// [`WorkspaceError::Outside`] if the path leads out of the root, [`WorkspaceError::Own`] if it is haft's own,
    /// [`WorkspaceError::Malformed`] if it is not a valid path, [`WorkspaceError::Io`] if it cannot be inspected.
    pub fn claim(&self, path: &str) -> Result<PathClaim, WorkspaceError> {
        self.place(path)?.claim()
    }

    /// Returns every hidden path, absolute and sorted: as given, and where its links lead.
    pub fn hidden(&self) -> &Arc<[PathBuf]> {
        &self.inner.hidden
    }

    /// Returns the hidden paths below the root, relative to it, for a jail to cover.
    pub fn hidden_inside(&self) -> &[PathBuf] {
        &self.inner.own
    }

    /// Whether a path is at or below haft's own state (path rule 9).
    pub(crate) fn is_own(&self, relative: &Path) -> bool {
        self.inner.own.iter().any(|own| relative.starts_with(own))
    }

    pub(crate) fn holds_own(&self, relative: &Path) -> bool {
        self.inner.own.iter().any(|own| own.starts_with(relative))
    }

    /// Opens a real path beneath the root; a link anywhere in it is an error (path rule 5).
    pub(crate) fn beneath(&self, real: &Path, flags: OFlags) -> Result<OwnedFd, WorkspaceError> {
        self.open_beneath(real, flags)
            .map_err(|e| WorkspaceError::from_errno("open", real, e))
    }

    fn open_beneath(&self, real: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let (folder, path) = self.base_of(real);
        open_below(folder, path, flags)
    }
}

/// Opens what is at a path below a folder, and nothing else: a link anywhere in the path is an error.
fn open_below(folder: impl AsFd, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    beneath::open_beneath(folder, named(path), flags | OFlags::NOFOLLOW)
}

/// Returns the name of a path for the system, to which the folder itself is `.`.
pub(crate) fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

/// Resolves the links in the existing part of a path; the rest remains as written.
fn canonical_prefix(path: &Path) -> PathBuf {
    let found = path
        .ancestors()
        .find_map(|above| above.canonicalize().ok().map(|real| (above, real)));
    match found {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_path_buf(),
        },
        None => path.to_path_buf(),
    }
}

/// Whether the path is at or below a `.git` entry, compared case-insensitively.
pub(crate) fn is_git(relative: &Path) -> bool {
    relative
        .components()
        .any(|part| matches!(part, Component::Normal(name) if name.eq_ignore_ascii_case(GIT)))
}

/// Returns a relative path as text for messages; the root is `.`.
fn display_path(relative: &Path) -> String {
    if relative.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        relative.to_string_lossy().into_owned()
    }
}
