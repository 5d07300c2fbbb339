//! The permissions of a command's changes: each is judged like a write or deletion by a file tool.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use haft::change::EntryState;
use haft::change::collect::ViewChange;
use haft::permission::{PathClaim, Permission};
use haft::policy::protected_from_commands;
use haft::spec::Risk;
use haft::workspace::Workspace;

use crate::command::changes::ignored::Ignored;
use crate::command::git_changes::extra_protected;
use crate::lexical::target_of_link;

/// Derives the permissions of one command's changes.
pub(super) struct ChangeEffects<'a> {
    root: &'a Path,
    /// `None` if every file is asked about.
    ignored: Option<Ignored>,
    /// True if the command was approved before it ran.
    approved: bool,
    /// Paths that are protected regardless of their names.
    protected: BTreeSet<String>,
    seen: HashMap<PathBuf, bool>,
}

impl<'a> ChangeEffects<'a> {
    pub(super) fn new(workspace: &'a Workspace, approved: bool, ask_ignored: bool) -> Self {
        Self {
            root: workspace.root(),
            ignored: (!ask_ignored && !approved)
                .then(|| Ignored::of(workspace))
                .flatten(),
            approved,
            protected: BTreeSet::new(),
            seen: HashMap::new(),
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

    /// Returns the permission that applying a change needs. It is safe if the command was approved or git ignores the path; then only
    /// rules and guards decide.
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
        let states = [&change.before, &change.after].into_iter().flatten();
        let seen = &mut self.seen;
        let ignored = self.ignored.as_ref().is_some_and(|ignored| {
            // Both the old and the new state must be ignored.
            let mut kinds = states.map(|state| matches!(state, EntryState::Folder { .. }));
            kinds.all(|folder| ignored.covers(path, folder, seen))
        });
        if self.approved || ignored {
            permission.risk = Risk::Safe;
        }
        if self.is_protected(&permission) {
            // Neither a profile nor an approval of the command allows this.
            permission.risk = Risk::Critical;
        }
        permission
    }

    /// Returns the permission that the change needs because a link gives its path this name, too.
    pub(super) fn by_name(&self, change: &ViewChange<'_>, name: &Path) -> Permission {
        let claim = PathClaim {
            path: name.to_string_lossy().into_owned(),
            target: Some(change.path.to_string_lossy().into_owned()),
        };
        let mut permission = match change.after {
            None => Permission::remove(claim),
            Some(_) => Permission::write(claim),
        };
        // Rules and guards decide about a name; the profile decides about the path itself.
        permission.risk = if self.is_protected(&permission) {
            Risk::Critical
        } else {
            Risk::Safe
        };
        permission
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

    /// Returns the target of a new link if rules may apply to it.
    fn target(&self, change: &ViewChange<'_>) -> Option<String> {
        match &change.after {
            Some(EntryState::Link { target }) => target_of_link(self.root, change.path, &target.0),
            _ => None,
        }
    }
}
