//! Applies collected changes: checks all, records them as one set on disk, then makes them in order.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};

use crate::change::apply::{ContentSource, TargetList, TargetState, TargetStates};
use crate::change::changer::ChangesToRecord;
use crate::change::collect::git_states::GitValues;
use crate::change::collect::upper::ModeGuard;
use crate::change::collect::{ChangeList, CollectedChanges, Stamps, ViewChange};
use crate::change::net::ChangeKind;
use crate::change::state::{hash_open_file, state_at};
use crate::change::{Changer, EntryState};
use crate::workspace::{EntryKind, FileStamp, GitLocks, OutsideFile, Workspace, WorkspaceError};

/// Maximum number of files synced one by one: for more, the whole file system is synced.
const MAX_SYNCED: usize = 32;

/// Number of files of the workspace that are looked at before the first of them is compared.
const LOOKED_AT_ONCE: usize = 1_000;

const NOT_REPLACED: &str = "the folder above it is not replaced";
const HOLDS_OTHERS: &str = "it holds something that is not deleted";

const ONLY_DELETED: &str = "what was there is deleted, and nothing is in its place";
const ONLY_MADE: &str = "the folder is made, and its permissions are not set";

/// The changes that can be applied together.
pub(super) struct ApplicableChanges<'a> {
    /// Their numbers.
    pub(super) changes: Vec<usize>,
    /// Changes that are selected but must not be applied.
    pub(super) left_out: Vec<(&'a Path, &'static str)>,
}

impl<'a> ApplicableChanges<'a> {
    /// Selects from the changes of a command.
    pub(super) fn new(changes: &'a ChangeList, select: &dyn Fn(&Path) -> bool) -> Self {
        let selected = |change: &ViewChange<'_>| change.conflict.is_none() && select(change.path);
        let mut stay = HashSet::new();
        for change in changes.iter().filter(|change| change.after.is_none()) {
            if !selected(&change) {
                stay.extend(change.path.ancestors().skip(1));
            }
        }
        let (mut all, mut left_out) = (Vec::with_capacity(changes.len()), Vec::new());
        let mut not_replaced: Option<&Path> = None;
        for (at, change) in changes.iter().enumerate() {
            let path = change.path;
            let after_folder = matches!(change.after, Some(EntryState::Folder { .. }));
            let why = if not_replaced.is_some_and(|folder| path.starts_with(folder)) {
                Some(NOT_REPLACED)
            } else if stay.contains(path) && !after_folder {
                Some(HOLDS_OTHERS)
            } else {
                change.conflict
            };
            if why.is_none() && selected(&change) {
                all.push(at);
                continue;
            }
            if let Some(why) = why.filter(|_| select(path)) {
                left_out.push((path, why));
            }
            if change.action == ChangeKind::Replace && after_folder && why != Some(NOT_REPLACED) {
                not_replaced = Some(path);
            }
        }
        Self {
            changes: all,
            left_out,
        }
    }
}

/// What remains to be done about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanStep {
    Nothing,
    /// It is made.
    Make,
    /// It is made if the file in the workspace is still as it was collected.
    MakeOver,
}

/// Fails if no further change may be made.
pub(super) type GoOn<'a> = dyn Fn() -> Result<(), WorkspaceError> + 'a;

/// The work that remains.
struct ApplyPlan<'a> {
    collected: &'a CollectedChanges,
    go_on: &'a GoOn<'a>,
    /// For each change.
    steps: Vec<PlanStep>,
    /// Folders in which entries may be created.
    usable: HashSet<PathBuf>,
    /// The states of files that git has only stored anew since they were collected.
    renewed: HashMap<PathBuf, FileStamp>,
}

impl<'a> ApplyPlan<'a> {
    fn new(collected: &'a CollectedChanges, go_on: &'a GoOn<'a>) -> Self {
        Self {
            collected,
            go_on,
            steps: vec![PlanStep::Nothing; collected.changes.len()],
            usable: HashSet::new(),
            renewed: HashMap::new(),
        }
    }

