//! Applies collected changes: checks all, records them as one set on disk, then makes them in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};

use crate::change::apply::{Content, Target, Targets};
use crate::change::collect::upper::Unlocked;
use crate::change::collect::{Collected, Stamps, ViewChange};
use crate::change::net::Action;
use crate::change::state::{hash_open_file, state_at};
use crate::change::{Changer, State};
use crate::workspace::{FileStamp, Kind, OutsideFile, Workspace, WorkspaceError};

/// Maximum number of files synced one by one: for more, the whole file system is synced.
const MAX_SYNCED: usize = 32;

/// Number of files of the workspace that are looked at before the first of them is compared.
const LOOKED_AT_ONCE: usize = 1_000;

const NOT_REPLACED: &str = "the folder above it is not replaced";
const HOLDS_OTHERS: &str = "it holds something that is not deleted";

const ONLY_DELETED: &str = "what was there is deleted, and nothing is in its place";
const ONLY_MADE: &str = "the folder is made, and its permissions are not set";

/// The changes that can be applied together.
pub(super) struct Selection<'a> {
    pub(super) changes: Vec<&'a ViewChange>,
    /// Changes that are selected but must not be applied.
    pub(super) left_out: Vec<(&'a Path, &'static str)>,
}

impl<'a> Selection<'a> {
    /// Selects from changes sorted by path.
    pub(super) fn new(changes: &'a [ViewChange], select: &dyn Fn(&Path) -> bool) -> Self {
        let selected = |change: &ViewChange| change.conflict.is_none() && select(&change.path);
        let mut stay = HashSet::new();
        for change in changes.iter().filter(|change| change.after.is_none()) {
            if !selected(change) {
                stay.extend(change.path.ancestors().skip(1));
            }
        }
        let (mut all, mut left_out) = (Vec::with_capacity(changes.len()), Vec::new());
        let mut not_replaced: Option<&Path> = None;
        for change in changes {
            let path = &*change.path;
            let after_folder = matches!(change.after, Some(State::Folder { .. }));
            let why = if not_replaced.is_some_and(|folder| path.starts_with(folder)) {
                Some(NOT_REPLACED)
            } else if stay.contains(path) && !after_folder {
                Some(HOLDS_OTHERS)
            } else {
                change.conflict
            };
            if why.is_none() && selected(change) {
                all.push(change);
                continue;
            }
            if let Some(why) = why.filter(|_| select(path)) {
                left_out.push((path, why));
            }
            if change.action == Action::Replace && after_folder && why != Some(NOT_REPLACED) {
                not_replaced = Some(path);
            }
        }
        Self {
            changes: all,
            left_out,
        }
    }
}

/// The work that remains.
#[derive(Default)]
struct Plan {
    targets: BTreeMap<PathBuf, Target>,
    stamps: HashMap<PathBuf, FileStamp>,
    /// Folders in which entries may be created.
    usable: HashSet<PathBuf>,
}

impl Plan {
    /// Returns the files to import.
    fn outside(&self) -> impl Iterator<Item = &OutsideFile> {
        self.targets.values().filter_map(|target| match target {
            Target::File {
                content: Content::Outside(file),
                ..
            } => Some(file),
            _ => None,
        })
    }

    /// Fails if a folder above a new path is now a link or a file, unless it will be replaced.
    fn check_parents(&mut self, workspace: &Workspace, path: &Path) -> Result<(), WorkspaceError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut above = path.ancestors().skip(1);
        if !self.usable.contains(parent) && above.all(|path| !self.targets.contains_key(path)) {
            workspace.real_place(path)?;
            self.usable.insert(parent.to_owned());
        }
        Ok(())
    }
}

