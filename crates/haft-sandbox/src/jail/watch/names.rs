//! The guarded names of a workspace.

use std::path::{Path, PathBuf};

use crate::command::{AbsentGuard, GuardKind, Mounts};

/// A guarded name, as the supervisor knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
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
pub(crate) struct Names {
    pub(crate) guarded: Vec<Name>,
    pub(crate) approved: Vec<PathBuf>,
}

impl Names {
    pub(crate) fn of(mounts: &Mounts) -> Self {
        let is_open = |path: &Path| mounts.writable.iter().any(|open| path.starts_with(open));
        let held = mounts
            .guards
            .iter()
            .filter(|guard| guard.kind == GuardKind::Hidden || !is_open(&guard.path));
        let guarded = held.map(|guard| Name {
            path: guard.path.clone(),
            folder: guard.folder,
            any_depth: guard.any_depth,
            absent: guard.absent,
        });
        let pinned = mounts.pinned.iter().map(|path| Name {
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
    pub(super) fn holds(&self, path: &Path) -> bool {
        let named = |name: &Name| match name.absent {
            AbsentGuard::NewEntries => path.parent() == Some(&name.path),
            _ => path == name.path || name.any_depth && path.ends_with(&name.path),
        };
        self.guarded.iter().any(named) && !self.approved.iter().any(|open| path.starts_with(open))
    }

    /// Returns whether it is a new entry of a folder that gets none.
    pub(super) fn holds_as_new_entry(&self, path: &Path) -> bool {
        let closed = |name: &Name| {
            name.absent == AbsentGuard::NewEntries && path.parent() == Some(&*name.path)
        };
        self.guarded.iter().any(closed)
    }

    /// Returns the name that is guarded at exactly this path, whether it exists or not, if a placeholder may hold its place.
    pub(super) fn at(&self, path: &Path) -> Option<&Name> {
        let is_held = |name: &&Name| name.absent == AbsentGuard::Placeholder;
        let mut held = self.guarded.iter().filter(is_held);
        held.find(|name| name.path == path)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Names;
    use crate::command::{Guard, Mounts};

    #[test]
    fn names_hold_at_their_place_or_below_every_folder_but_for_what_was_approved() {
        let mounts = Mounts {
            guards: vec![
                Guard::protect_file("top"),
                Guard::protect_dir(".git/hooks").at_any_depth(),
                Guard::protect_file("open"),
                Guard::hide_file("secret"),
                Guard::protect_file("bare/commondir").without_placeholder(),
                Guard::no_new_entries("modules"),
            ],
            writable: vec!["open".into(), "secret".into(), "a/.git".into()],
            ..Mounts::default()
        };
        let names = Names::of(&mounts);
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
