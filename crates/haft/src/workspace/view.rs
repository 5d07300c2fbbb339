//! `WorkspaceView`: a workspace as one call may see it.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::workspace::{DirEntry, Place, Workspace, WorkspaceError};

/// Says whether a path (relative to the root) may be shown.
pub(crate) type PathFilter = dyn Fn(&str) -> bool + Send + Sync;

/// A workspace as one call may see it: what shows names of files (lists, searches, near names in errors) leaves out
/// what is hidden, and what the policy's rules do not let the call read. A tool gets it from
/// [`CallContext::view`](crate::context::CallContext::view).
#[derive(Clone)]
pub struct WorkspaceView {
    workspace: Workspace,
    filter: Option<Arc<PathFilter>>,
    /// Says whether a file's content may be read, where some may not.
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
    /// The workspace as no policy narrows it: hidden paths stay hidden, but rules such as `Read(secrets/**)` do not
    /// apply. For a host's own use and for tests; a tool takes [`CallContext::view`](crate::context::CallContext::view).
    pub fn unfiltered(&self) -> WorkspaceView {
        self.filtered(None)
    }

    /// The workspace as a call sees it whose policy says yes to these paths.
    pub(crate) fn filtered(&self, filter: Option<Arc<PathFilter>>) -> WorkspaceView {
        WorkspaceView {
            workspace: self.clone(),
            filter,
            readable: None,
        }
    }
}

impl WorkspaceView {
    /// The same, of which only these files are read.
    pub(crate) fn reading(self, readable: Option<Arc<PathFilter>>) -> Self {
        Self { readable, ..self }
    }

    /// Whether what a file at this path (relative to the root, without links) holds may be read by a call that found it
    /// itself. Its name may be shown all the same.
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

    /// Whether anything is left out: where nothing is, a walk need not ask about each path.
    pub fn hides_anything(&self) -> bool {
        !self.hidden_inside().is_empty() || self.filter.is_some()
    }

    /// The place of a path at which something must exist.
    ///
    /// # Errors
    /// As for [`place`](Workspace::place); where nothing exists, the error offers a near name that may be shown.
    pub fn existing(&self, path: &str) -> Result<Place, WorkspaceError> {
        self.require_existing(self.place(path)?)
    }

    /// The place, if something exists at it.
    ///
    /// # Errors
    /// Where nothing exists, the error offers a near name that may be shown.
    pub fn require_existing(&self, place: Place) -> Result<Place, WorkspaceError> {
        if place.kind().is_none() {
            return Err(WorkspaceError::NotFound {
                near: self.near(&place),
                path: place.display(),
            });
        }
        Ok(place)
    }

    /// The first `max` entries of the folder at a place that may be shown, sorted by name; and whether there were more.
    ///
    /// # Errors
    /// Nothing exists there, it is no folder, or it cannot be read.
    pub fn list(&self, place: &Place, max: usize) -> Result<(Vec<DirEntry>, bool), WorkspaceError> {
        self.list_shown(place, max, &|path| self.shows(path))
    }

    fn near(&self, place: &Place) -> Option<String> {
        self.near_shown(place, &|path| self.shows(path))
    }
}
