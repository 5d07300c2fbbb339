//! `Workspace`: the folder that tools work in, and the edge that no path crosses.
//!
//! A path is used in two steps. [`Workspace::place`] follows it, link by link, to where it really leads, and
//! refuses it when that is outside. What works on a [`Place`] then opens that real path beneath the root's own
//! descriptor with `openat2` and no links allowed, so a folder or link that was swapped in between makes the
//! operation fail instead of leaving. Paths are literal bytes: nothing is expanded and nothing normalised.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::permission::PathClaim;

mod change;
mod error;
mod list;
mod place;
mod read;
mod remove;
mod write;

#[cfg(test)]
mod tests;

pub use change::Change;
pub use error::WorkspaceError;
pub use list::Entry;
pub use place::{Kind, Place};
pub use read::{FileStamp, OpenFile};
pub use write::{WriteMode, Written};

/// Says whether a path (relative to the root) may be shown by lists and searches.
pub type PathFilter = dyn Fn(&str) -> bool + Send + Sync;

/// The entry below which nothing is written, moved or deleted, in any spelling.
const GIT: &str = ".git";

/// A folder that no path leaves. Cheap to clone.
#[derive(Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    /// As the host wrote it: absolute paths may be written below it, too.
    given: PathBuf,
    /// Without links, found once.
    root: PathBuf,
    fd: Arc<OwnedFd>,
    /// Relative to the root, without links.
    own: Vec<PathBuf>,
    filters: Vec<Arc<PathFilter>>,
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
    /// Opens a folder as the root. Needs Linux 5.6 for `openat2`.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let io = |e: io::Error| WorkspaceError::io("open", &root.to_string_lossy(), e);
        let given = std::path::absolute(root).map_err(io)?;
        let canonical = root.canonicalize().map_err(io)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&canonical, flags, Mode::empty()).map_err(|e| io(e.into()))?;
        let workspace = Self {
            inner: Arc::new(Inner {
                given,
                root: canonical,
                fd: Arc::new(fd),
                own: Vec::new(),
                filters: Vec::new(),
            }),
        };
        // Probed by doing: a kernel or an outer jail without openat2 is told now, not at the first call.
        workspace.beneath(Path::new(""), OFlags::PATH)?;
        Ok(workspace)
    }

    /// Paths that no operation reads, lists, searches, writes or removes, with all below them: haft's own state,
    /// settings and secrets. Those outside the root are out of reach anyway and are dropped.
    pub fn with_denied(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let inner = Arc::make_mut(&mut self.inner);
        for path in paths {
            let absolute = inner.root.join(path);
            let real = canonical_prefix(&absolute);
            if let Ok(relative) = real.strip_prefix(&inner.root) {
                inner.own.push(relative.to_path_buf());
            }
        }
        self
    }

    /// Shows to lists and searches only what this, and every filter before it, says yes to.
    pub fn with_filter(mut self, filter: Arc<PathFilter>) -> Self {
        Arc::make_mut(&mut self.inner).filters.push(filter);
        self
    }

    /// The root, without links.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// The path as the policy must see it, with where its links lead.
    pub fn claim(&self, path: &str) -> Result<PathClaim, WorkspaceError> {
        self.place(path)?.claim()
    }

    /// Whether lists and searches may show this path (relative to the root, without links).
    pub fn shows(&self, relative: &Path) -> bool {
        let allowed = |filter: &Arc<PathFilter>| filter(&relative.to_string_lossy());
        !self.is_own(relative) && self.inner.filters.iter().all(allowed)
    }

    /// The paths of haft's own below the root, relative to it, for a jail to hide.
    pub fn denied(&self) -> &[PathBuf] {
        &self.inner.own
    }

    /// Whether a filter or paths of haft's own narrow what lists and searches show.
    pub fn hides_anything(&self) -> bool {
        !self.inner.own.is_empty() || !self.inner.filters.is_empty()
    }

    fn is_own(&self, relative: &Path) -> bool {
        self.inner.own.iter().any(|own| relative.starts_with(own))
    }

    fn holds_own(&self, relative: &Path) -> bool {
        self.inner.own.iter().any(|own| own.starts_with(relative))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd.as_fd()
    }

    /// Opens a real path beneath the root; a link anywhere in it is an error.
    fn beneath(&self, real: &Path, flags: OFlags) -> Result<OwnedFd, WorkspaceError> {
        self.open_beneath(real, flags)
            .map_err(|e| WorkspaceError::from_errno("open", real, e))
    }

    fn open_beneath(&self, real: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if real.as_os_str().is_empty() {
            Path::new(".")
        } else {
            real
        };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat2(self.fd(), path, flags, Mode::empty(), resolve)
    }
}

/// A path with the links of its existing part followed; the rest as written.
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

/// At or below a `.git` entry, compared without case.
fn is_git(relative: &Path) -> bool {
    relative
        .components()
        .any(|part| matches!(part, Component::Normal(name) if name.eq_ignore_ascii_case(GIT)))
}

/// A relative path as text for messages; the root is `.`.
fn shown(relative: &Path) -> String {
    if relative.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        relative.to_string_lossy().into_owned()
    }
}