    /// Plans a change: `now` is what is at its path.
    fn add(
        &mut self,
        workspace: &Workspace,
        at: usize,
        change: &ViewChange<'_>,
        now: Option<&Stat>,
    ) -> Result<(), WorkspaceError> {
        let checked = match now {
            None if is_never_missing(change) => Err(changed(change.path)),
            None => Ok(PlanStep::Make),
            Some(now) => change.check(now),
        };
        let step = match checked {
            Err(error) if !self.is_as_shown(workspace, change.path)? => return Err(error),
            Err(_) => match now.map(FileStamp::of) {
                Some(stamp) => {
                    self.renewed.insert(change.path.to_owned(), stamp);
                    PlanStep::MakeOver
                }
                None => PlanStep::Make,
            },
            Ok(step) => step,
        };
        if now.is_none() {
            self.check_parents(workspace, change.path)?;
        }
        // Fails now rather than when others are made.
        self.collected.target(change)?;
        if let Some(planned) = self.steps.get_mut(at) {
            *planned = step;
        }
        Ok(())
    }

    /// Whether a file of a repository still records what it did when it was collected. The locks of git are held.
    fn is_as_shown(&self, workspace: &Workspace, path: &Path) -> Result<bool, WorkspaceError> {
        let now = state_at(workspace, path, &mut |open| hash_open_file(open, path))?;
        let mut values = GitValues::new(workspace);
        let known = self
            .collected
            .git
            .unchanged(&mut values, path, now.as_ref());
        Ok(known.is_some())
    }

    /// Fails if a folder above a new path is now a link or a file, unless it will be replaced.
    fn check_parents(&mut self, workspace: &Workspace, path: &Path) -> Result<(), WorkspaceError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let mut above = path.ancestors().skip(1);
        if !self.usable.contains(parent) && above.all(|path| !self.has_target(path)) {
            workspace.real_place(path)?;
            self.usable.insert(parent.to_owned());
        }
        Ok(())
    }

    fn step(&self, path: &Path) -> PlanStep {
        let at = self.collected.changes.position(path);
        let step = at.and_then(|at| self.steps.get(at));
        step.copied().unwrap_or(PlanStep::Nothing)
    }

    fn has_target(&self, path: &Path) -> bool {
        self.step(path) != PlanStep::Nothing
    }

    /// Returns the changes that are made.
    fn changes(&self) -> impl DoubleEndedIterator<Item = ViewChange<'a>> {
        let each = self.collected.changes.iter().zip(&self.steps);
        let made = each.filter(|(_, step)| **step != PlanStep::Nothing);
        made.map(|(change, _)| change)
    }

    /// Returns the files to import.
    fn outside(&self) -> impl Iterator<Item = (OutsideFile, Option<u32>)> {
        self.changes()
            .filter_map(|change| match self.collected.target(&change).ok()? {
                TargetState::File {
                    content: ContentSource::Outside(file),
                    mode,
                } => Some((file, mode)),
                _ => None,
            })
    }
}

impl TargetList for ApplyPlan<'_> {
    fn paths(&self) -> Box<dyn Iterator<Item = &Path> + '_> {
        Box::new(self.changes().map(|change| change.path))
    }

    fn each(&self) -> Box<dyn Iterator<Item = (&Path, Cow<'_, TargetState>)> + '_> {
        let target = |change: ViewChange<'_>| self.collected.target(&change).ok();
        let each = self.changes();
        Box::new(each.filter_map(move |change| {
            let path = change.path;
            Some((path, Cow::Owned(target(change)?)))
        }))
    }

    fn contains(&self, path: &Path) -> bool {
        self.has_target(path)
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        let change = self.collected.changes.position(path);
        let change = change.and_then(|at| self.collected.changes.get(at));
        let is_over = self.step(path) == PlanStep::MakeOver;
        let change = change.filter(|_| is_over)?;
        self.renewed.get(path).copied().or(change.stamps.lower)
    }

    fn check_time(&self) -> Result<(), WorkspaceError> {
        (self.go_on)()
    }
}

impl ChangesToRecord for ApplyPlan<'_> {
    /// In the order of execution: deletions first, the content of a folder before the folder.
    fn each(&self) -> Box<dyn Iterator<Item = (&Path, Option<EntryState>)> + '_> {
        let deleted = self.changes().rev().filter(|change| change.after.is_none());
        let others = self.changes().filter(|change| change.after.is_some());
        Box::new(
            deleted
                .chain(others)
                .map(|change| (change.path, change.after)),
        )
    }

    fn contains(&self, path: &Path) -> bool {
        self.has_target(path)
    }
}