/// Applies the selected changes.
pub(super) fn apply(
    collected: &Collected,
    workspace: &Workspace,
    changer: &Changer,
    select: &dyn Fn(&Path) -> bool,
) -> Result<(), WorkspaceError> {
    let selected = Selection::new(&collected.changes, select).changes;
    let mut plan = Plan::default();
    let mut changes = Vec::with_capacity(selected.len());
    for some in selected.chunks(LOOKED_AT_ONCE) {
        let now = stats(workspace, some);
        for change in some {
            let now = now.get(&*change.path);
            if change.is_applied(workspace, now)? {
                continue;
            }
            match now {
                None if is_never_missing(change) => return Err(changed(&change.path)),
                None => plan.check_parents(workspace, &change.path)?,
                Some(now) => {
                    let stamp = change.check(now)?;
                    let path = change.path.clone();
                    plan.stamps.extend(stamp.map(|stamp| (path, stamp)));
                }
            }
            plan.targets
                .insert(change.path.clone(), collected.target(change)?);
            changes.push((&*change.path, change.after.clone()));
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    // In the order of execution: deletions first, the content of a folder before the folder.
    let (deleted, others): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|(_, after)| after.is_none());
    let changes: Vec<_> = deleted.into_iter().rev().chain(others).collect();
    let sync = || collected.sync(&plan);
    let _unlocked = collected.unlock(&plan)?;
    changer.record_set(&changes, sync, |changer| {
        collected.touched.store(true, Ordering::Release);
        let workspace = &workspace.with_git();
        let targets = Targets {
            workspace,
            changer,
            all: &plan.targets,
            stamps: &plan.stamps,
        };
        targets.apply_in_order()
    })
}

/// Describes how far a partly made change got, by what is at its path now.
pub(super) fn begun(change: &ViewChange, now: Option<Kind>) -> Option<&'static str> {
    let folder = |state: &Option<State>| matches!(state, Some(State::Folder { .. }));
    match now {
        None if change.before.is_some() && change.after.is_some() => Some(ONLY_DELETED),
        Some(Kind::Directory) if folder(&change.after) && !folder(&change.before) => {
            Some(ONLY_MADE)
        }
        _ => None,
    }
}

/// Returns the selected changes that are in the workspace; one that cannot be compared counts as not applied.
pub(super) fn applied<'a>(
    collected: &'a Collected,
    workspace: &Workspace,
    select: &dyn Fn(&Path) -> bool,
) -> Vec<&'a Path> {
    let selected = collected
        .changes
        .iter()
        .filter(|change| select(&change.path));
    let selected: Vec<&ViewChange> = selected.collect();
    let mut made = Vec::new();
    for some in selected.chunks(LOOKED_AT_ONCE) {
        let now = stats(workspace, some);
        let applied = some.iter().filter(|change| {
            let now = now.get(&*change.path);
            change.is_applied(workspace, now).unwrap_or(false)
        });
        made.extend(applied.map(|change| &*change.path));
    }
    made
}

/// Looks at the files of these changes in the workspace.
fn stats<'a>(workspace: &Workspace, changes: &[&'a ViewChange]) -> HashMap<&'a Path, Stat> {
    let mut now = HashMap::with_capacity(changes.len());
    let paths = changes.iter().map(|change| &change.path);
    workspace.stat_each(paths, |path, stat| {
        now.insert(path, stat);
    });
    now
}

impl Collected {
    fn target(&self, change: &ViewChange) -> Result<Target, WorkspaceError> {
        let path = &change.path;
        Ok(match &change.after {
            None => Target::Nothing,
            Some(State::Folder { mode }) => Target::Folder(*mode),
            Some(State::Link { target }) => Target::Link(target.0.clone()),
            Some(State::File { sha256, mode, .. }) => {
                let Stamps { lower, upper } = &change.stamps;
                // Another name of the same file must keep its mode.
                let alone = lower.as_ref().is_some_and(|lower| lower.links() == 1);
                let content = match upper {
                    _ if change.action == Action::Chmod && alone => Content::Unchanged,
                    Some(stamp) => Content::Outside(OutsideFile {
                        root: Arc::clone(&self.upper.root),
                        path: path.clone(),
                        stamp: **stamp,
                        sha256: *sha256,
                    }),
                    None => return Err(changed(path)),
                };
                let mode = *mode;
                Target::File { content, mode }
            }
            Some(State::Other) => return Err(changed(path)),
        })
    }

