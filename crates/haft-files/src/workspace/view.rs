//! `WorkspaceView`: a workspace as one call may see it.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::workspace::{DirEntry, ResolvedPath, Workspace, WorkspaceError};

/// Whether a path (relative to the root) may be shown.
pub type PathFilter = dyn Fn(&str) -> bool + Send + Sync;

/// A workspace as one call may see it: whatever shows file names (lists, searches, suggestions in errors) leaves out
/// hidden files and those that the policy's rules do not let the call read. A tool gets it from
/// `haft::CallContext::view`.
#[derive(Clone)]
pub struct WorkspaceView {
    workspace: Workspace,
    filter: Option<Arc<PathFilter>>,
    /// Whether a file's content may be read; `None` if all may.
    readable: Option<Arc<PathFilter>>,
}

impl std::fmt::Debug for WorkspaceView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceView")
            .field("workspace", &self.workspace)
            .field("filtered", &self.filter.is_some())
            .field("reads_all", &self.readable.is_none())
            .finish()
    }
}

impl Deref for WorkspaceView {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Workspace {
    /// Returns the workspace without a policy's restrictions: hidden paths stay hidden, but rules such as `Read(secrets/**)` do not
    /// apply. For a host's own use and for tests; a tool uses `haft::CallContext::view`.
    pub fn unfiltered(&self) -> WorkspaceView {
        self.filtered(None)
    }

    /// Returns the workspace as seen by a call whose policy shows the paths that the filter accepts.
    pub fn filtered(&self, filter: Option<Arc<PathFilter>>) -> WorkspaceView {
        WorkspaceView {
            workspace: self.clone(),
            filter,
            readable: None,
        }
    }
}

impl WorkspaceView {
    /// Restricts the files whose content may be read.
    pub fn reading(self, readable: Option<Arc<PathFilter>>) -> Self {
        Self { readable, ..self }
    }

    /// Whether a call that found a file at this path (relative to the root, without links) by itself may read its content. Its
    /// name may be shown even if not.
    pub fn reads(&self, relative: &Path) -> bool {
        let readable = self.readable.as_ref();
        readable.is_none_or(|readable| readable(&relative.to_string_lossy()))
    }

    /// Whether this path (relative to the root, without links) may be shown.
    pub fn shows(&self, relative: &Path) -> bool {
        !self.is_own(relative)
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter(&relative.to_string_lossy()))
    }

    /// Whether anything is left out: if not, a walk need not check each path.
    pub fn hides_anything(&self) -> bool {
        !self.hidden_inside().is_empty() || self.filter.is_some()
    }

    /// Returns the place of a path at which something must exist.
    ///
    /// # Errors
    /// The same as for [`place`](Workspace::place); if nothing exists, the error suggests a similar visible name.
    pub fn existing(&self, path: &str) -> Result<ResolvedPath, WorkspaceError> {
        self.require_existing(self.place(path)?)
    }

    /// Returns the place if something exists there.
    ///
    /// # Errors
    /// If nothing exists there, the error suggests a similar visible name.
    pub fn require_existing(&self, place: ResolvedPath) -> Result<ResolvedPath, WorkspaceError> {
        if place.kind().is_none() {
            return Err(WorkspaceError::NotFound {
                near: self.near(&place),
                path: place.display(),
            });
        }
        Ok(place)
    }

    /// Returns the first `max` visible entries of the folder at a place, sorted by name, and whether there are more.
    ///
    /// # Errors
    /// Nothing exists there, it is not a folder, or it cannot be read.
    pub fn list(
        &self,
        place: &ResolvedPath,
        max: usize,
    ) -> Result<(Vec<DirEntry>, bool), WorkspaceError> {
        self.list_shown(place, max, &|path| self.shows(path))
    }

    fn near(&self, place: &ResolvedPath) -> Option<String> {
        self.similar_name(place, &|path| self.shows(path))
    }
}