/// Applies the selected changes.
pub(super) fn apply(
    collected: &CollectedChanges,
    workspace: &Workspace,
    changer: &Changer,
    select: &dyn Fn(&Path) -> bool,
    go_on: &GoOn<'_>,
) -> Result<(), WorkspaceError> {
    let selected = ApplicableChanges::new(&collected.changes, select).changes;
    // Before anything is compared: from then on no git changes what is compared.
    let _locks = lock_repositories(collected, workspace, &selected)?;
    let mut plan = ApplyPlan::new(collected, go_on);
    for some in selected.chunks(LOOKED_AT_ONCE) {
        go_on()?;
        for (at, change, now) in look_at(collected, workspace, some) {
            if !change.is_applied(workspace, now.as_ref())? {
                plan.add(workspace, at, &change, now.as_ref())?;
            }
        }
    }
    if plan.changes().next().is_none() {
        return Ok(());
    }
    let sync = || collected.sync(&plan);
    let _unlocked = collected.unlock(&plan)?;
    changer.record_set(&plan, sync, |changer| {
        collected.touched.store(true, Ordering::Release);
        let workspace = &workspace.with_git();
        let targets = TargetStates {
            workspace,
            changer,
            all: &plan,
        };
        targets.apply_in_order()
    })
}

/// Takes git's own locks of what these changes replace in repositories.
fn lock_repositories(
    collected: &CollectedChanges,
    workspace: &Workspace,
    numbers: &[usize],
) -> Result<GitLocks, WorkspaceError> {
    let changes = &collected.changes;
    let each = numbers.iter().filter_map(|at| changes.get(*at));
    let is_folder = |state: &Option<EntryState>| matches!(state, Some(EntryState::Folder { .. }));
    let files = each.filter(|change| {
        let is_one = |state: &Option<EntryState>| state.is_some() && !is_folder(state);
        is_one(&change.before) || is_one(&change.after)
    });
    let files: Vec<&Path> = files.map(|change| change.path).collect();
    let goes = |folder: &Path| {
        let change = changes.position(folder).and_then(|at| changes.get(at));
        change.is_some_and(|change| is_folder(&change.before) && !is_folder(&change.after))
    };
    let is_changed = |path: &Path| changes.position(path).is_some();
    GitLocks::take(workspace, &files, &goes, &is_changed)
}

/// Describes how far a partly made change got, by what is at its path now.
pub(super) fn begun(change: &ViewChange<'_>, now: Option<EntryKind>) -> Option<&'static str> {
    let folder = |state: &Option<EntryState>| matches!(state, Some(EntryState::Folder { .. }));
    match now {
        None if change.before.is_some() && change.after.is_some() => Some(ONLY_DELETED),
        Some(EntryKind::Directory) if folder(&change.after) && !folder(&change.before) => {
            Some(ONLY_MADE)
        }
        _ => None,
    }
}

/// Returns the selected changes that are in the workspace; one that cannot be compared counts as not applied.
pub(super) fn applied<'a>(
    collected: &'a CollectedChanges,
    workspace: &Workspace,
    select: &dyn Fn(&Path) -> bool,
) -> Vec<&'a Path> {
    let each = collected.changes.paths().enumerate();
    let selected = each.filter(|(_, path)| select(path)).map(|(at, _)| at);
    let selected: Vec<usize> = selected.collect();
    let mut made = Vec::new();
    for some in selected.chunks(LOOKED_AT_ONCE) {
        for (_, change, now) in look_at(collected, workspace, some) {
            if change.is_applied(workspace, now.as_ref()).unwrap_or(false) {
                made.push(change.path);
            }
        }
    }
    made
}

/// Returns the changes with these numbers, each with what is at its path in the workspace. All are looked at before the first of them
/// is compared.
fn look_at<'a>(
    collected: &'a CollectedChanges,
    workspace: &Workspace,
    numbers: &[usize],
) -> Vec<(usize, ViewChange<'a>, Option<Stat>)> {
    let mut stat = workspace.stat_near();
    let look = |at: &usize| {
        let change = collected.changes.get(*at)?;
        let now = stat(change.path);
        Some((*at, change, now))
    };
    numbers.iter().filter_map(look).collect()
}

impl CollectedChanges {
    fn target(&self, change: &ViewChange<'_>) -> Result<TargetState, WorkspaceError> {
        let path = change.path;
        Ok(match &change.after {
            None => TargetState::Nothing,
            Some(EntryState::Folder { mode }) => TargetState::Folder(*mode),
            Some(EntryState::Link { target }) => TargetState::Link(target.0.clone()),
            Some(EntryState::File { sha256, mode, .. }) => {
                let Stamps { lower, upper } = &change.stamps;
                // Another name of the same file must keep its mode. With another time the file is put in place as the command left it.
                let alone = lower
                    .as_ref()
                    .zip(upper.as_ref())
                    .is_some_and(|(lower, upper)| {
                        lower.links() == 1 && lower.modified == upper.modified
                    });
                let content = match upper {
                    _ if change.action == ChangeKind::Chmod && alone => ContentSource::Unchanged,
                    Some(stamp) => ContentSource::Outside(OutsideFile {
                        root: Arc::clone(&self.upper.root),
                        path: path.to_owned(),
                        stamp: *stamp,
                        sha256: *sha256,
                    }),
                    None => return Err(changed(path)),
                };
                let mode = *mode;
                TargetState::File { content, mode }
            }
            Some(EntryState::Other) => return Err(changed(path)),
        })
    }