    /// Lets the owner read the files to import, if the command took that away. The import then sets the files' own
    /// modes.
    fn unlock(&self, plan: &Plan) -> Result<Unlocked<'_>, WorkspaceError> {
        let mut unlocked = Unlocked::new(&self.upper);
        let mut seen = HashSet::new();
        for (path, target) in &plan.targets {
            let Target::File {
                content: Content::Outside(_),
                mode,
            } = target
            else {
                continue;
            };
            let to_error = |e| WorkspaceError::from_errno("read", path, e);
            if seen.insert(path.parent()) {
                unlocked.unlock_parents(path).map_err(to_error)?;
            }
            if let Some(mode) = mode.filter(|mode| mode & 0o400 == 0) {
                self.upper.set_mode(path, mode | 0o400).map_err(to_error)?;
            }
        }
        Ok(unlocked)
    }

    /// Syncs the files to import to disk: otherwise a crash could leave empty ones in their places.
    fn sync(&self, plan: &Plan) -> Result<(), WorkspaceError> {
        let outside: Vec<&OutsideFile> = plan.outside().collect();
        let written = if outside.len() > MAX_SYNCED {
            rustix::fs::syncfs(&self.upper.root)
        } else {
            outside.iter().try_for_each(|file| file.sync())
        };
        written.map_err(|e| WorkspaceError::from_errno("write", Path::new("the view's files"), e))
    }
}

impl ViewChange {
    /// Whether the workspace is already in the state that the command left.
    fn is_applied(
        &self,
        workspace: &Workspace,
        now: Option<&Stat>,
    ) -> Result<bool, WorkspaceError> {
        let path = &self.path;
        let (Some(now), Some(after)) = (now, &self.after) else {
            return Ok(now.is_none() && self.after.is_none());
        };
        let Stamps { lower, upper } = &self.stamps;
        let stamp = FileStamp::of(now);
        match (kind(now), after) {
            (Kind::Directory, State::Folder { mode }) => Ok(mode == &Some(now.st_mode & 0o777)),
            (Kind::File, State::File { mode, .. }) => {
                let same = lower.as_ref().is_some_and(|lower| lower.is_still(&stamp));
                if same || *mode != Some(now.st_mode & 0o7777) {
                    return Ok(false);
                }
                let moved = upper
                    .as_ref()
                    .is_some_and(|upper| upper.is_same_content(&stamp));
                if moved {
                    return Ok(true);
                }
                let now = state_at(workspace, path, &mut |open| hash_open_file(open, path))?;
                Ok(now.is_some_and(|now| now.is_same(after)))
            }
            (Kind::Link, State::Link { .. }) => {
                let now = state_at(workspace, path, &mut |_| Ok(None))?;
                Ok(now.as_ref() == Some(after))
            }
            _ => Ok(false),
        }
    }

    /// Fails if the workspace differs from the collected state. Returns the state of a file.
    fn check(&self, now: &Stat) -> Result<Option<FileStamp>, WorkspaceError> {
        let folder = |state: &Option<State>| matches!(state, Some(State::Folder { .. }));
        let lower = self.stamps.lower.as_ref();
        match (kind(now), lower) {
            (Kind::Directory, _) if folder(&self.before) || folder(&self.after) => Ok(None),
            (kind, Some(lower)) if lower.is_still(&FileStamp::of(now)) => {
                Ok((kind == Kind::File).then_some(**lower))
            }
            _ => Err(changed(&self.path)),
        }
    }
}

/// Whether something is at the path at all times while the change is applied, so only another program can have deleted it.
fn is_never_missing(change: &ViewChange) -> bool {
    match change.action {
        Action::Modify => matches!(change.after, Some(State::File { .. })),
        Action::Chmod => true,
        _ => false,
    }
}

fn changed(path: &Path) -> WorkspaceError {
    WorkspaceError::Changed(path.to_string_lossy().into_owned())
}

fn kind(stat: &Stat) -> Kind {
    Kind::of(FileType::from_raw_mode(stat.st_mode))
}
