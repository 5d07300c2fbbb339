//! The permissions of a command's changes: each is judged like a write or deletion by a file tool.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::{ChangeList, ViewChange};
use haft::permission::{PathClaim, Permission};
use haft::policy::protected_from_commands;
use haft::spec::Risk;
use haft::workspace::Workspace;

use crate::command::changes::ignored_set::IgnoredSet;
use crate::command::changes::unsaved::UnsavedContents;
use crate::command::git_changes::extra_protected;
use crate::lexical::target_of_link;

/// Derives the permissions of one command's changes.
pub(super) struct ChangeEffects<'a> {
    root: &'a Path,
    /// `None` if every file is asked about.
    ignored: Option<IgnoredSet<'a>>,
    /// True if the command was approved before it ran.
    approved: bool,
    /// The folders of the user's toolchains.
    toolchains: &'a [PathBuf],
    /// Changes that are not applied unasked, whatever git ignores.
    unsaved: Option<(&'a ChangeList, UnsavedContents)>,
    /// Paths that are protected regardless of their names.
    protected: BTreeSet<String>,
}

impl<'a> ChangeEffects<'a> {
    /// `ignored` is what git ignores, unless every file is asked about.
    pub(super) fn new(
        workspace: &'a Workspace,
        approved: bool,
        ignored: Option<IgnoredSet<'a>>,
    ) -> Self {
        Self {
            root: workspace.root(),
            ignored,
            approved,
            toolchains: &[],
            unsaved: None,
            protected: BTreeSet::new(),
        }
    }

    /// Sets the folders of the user's toolchains.
    pub(super) fn with_toolchains(self, toolchains: &'a [PathBuf]) -> Self {
        Self { toolchains, ..self }
    }

    /// Adds what cannot be undone of these changes.
    pub(super) fn with_unsaved(self, changes: &'a ChangeList, unsaved: UnsavedContents) -> Self {
        Self {
            unsaved: Some((changes, unsaved)),
            ..self
        }
    }

    /// Adds the changed paths and their further names, so that settings of repositories among them are protected.
    pub(super) fn with_repositories<'p>(
        mut self,
        workspace: &'p Workspace,
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> Self {
        self.protected = extra_protected(workspace, paths);
        self
    }

    /// Returns the permission that applying a change needs. It is safe if the command was approved, or for an ignored path that is
    /// applied unasked; then only rules and guards decide.
    pub(super) fn of(&mut self, change: &ViewChange<'_>) -> Permission {
        let path = change.path;
        let claim = PathClaim {
            path: path.to_string_lossy().into_owned(),
            target: self.target(change),
        };
        let mut permission = match change.after {
            None => Permission::remove(claim),
            Some(_) => Permission::write(claim),
        };
        let ignored = self.ignored.as_mut();
        let ignored = ignored.is_some_and(|ignored| ignored.is_applied_unasked(change))
            && !self.is_unsaved(path);
        if self.approved || ignored {
            permission.risk = Risk::Safe;
        }
        if self.is_protected(&permission) {
            // Neither a profile nor an approval of the command allows this.
            permission.risk = Risk::Critical;
        }
        permission
    }

    /// Returns the permission to remove what a change replaces by something of another kind: to budgets of deletions it is gone.
    pub(super) fn of_replaced(&self, change: &ViewChange<'_>) -> Option<Permission> {
        let is_lost = match (&change.before, &change.after) {
            (Some(EntryState::File { .. }), Some(after)) => {
                !matches!(after, EntryState::File { .. })
            }
            (Some(EntryState::Link { .. }), Some(after)) => {
                !matches!(after, EntryState::Link { .. })
            }
            _ => false,
        };
        let claim = PathClaim::plain(change.path.to_string_lossy());
        // Everything else is decided about what is put there.
        is_lost.then(|| self.by_claim(Permission::remove(claim)))
    }

    /// Returns the permission that the change needs because a link gives its path this name, too.
    pub(super) fn by_name(&self, change: &ViewChange<'_>, name: &Path) -> Permission {
        let claim = PathClaim {
            path: name.to_string_lossy().into_owned(),
            target: Some(change.path.to_string_lossy().into_owned()),
        };
        self.by_claim(match change.after {
            None => Permission::remove(claim),
            Some(_) => Permission::write(claim),
        })
    }

    /// Returns the permission to change a path that stands for another one.
    pub(super) fn by_claim(&self, mut permission: Permission) -> Permission {
        // Rules and guards decide about a name; the profile decides about the path itself.
        permission.risk = if self.is_protected(&permission) {
            Risk::Critical
        } else {
            Risk::Safe
        };
        permission
    }

    fn is_unsaved(&self, path: &Path) -> bool {
        let unsaved = self.unsaved.as_ref();
        unsaved.is_some_and(|(changes, unsaved)| unsaved.holds_path(changes, path))
    }

    fn is_protected(&self, permission: &Permission) -> bool {
        let Some(claim) = permission.effect.changed_path() else {
            return false;
        };
        let protected = |path: &String| protected_from_commands(path).is_some();
        protected(&claim.path)
            || claim.target.as_ref().is_some_and(protected)
            || self.protected.contains(&claim.path)
    }

    /// Returns the target of a new link if rules may apply to it. An environment of Python links to its interpreter.
    fn target(&self, change: &ViewChange<'_>) -> Option<String> {
        let Some(EntryState::Link { target }) = &change.after else {
            return None;
        };
        let target = target_of_link(self.root, change.path, &target.0)?;
        let of = |folder: &PathBuf| is_program_below(folder, Path::new(&target));
        (!self.toolchains.iter().any(of)).then_some(target)
    }
}

/// Returns whether a path is that of a program, below a folder by its real name, too.
fn is_program_below(folder: &Path, target: &Path) -> bool {
    let executable = |meta: Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
    target.starts_with(folder)
        && target.metadata().is_ok_and(executable)
        && target
            .canonicalize()
            .is_ok_and(|real| real.starts_with(folder))
}
