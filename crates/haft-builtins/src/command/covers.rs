//! Finds what to hide or protect from a command in the workspace: haft's own files, denied paths, secrets and protected names.
//!
//! A rule is text, and a program may open any file, so haft searches for the denied paths before the program starts.

mod crowd;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use haft::context::CallContext;
use haft::error::ToolError;
use haft::policy::{
    Denials, LinkedNames, instruction_names, protected_from_commands, protected_names,
};
use haft::spec::Risk;
use haft::workspace::{NamedByGit, NamedPath, Workspace};
use haft_sandbox::PathGuard;
use tokio::task::JoinError;

use crate::command::linked_names;
use crate::command::walk::{GuardSets, GuardWalk, WalkStop};

/// Maximum number of workspace entries to search. With more, the command is refused, because unfound paths would be uncovered.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum number of entries to search without moving to a thread for blocking work.
const MAX_INLINE_ENTRIES: usize = 2_000;
/// Maximum number of denied files and folders that are covered individually, each by a mount.
const MAX_DENIED: usize = 5_000;

/// What a command in the workspace may not change or see.
#[derive(Debug, Default)]
pub(crate) struct Covers {
    pub(crate) guards: Vec<PathGuard>,
    /// Links that names lead over which must not be changed: they stay, and what they lead to may be changed.
    pub(crate) pinned: Vec<PathBuf>,
}

/// Returns the guards of a command in this workspace. haft's own files and paths that deny rules make unreadable are hidden. In the
/// live workspace (not on a view) protected names, settings of repositories and paths that deny rules make unchangeable are
/// read-only; on a view, changes to them are judged afterwards.
///
/// # Errors
/// If the workspace is too large to find everything that rules deny.
pub(crate) async fn of(
    context: &CallContext,
    workspace: &Workspace,
    on_view: bool,
) -> Result<Covers, ToolError> {
    let mut judged = context.judgement().permissions().iter();
    let only_reads = judged.all(|wanted| wanted.risk == Risk::Safe);
    let scope = CoverScope {
        on_view,
        only_reads,
    };
    find_for(scope, context.denials(), workspace.clone()).await
}

/// How a command works.
#[derive(Debug, Clone, Copy)]
struct CoverScope {
    on_view: bool,
    /// It sees the workspace read-only: names that it could change by need not all be known.
    only_reads: bool,
}

#[cfg(test)]
async fn find(denials: Denials, workspace: Workspace, on_view: bool) -> Result<Covers, ToolError> {
    let scope = CoverScope {
        on_view,
        only_reads: false,
    };
    find_for(scope, denials, workspace).await
}

async fn find_for(
    scope: CoverScope,
    denials: Denials,
    workspace: Workspace,
) -> Result<Covers, ToolError> {
    let on_view = scope.on_view;
    let mut guards = own(&workspace);
    let root = workspace.root().to_owned();
    let instructions = instruction_guards(&root);
    if on_view && !denials.deny_reading() {
        let pinned = Vec::new();
        return Ok(Covers { guards, pinned });
    }
    let search = move |most| look(&workspace, &denials, scope, most);
    let found = match search(MAX_INLINE_ENTRIES) {
        Err(WalkStop::TooMany) => {
            let whole = tokio::task::spawn_blocking(move || search(MAX_ENTRIES)).await;
            whole.map_err(shutting_down)?
        }
        found => found,
    };
    let mut found = found.map_err(stopped)?;
    if found.denied.len() > MAX_DENIED {
        let (root, denied) = (root, std::mem::take(&mut found.denied));
        let folded = tokio::task::spawn_blocking(move || crowd::merge_guards(&root, denied)).await;
        found.denied = folded.map_err(shutting_down)?;
        if found.denied.len() > MAX_DENIED {
            return Err(too_many_denied(&found.denied));
        }
        crowd::remove_nested_guards(&found.denied, &mut found.git);
    }
    let linked = found.linked;
    guards.extend(found.denied);
    if !on_view {
        guards.extend(protected_guards());
        guards.extend(instructions);
        guards.extend(found.git);
        let linked = linked
            .into_iter()
            .filter(|linked| !is_guarded(linked, &guards));
        guards.extend(linked.map(|linked| linked.guard).collect::<Vec<_>>());
    }
    let pinned = found.pinned;
    Ok(Covers { guards, pinned })
}

/// Searches the workspace; in the live workspace also for what links reach by guarded names.
fn look(
    workspace: &Workspace,
    denials: &Denials,
    scope: CoverScope,
    most: usize,
) -> Result<WorkspaceGuards, WalkStop> {
    let on_view = scope.on_view;
    let GuardSets { denied, git } = GuardWalk::new(workspace, denials, on_view, most).run()?;
    let mut found = WorkspaceGuards {
        denied,
        git,
        linked: Vec::new(),
        pinned: Vec::new(),
    };
    if on_view {
        return Ok(found);
    }
    let by_git = linked_names::named_by_git(workspace);
    let names = linked_names::in_workspace(workspace, denials, &by_git);
    if let Some(why) = names.unknown().or(by_git.unread())
        && !scope.only_reads
    {
        return Err(WalkStop::UnknownNames(why.to_owned()));
    }
    found.linked = linked_guards(workspace, denials, &names);
    found.git.extend(git_guards(workspace.root(), &by_git));
    let pinned = guarded(names.over(), denials);
    found.pinned = pinned.map(|(link, _)| link.clone()).collect();
    Ok(found)
}

