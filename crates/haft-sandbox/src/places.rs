//! Decides which files of this machine a jail may show, and which programs may run before its locks are on.
//!
//! Every bind mount and every Landlock grant of a path that is not the system's own passes
//! [`Places::admit`]; every program that haft starts for itself passes [`Places::startable`]. Both
//! compare canonical paths, so symbolic links make no difference.

mod foreign;
mod home;
pub(crate) mod owner;
mod private;
pub(crate) mod toolchain;
mod variables;
mod way;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use self::toolchain::is_part;
use self::way::resolved;
use crate::spawn::on_path;

/// The system's folders of programs and libraries: every jail shows them, and only an administrator
/// can change them.
pub(crate) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];
/// Folders of which every jail has its own instance.
const MADE: &[&str] = &["/proc", "/sys", "/dev", "/run", "/var/run", "/etc"];
/// Folders that hold the files of all users.
const SHARED: &[&str] = &[
    "/root", "/home", "/tmp", "/var", "/usr", "/opt", "/mnt", "/boot",
];

/// What the host declares about the files of its machine.
///
/// The default knows only the user's home folders. Without [`declared`](Self::declared), the sandbox looks for no
/// interpreter outside the system's folders: it could lie in a folder that tools write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    own: Vec<PathBuf>,
    /// Files and folders that every jail may show and none may change.
    fixed: Vec<PathBuf>,
    /// Links, and folders on the way of links, that no jail may replace.
    pinned: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    homes: Vec<PathBuf>,
    declared: bool,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            own: Vec::new(),
            fixed: Vec::new(),
            pinned: Vec::new(),
            writable: Vec::new(),
            homes: home::folders(),
            declared: false,
        }
    }
}

/// A path that the sandbox does not show, or a program that it does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{}` {why}", path.display())]
pub struct PathRefusal {
    /// The path, as given.
    pub path: PathBuf,
    /// The reason, as the rest of a sentence that starts with the path.
    pub why: String,
}

