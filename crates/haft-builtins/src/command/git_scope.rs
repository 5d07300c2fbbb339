//! `GitScope`: which paths in git's settings are the user's own, outside of the workspace.

use std::path::{Path, PathBuf};

use crate::lexical::normalize;

/// What the reading of settings needs to know.
#[derive(Debug)]
pub(super) struct GitScope<'a> {
    /// The real path of the workspace.
    pub(super) root: &'a Path,
    /// The folder that `~` stands for.
    pub(super) home: Option<&'a Path>,
}

impl GitScope<'_> {
    /// Returns true if a path as git's settings write it is absolute and lies outside of the workspace.
    pub(super) fn is_own_path(&self, path: &str) -> bool {
        let path = match path.strip_prefix('~') {
            None => PathBuf::from(path),
            Some(rest) => match (rest.strip_prefix('/'), self.home) {
                (Some(rest), Some(home)) => home.join(rest),
                // The home folder of another user.
                _ => return false,
            },
        };
        path.is_absolute() && !self.holds(&path)
    }

    /// Returns true if the path lies in the workspace, by its names or through a link.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let real = path.ancestors().find_map(|at| at.canonicalize().ok());
        normalize(path).starts_with(self.root) || real.is_none_or(|at| at.starts_with(self.root))
    }
}
