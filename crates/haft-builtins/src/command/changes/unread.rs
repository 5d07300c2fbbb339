//! What git in a command records of files that deny rules hide from it: they look empty, and a commit would empty them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use haft::change::collect::ViewChange;
use haft::policy::Denials;
use haft::workspace::Workspace;

use crate::command::index;

/// Those of these changes by which git would record a hidden file as empty that is not, each with why it must not be applied.
/// `upper` holds what the command changed.
pub(super) fn emptied(
    upper: &Path,
    changes: &[ViewChange],
    workspace: &Workspace,
    denials: &Denials,
) -> Vec<(PathBuf, String)> {
    let hidden = denials.deny_reading();
    let indexes = changes
        .iter()
        .filter(|change| hidden && change.after.is_some());
    let refused = indexes.filter_map(|change| {
        let folder = repository(&change.path)?;
        let why = by_index(&change.path, folder, upper, workspace, denials)?;
        Some((change.path.clone(), why))
    });
    refused.collect()
}

/// The folder of the repository whose index this is: its own, or that of a worktree or a submodule.
fn repository(path: &Path) -> Option<&Path> {
    let is_git = |name: &OsStr| name.eq_ignore_ascii_case(".git");
    let mut above = path.ancestors().skip(1);
    let git = above.find(|above| above.file_name().is_some_and(is_git))?;
    (path.file_name() == Some(OsStr::new("index"))).then(|| git.parent())?
}

fn by_index(
    path: &Path,
    folder: &Path,
    upper: &Path,
    workspace: &Workspace,
    denials: &Denials,
) -> Option<String> {
    let upper = Workspace::open(upper).ok();
    let empty = upper.and_then(|upper| index::empty_files(&upper, path));
    let Some(empty) = empty else {
        let why = "it cannot be told whether it records files as empty that commands cannot read";
        return Some(why.to_owned());
    };
    let before = index::empty_files(workspace, path).unwrap_or_default();
    let emptied = empty.into_iter().find(|name| {
        let file = folder.join(name);
        let meta = workspace.root().join(&file).symlink_metadata();
        let is_empty = before.contains(name) || meta.is_ok_and(|meta| meta.len() == 0);
        denials.denies_reading(&file.to_string_lossy()) && !is_empty
    })?;
    Some(format!(
        "it records {emptied} as empty, which commands cannot read: leave that file out of what git adds"
    ))
}