/// The purpose for which a path is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathPurpose<'a> {
    /// As the folder that a command changes.
    Workspace,
    /// To be read, named by the host.
    Named,
    /// To be read, as a part of an installation found in this prefix.
    Part(&'a Path),
    /// To be read, as a part of a manager's canonical folder, with no symbolic link on the way from it.
    Below(&'a Path),
    /// To be read by commands, because the settings say so.
    Shown,
    /// To be changed by commands, in addition to the workspace.
    Changed,
}

impl Places {
    /// Declares the host's own paths (state, settings, files with secrets), which no jail shows, and the
    /// folders that tools may change, from which nothing is started outside a jail. Paths that do not exist
    /// yet count too.
    pub fn declared(
        own: impl IntoIterator<Item = PathBuf>,
        writable: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            own: resolved(own),
            fixed: Vec::new(),
            pinned: Vec::new(),
            writable: resolved(writable),
            homes: home::folders(),
            declared: true,
        }
    }

    /// Declares files and folders that commands may read and not change, although they lie in a folder that commands may
    /// change: the host's own program.
    #[must_use]
    pub fn with_fixed(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.fixed = resolved(paths);
        self
    }

    /// Declares links, and folders on the way of links, that commands may neither remove, rename nor replace: what leads to the
    /// host's own program. What lies in such a folder, or where such a link leads, may be changed.
    #[must_use]
    pub fn with_pinned(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let itself = |path: PathBuf| match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => {
                let real = folder.canonicalize();
                real.map_or_else(|_| path.clone(), |folder| folder.join(name))
            }
            _ => path,
        };
        self.pinned = paths.into_iter().map(itself).collect();
        self
    }

    /// Returns the canonical path of a folder or file that settings show to commands, writable or read-only.
    ///
    /// # Errors
    /// [`PathRefusal`] if no jail may show it: it holds haft's own files or credentials, or is a home folder.
    pub fn check_shown(&self, path: &Path, changed: bool) -> Result<PathBuf, PathRefusal> {
        let wanted = if changed {
            PathPurpose::Changed
        } else {
            PathPurpose::Shown
        };
        self.admit(path, wanted)
    }

    /// Sets the home folders.
    #[cfg(test)]
    pub(crate) fn with_homes(mut self, homes: impl IntoIterator<Item = PathBuf>) -> Self {
        self.homes = resolved(homes);
        self
    }

    /// Returns the canonical paths of the folders and files that tools may change; what is not there yet is among them.
    pub fn changeable(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Returns whether tools may change or create the file at a path, or which file the path leads to: it, or a symbolic link on the way
    /// to it, lies in a folder that tools may change.
    pub fn may_change(&self, path: &Path) -> bool {
        let way = way::as_far_as_it_leads(path);
        self.is_writable(path) || way.iter().any(|path| self.is_writable(path))
    }

    /// Returns the home folder of this user that `folder` is or contains.
    pub fn home_within(&self, folder: &Path) -> Option<&Path> {
        let real = folder.canonicalize();
        self.home_below(real.as_deref().unwrap_or(folder))
    }

    /// Returns the home folder of this user that a canonical path is or contains.
    fn home_below(&self, real: &Path) -> Option<&Path> {
        let home = self.homes.iter().find(|home| home.starts_with(real));
        home.map(PathBuf::as_path)
    }

    /// Returns the canonical path, if the jail may show it. The only place that decides this.
    pub(crate) fn admit(
        &self,
        path: &Path,
        wanted: PathPurpose<'_>,
    ) -> Result<PathBuf, PathRefusal> {
        let refuse = |why: &dyn fmt::Display| refused(path, why);
        let real = path.canonicalize().map_err(|error| refuse(&error))?;
        let made = MADE.iter().any(|folder| real.starts_with(folder));
        if made || real.parent().is_none() || SHARED.iter().any(|folder| real == Path::new(folder))
        {
            return Err(refuse(&"is the system's own, and no jail shows it"));
        }
        let workspace = wanted == PathPurpose::Workspace;
        // Own paths inside a workspace are hidden there.
        let holds_own = !workspace && self.own.iter().any(|own| own.starts_with(&real));
        if holds_own || self.own.iter().any(|own| real.starts_with(own)) {
            return Err(refuse(&"holds, or lies in, what is haft's own"));
        }
        if let Some(home) = self.home_below(&real) {
            let text = format!("is a home folder, or holds one ({})", home.display());
            return Err(refuse(&text));
        }
        if !workspace && self.holds_writable(&real) {
            return Err(refuse(&"holds a folder that tools may change"));
        }
        if matches!(wanted, PathPurpose::Shown | PathPurpose::Changed) {
            self.check_private(&real, wanted)
                .map_err(|why| refuse(&why))?;
        }
        let (PathPurpose::Part(prefix) | PathPurpose::Below(prefix)) = wanted else {
            return Ok(real);
        };
        if self.is_writable(&real) {
            return Err(refuse(&"lies in a folder that tools may change"));
        }
        if matches!(wanted, PathPurpose::Below(_)) {
            if real != path || !real.starts_with(prefix) {
                let text = format!("is a link, or lies behind one, to {}", real.display());
                return Err(refuse(&text));
            }
        } else if real != path || !is_part(prefix, &real) {
            return Err(refuse(&"is not part of an interpreter's installation"));
        }
        owner::check_owner(&real).map_err(|why| refuse(&why))?;
        Ok(real)
    }

    /// Returns the canonical path of a program that may be started outside a jail: no tool can change it, or which file its name
    /// leads to.
    ///
    /// # Errors
    /// [`PathRefusal`] if a tool can, if it is not a file, or if it belongs to another user.
    pub fn check_startable(&self, program: &Path) -> Result<PathBuf, PathRefusal> {
        self.startable(program)
    }

    /// Returns the canonical path of a program that may run before a jail's locks are on: no tool can change
    /// it, or which file its name leads to.
    pub(crate) fn startable(&self, program: &Path) -> Result<PathBuf, PathRefusal> {
        let refuse = |why: &dyn fmt::Display| refused(program, why);
        let way = way::to(program).map_err(|error| refuse(&error))?;
        let real = way.last().cloned().unwrap_or_default();
        if !real.is_file() {
            return Err(refuse(&"is not a file"));
        }
        if way.iter().any(|path| self.is_writable(path)) {
            return Err(refuse(&"lies in a folder that tools may change"));
        }
        if way.iter().any(|path| self.is_own(path)) {
            return Err(refuse(&"lies in what is haft's own"));
        }
        if way.iter().all(|path| self.is_shown(path)) {
            return Ok(real);
        }
        if !self.declared {
            return Err(refuse(
                &"lies outside the system's folders, and the host has not declared what tools may change",
            ));
        }
        owner::check_owner(&real).map_err(|why| refuse(&why))?;
        Ok(real)
    }

    /// Returns the first program with this name on a `PATH` that may run outside a jail; `None` if no program has the name.
    ///
    /// # Errors
    /// [`PathRefusal`] if no program of the name may: tools could have put it there, or another user could change it.
    pub fn program(&self, name: &str, path: &OsStr) -> Option<Result<PathBuf, PathRefusal>> {
        let mut first = None;
        for file in on_path(name, path) {
            match self.startable(&file) {
                Ok(program) => return Some(Ok(program)),
                Err(refused) => first = first.or(Some(refused)),
            }
        }
        first.map(Err)
    }

    /// Returns the host's own paths below a workspace, relative to it.
    pub(crate) fn own_within<'a>(&'a self, workspace: &'a Path) -> impl Iterator<Item = &'a Path> {
        within(&self.own, workspace)
    }

    /// Returns the fixed paths below a workspace, relative to it.
    pub(crate) fn fixed_within<'a>(
        &'a self,
        workspace: &'a Path,
    ) -> impl Iterator<Item = &'a Path> {
        within(&self.fixed, workspace)
    }

    /// Returns the pinned paths below a workspace, relative to it.
    pub(crate) fn pinned_within<'a>(
        &'a self,
        workspace: &'a Path,
    ) -> impl Iterator<Item = &'a Path> {
        within(&self.pinned, workspace)
    }

    /// Returns true if a canonical path holds, or lies in, what is the host's own.
    pub fn concerns_own(&self, path: &Path) -> bool {
        self.is_own(path) || self.own.iter().any(|own| own.starts_with(path))
    }

    fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|folder| path.starts_with(folder))
    }

    fn holds_writable(&self, path: &Path) -> bool {
        let holds = |folder: &PathBuf| folder.starts_with(path) && folder != path;
        self.writable.iter().any(holds)
    }
}

/// Returns the paths below a workspace, relative to it.
fn within<'a>(paths: &'a [PathBuf], workspace: &'a Path) -> impl Iterator<Item = &'a Path> {
    let inside = paths
        .iter()
        .filter_map(move |path| path.strip_prefix(workspace).ok());
    inside.filter(|path| *path != Path::new(""))
}

fn refused(path: &Path, why: &dyn fmt::Display) -> PathRefusal {
    PathRefusal {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// Returns whether a path lies in the system's folders.
pub(crate) fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Places;

    #[test]
    fn j1_what_tools_may_change_is_not_started_below_the_systems_folders_either() {
        let shell = Path::new("/bin/sh").canonicalize().unwrap();
        let folder = shell.parent().map(Path::to_owned);
        let startable = |own: &Option<PathBuf>, writable: &Option<PathBuf>| {
            Places::declared(own.clone(), writable.clone()).startable(&shell)
        };
        assert_eq!(startable(&None, &None).unwrap(), shell);
        let refused = startable(&None, &folder).unwrap_err();
        assert!(
            refused.to_string().contains("tools may change"),
            "{refused}"
        );
        let refused = startable(&folder, &None).unwrap_err();
        assert!(refused.to_string().contains("haft's own"), "{refused}");
    }
}