    /// Lets the owner read the files to import, if the command took that away. The import then sets the files' own
    /// modes.
    fn unlock(&self, plan: &ApplyPlan<'_>) -> Result<ModeGuard<'_>, WorkspaceError> {
        let mut unlocked = ModeGuard::new(&self.upper);
        let mut seen = HashSet::new();
        for (OutsideFile { path, .. }, mode) in plan.outside() {
            let path = &path;
            let to_error = |e| WorkspaceError::from_errno("read", path, e);
            if seen.insert(path.parent().map(Path::to_owned)) {
                unlocked.unlock_parents(path).map_err(to_error)?;
            }
            if let Some(mode) = mode.filter(|mode| mode & 0o400 == 0) {
                self.upper.set_mode(path, mode | 0o400).map_err(to_error)?;
            }
        }
        Ok(unlocked)
    }

    /// Syncs the files to import to disk: otherwise a crash could leave empty ones in their places.
    fn sync(&self, plan: &ApplyPlan<'_>) -> Result<(), WorkspaceError> {
        let written = if plan.outside().nth(MAX_SYNCED).is_some() {
            rustix::fs::syncfs(&self.upper.root)
        } else {
            plan.outside().try_for_each(|(file, _)| file.sync())
        };
        written.map_err(|e| WorkspaceError::from_errno("write", Path::new("the view's files"), e))
    }
}

impl ViewChange<'_> {
    /// Whether the workspace is already in the state that the command left.
    fn is_applied(
        &self,
        workspace: &Workspace,
        now: Option<&Stat>,
    ) -> Result<bool, WorkspaceError> {
        let path = self.path;
        let (Some(now), Some(after)) = (now, &self.after) else {
            return Ok(now.is_none() && self.after.is_none());
        };
        let Stamps { lower, upper } = &self.stamps;
        let stamp = FileStamp::of(now);
        match (kind(now), after) {
            (EntryKind::Directory, EntryState::Folder { mode }) => {
                Ok(mode == &Some(now.st_mode & 0o777))
            }
            (EntryKind::File, EntryState::File { mode, .. }) => {
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
            (EntryKind::Link, EntryState::Link { .. }) => {
                let now = state_at(workspace, path, &mut |_| Ok(None))?;
                Ok(now.as_ref() == Some(after))
            }
            _ => Ok(false),
        }
    }

    /// Fails if the workspace differs from the collected state. Otherwise returns what remains to be done.
    fn check(&self, now: &Stat) -> Result<PlanStep, WorkspaceError> {
        let folder = |state: &Option<EntryState>| matches!(state, Some(EntryState::Folder { .. }));
        let lower = self.stamps.lower.as_ref();
        match (kind(now), lower) {
            (EntryKind::Directory, _) if folder(&self.before) || folder(&self.after) => {
                Ok(PlanStep::Make)
            }
            (EntryKind::File, Some(lower)) if lower.is_still(&FileStamp::of(now)) => {
                Ok(PlanStep::MakeOver)
            }
            (_, Some(lower)) if lower.is_still(&FileStamp::of(now)) => Ok(PlanStep::Make),
            _ => Err(changed(self.path)),
        }
    }
}

/// Whether something is at the path at all times while the change is applied, so only another program can have deleted it.
fn is_never_missing(change: &ViewChange<'_>) -> bool {
    match change.action {
        // A ref that is packed by now has no file.
        ChangeKind::Modify => {
            matches!(change.after, Some(EntryState::File { .. })) && change.stamps.lower.is_some()
        }
        ChangeKind::Chmod => true,
        _ => false,
    }
}

fn changed(path: &Path) -> WorkspaceError {
    WorkspaceError::Changed(path.to_string_lossy().into_owned())
}

fn kind(stat: &Stat) -> EntryKind {
    EntryKind::of(FileType::from_raw_mode(stat.st_mode))
}
