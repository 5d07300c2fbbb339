//! The guarded names of a workspace.

use std::path::{Path, PathBuf};

use crate::command::{AbsentGuard, GuardKind, Mounts};

/// A guarded name, as the supervisor knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuardedName {
    /// Relative to the workspace.
    pub(crate) path: PathBuf,
    /// Whether the placeholder that holds its place while it is absent is a folder.
    pub(crate) folder: bool,
    /// Whether it is guarded below every folder.
    pub(crate) any_depth: bool,
    /// What keeps the command from creating it.
    pub(crate) absent: AbsentGuard,
}

/// All guarded names, and the approved paths below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GuardedNames {
    pub(crate) guarded: Vec<GuardedName>,
    pub(crate) approved: Vec<PathBuf>,
}

impl GuardedNames {
    pub(crate) fn of(mounts: &Mounts) -> Self {
        let is_open = |path: &Path| mounts.writable.iter().any(|open| path.starts_with(open));
        let held = mounts
            .guards
            .iter()
            .filter(|guard| guard.kind == GuardKind::Hidden || !is_open(&guard.path));
        let guarded = held.map(|guard| GuardedName {
            path: guard.path.clone(),
            folder: guard.folder,
            any_depth: guard.any_depth,
            absent: guard.absent,
        });
        let pinned = mounts.pinned.iter().map(|path| GuardedName {
            path: path.clone(),
            folder: false,
            any_depth: false,
            absent: AbsentGuard::Placeholder,
        });
        Self {
            guarded: guarded.chain(pinned).collect(),
            approved: mounts.writable.clone(),
        }
    }

    /// Returns whether nothing may be created at this path.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let named = |name: &GuardedName| match name.absent {
            AbsentGuard::NewEntries => path.parent() == Some(&name.path),
            _ => path == name.path || name.any_depth && path.ends_with(&name.path),
        };
        self.guarded.iter().any(named) && !self.approved.iter().any(|open| path.starts_with(open))
    }

    /// Returns whether it is a new entry of a folder that gets none.
    pub(crate) fn holds_as_new_entry(&self, path: &Path) -> bool {
        let closed = |name: &GuardedName| {
            name.absent == AbsentGuard::NewEntries && path.parent() == Some(&*name.path)
        };
        self.guarded.iter().any(closed)
    }

    /// Returns the name that is guarded at exactly this path, whether it exists or not, if a placeholder may hold its place.
    pub(crate) fn at(&self, path: &Path) -> Option<&GuardedName> {
        let is_held = |name: &&GuardedName| name.absent == AbsentGuard::Placeholder;
        let mut held = self.guarded.iter().filter(is_held);
        held.find(|name| name.path == path)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::GuardedNames;
    use crate::command::{Mounts, PathGuard};

    #[test]
    fn guarded_names_when_a_path_is_approved_hold_everywhere_but_there() {
        let mounts = Mounts {
            guards: vec![
                PathGuard::protect_file("top"),
                PathGuard::protect_dir(".git/hooks").at_any_depth(),
                PathGuard::protect_file("open"),
                PathGuard::hide_file("secret"),
                PathGuard::protect_file("bare/commondir").without_placeholder(),
                PathGuard::no_new_entries("modules"),
            ],
            writable: vec!["open".into(), "secret".into(), "a/.git".into()],
            ..Mounts::default()
        };
        let names = GuardedNames::of(&mounts);
        for (path, expect) in [
            ("top", true),
            ("a/top", false),
            (".git/hooks", true),
            ("x/y/.git/hooks", true),
            ("x/y.git/hooks", false),
            ("hooks", false),
            ("open", false),
            ("a/.git/hooks", false),
            ("bare/commondir", true),
            ("modules", false),
            ("modules/new", true),
            ("modules/new/config", false),
        ] {
            assert_eq!(names.holds(Path::new(path)), expect, "{path}");
        }
        assert!(names.at(Path::new("secret")).is_some());
        for unheld in ["open", "bare/commondir", "modules"] {
            assert!(names.at(Path::new(unheld)).is_none(), "{unheld}");
        }
    }
}
