//! The further names of a workspace's files as commands need them: in the workspace itself, and after what one changed on a copy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::change::EntryState;
use haft::change::collect::ChangeList;
use haft::policy::{Denials, LinkedNames};
use haft::workspace::{GitFolders, Links, NamedByGit, Workspace};

use crate::command::hard_links::HardLinks;

/// Finds the further names in a workspace.
pub(super) fn in_workspace(
    workspace: &Workspace,
    denials: &Denials,
    by_git: &NamedByGit,
) -> LinkedNames {
    of(&workspace.links(), workspace, denials, by_git)
}

/// Returns what the settings of the workspace's repositories name.
pub(super) fn named_by_git(workspace: &Workspace) -> NamedByGit {
    let none: [&Path; 0] = [];
    GitFolders::find(workspace, none)
        .named_by_settings()
        .clone()
}

fn of(links: &Links, workspace: &Workspace, denials: &Denials, by_git: &NamedByGit) -> LinkedNames {
    let mut named: Vec<PathBuf> = by_git.paths().map(|(path, _)| path.clone()).collect();
    named.extend_from_slice(workspace.hidden_inside());
    LinkedNames::find(links, denials, &named)
}

/// The further names of changed files: by links of the workspace, by those that the changes leave, and by hard links.
#[derive(Debug)]
pub(super) struct NamesOfChanges {
    linked: LinkedNames,
    hard: HardLinks,
    by_git: NamedByGit,
}

impl NamesOfChanges {
    /// Reads the links of the workspace with those that the changes leave, and looks for other hard links of the
    /// changed files.
    pub(super) fn find(workspace: &Workspace, changes: &ChangeList, denials: &Denials) -> Self {
        let mut links = workspace.links();
        for change in changes.iter() {
            if let Some(EntryState::Link { target }) = &change.after {
                let before = change.before.as_ref();
                let replaces =
                    before.is_some_and(|state| !matches!(state, EntryState::Link { .. }));
                let links = Arc::make_mut(&mut links);
                links.add_change(change.path, &target.0, replaces);
            }
        }
        let by_git = named_by_git(workspace);
        Self {
            linked: of(&links, workspace, denials, &by_git),
            by_git,
            hard: HardLinks::of_changes(workspace.root(), changes),
        }
    }

    /// Returns why there may be more names, as a clause; `None` if all are known.
    pub(super) fn unknown(&self) -> Option<&str> {
        let cut = "the workspace has too many entries to find all names of a file by hard links";
        let linked = self.linked.unknown();
        linked
            .or_else(|| self.hard.is_cut.then_some(cut))
            .or_else(|| self.by_git.unread())
    }

    /// Returns the further names of a changed path.
    pub(super) fn names_of(&self, path: &Path) -> BTreeSet<PathBuf> {
        let mut names = self.linked.names_of(path);
        for other in self.hard.names_of(path) {
            names.insert(other.clone());
            names.extend(self.linked.names_of(other));
        }
        names
    }
}