/// Returns guards for what the settings of repositories name. No placeholder holds the place of an absent program.
fn git_guards(root: &Path, by_git: &NamedByGit) -> Vec<PathGuard> {
    let guard = |(path, named): (&PathBuf, &NamedPath)| {
        let guard = if named.is_folder || root.join(path).is_dir() {
            PathGuard::protect_dir(path)
        } else {
            PathGuard::protect_file(path)
        };
        if named.may_be_empty {
            guard
        } else {
            guard.without_placeholder()
        }
    };
    by_git.paths().map(guard).collect()
}

/// The guards found in a workspace.
struct WorkspaceGuards {
    denied: Vec<PathGuard>,
    git: Vec<PathGuard>,
    linked: Vec<LinkGuard>,
    pinned: Vec<PathBuf>,
}

/// A guard of a path because of one of its further names.
struct LinkGuard {
    guard: PathGuard,
    name: PathBuf,
}

/// Returns true if the link has a guard itself: then the jail also guards what it leads to.
fn is_guarded(linked: &LinkGuard, guards: &[PathGuard]) -> bool {
    guards.iter().any(|guard| {
        let same_name = || linked.name.file_name() == Some(guard.path.as_os_str());
        guard.path == linked.name || (guard.any_depth && same_name())
    })
}

/// Returns guards for what links lead to whose names must not be changed.
fn linked_guards(workspace: &Workspace, denials: &Denials, names: &LinkedNames) -> Vec<LinkGuard> {
    // The root itself cannot be covered; the search for denied paths covers what lies in it.
    let places = names.ends().filter(|(place, _)| **place != Path::new(""));
    let linked = guarded(places, denials).map(|(place, name)| LinkGuard {
        guard: if workspace.root().join(place).is_dir() {
            PathGuard::protect_dir(place)
        } else {
            PathGuard::protect_file(place)
        },
        name: name.clone(),
    });
    linked.collect()
}

/// Returns the places with one of their names that must not be changed.
fn guarded<'a>(
    places: impl Iterator<Item = (&'a PathBuf, &'a Vec<PathBuf>)>,
    denials: &Denials,
) -> impl Iterator<Item = (&'a PathBuf, &'a PathBuf)> {
    let is_guarded = |name: &&PathBuf| {
        let name = name.to_string_lossy();
        denials.denies_changing(&name) || protected_from_commands(&name).is_some()
    };
    places.filter_map(move |(place, names)| Some((place, names.iter().find(is_guarded)?)))
}

fn shutting_down(error: JoinError) -> ToolError {
    ToolError::unavailable("the host is shutting down").with_source(error)
}

/// Builds the error for more paths than can be covered, with the setting that helps.
fn too_many_denied(denied: &[PathGuard]) -> ToolError {
    let all = format!(
        "deny rules and secret names match {} files and folders in the workspace, but haft can hide at most {MAX_DENIED} from a command",
        denied.len()
    );
    let Some((folder, count)) = crowd::most_crowded(denied) else {
        return ToolError::unavailable(all).for_operator(
            "move them into a folder, and deny it in policy.deny, as in Read(/secrets/**); policy.secret_names = [\"!NAME\"] removes a secret name",
        );
    };
    let folder = folder.display();
    ToolError::unavailable(format!("{all}: {count} of them lie in {folder}/")).for_operator(format!(
        "deny the folder as a whole with Read(/{folder}/**) in policy.deny; or, if it holds no secrets, exclude it with policy.secret_names = [\"!/{folder}/\"]"
    ))
}

fn stopped(stop: WalkStop) -> ToolError {
    match stop {
        WalkStop::TooMany => {
            let message = format!(
                "the workspace has more than {MAX_ENTRIES} entries: the files that no command may read or change cannot be found in it"
            );
            ToolError::unavailable(message).for_operator(
                "start haft in a smaller workspace; or exclude large folders with policy.secret_names = [\"!FOLDER/\"], and anchor deny rules at the root, as in Read(/config/.env)",
            )
        }
        WalkStop::UnknownNames(why) => {
            let message = format!(
                "links may give files names that rules protect, and not all are known: {why}"
            );
            ToolError::unavailable(message)
                .for_operator("run the command on a copy, with sandbox.changes = \"copy\"")
        }
        WalkStop::Unlistable(error) => {
            let message = "the workspace cannot be listed: the files that no command may read or change cannot be found in it";
            ToolError::unavailable(message)
                .for_operator("give haft's user the right to list the folder")
                .with_source(error)
        }
    }
}

/// Returns the guards for haft's own files in the workspace.
fn own(workspace: &Workspace) -> Vec<PathGuard> {
    let hide = |path: &PathBuf| {
        if workspace.root().join(path).is_file() {
            PathGuard::hide_file(path)
        } else {
            PathGuard::hide_dir(path)
        }
    };
    workspace.hidden_inside().iter().map(hide).collect()
}

/// Returns the guards for instructions to agents at the top of the workspace. Those that do not exist are not held: the user's own agent may
/// create them while a command runs.
fn instruction_guards(root: &Path) -> Vec<PathGuard> {
    let there = instruction_names().filter_map(|name| {
        let meta = root.join(name.path).symlink_metadata().ok()?;
        let guard = if meta.is_dir() {
            PathGuard::protect_dir(name.path)
        } else {
            PathGuard::protect_file(name.path)
        };
        Some(guard.without_placeholder())
    });
    there.collect()
}

/// Returns the guards for protected names except `.git`: in a repository only the settings are protected.
pub(super) fn protected_guards() -> impl Iterator<Item = PathGuard> {
    let names = protected_names().filter(|name| name.path != ".git");
    names.map(|name| {
        let guard = if name.is_folder {
            PathGuard::protect_dir(name.path)
        } else {
            PathGuard::protect_file(name.path)
        };
        if name.path.contains('/') {
            guard
        } else {
            guard.at_any_depth()
        }
    })
}
