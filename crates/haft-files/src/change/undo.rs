//! Undo: restores only the paths of a change set, only if they are unchanged since then, and records this like any change.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

pub use crate::change::apply::{ContentSource, TargetState};
use crate::change::apply::{TargetMap, TargetStates};
use crate::change::git_undo::{GitUndo, GitUndoRules, USED};
use crate::change::log::{ChangeLog, LogError};
use crate::change::net::{NetChange, PathState};
use crate::change::state::{hash_open_file, state_at};
use crate::change::{Changer, EntryState};
use crate::workspace::{FileStamp, GitLocks, Workspace, WorkspaceError, draft_name};
use haft_types::call::RunId;

/// Maximum number of bytes of files that one undo restores.
const MAX_BYTES: u64 = 512 << 20;
const BEYOND_ONE_UNDO: &str = "it is beyond the 512 MiB that one undo restores: undo one call at a time, or with force several times";

/// The reason why an undo cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The run's log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be read or changed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

/// How an undo treats a file or link that was changed after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaterChangePolicy {
    /// As a conflict.
    #[default]
    Refuse,
    /// It is renamed to `NAME.before-undo`, and the undo continues, also without what cannot be restored.
    SetAside,
}

/// A file, link or folder that prevents the undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Its path.
    pub path: PathBuf,
    /// The reason why it may not be touched.
    pub why: &'static str,
    /// Whether its earlier content cannot be restored: a forced undo leaves it as it is, and undoes the rest.
    pub lost: bool,
}

/// The steps of an undo.
#[derive(Debug, Default)]
pub struct UndoSteps {
    /// Files and links changed after the run: current path, and the free path beside it to which each is renamed first.
    pub set_aside: Vec<(PathBuf, PathBuf)>,
    /// Files to remove from moved folders before these move back: new files, and changed files, which are then restored.
    pub removals: BTreeMap<PathBuf, TargetState>,
    /// The target of each path outside moved folders.
    pub direct: BTreeMap<PathBuf, TargetState>,
    /// Folders to move back: current path, previous path.
    pub moves: Vec<(PathBuf, PathBuf)>,
    /// The target of each path in moved folders, applied after the moves.
    pub in_moved_folders: BTreeMap<PathBuf, TargetState>,
    /// Paths in a repository's `.git`, which git can restore.
    pub left_alone: Vec<PathBuf>,
    /// Paths that stay as they are, and why: in a repository's `.git`, or because their earlier content was not saved.
    pub stays: Vec<Conflict>,
    /// What prevents the undo. If there is any conflict, nothing is touched.
    pub conflicts: Vec<Conflict>,
    /// The state of each file when it was compared. A file in a different state is not replaced or deleted.
    stamps: HashMap<PathBuf, FileStamp>,
}

/// Plans the undo of these changes of a run. Changes nothing.
///
/// # Errors
/// A file or its saved content cannot be read.
pub fn plan(
    nets: &[NetChange],
    workspace: &Workspace,
    log: &ChangeLog,
    run: &RunId,
    changed: LaterChangePolicy,
) -> Result<UndoSteps, UndoError> {
    let mut planning = UndoPlanner {
        workspace,
        log,
        run,
        changed,
        nets,
        occupied: nets.iter().filter_map(occupied_path).collect(),
        moved: nets.iter().filter_map(NetChange::moved_folder).collect(),
        plan: UndoSteps::default(),
        lost: HashSet::new(),
        bytes: 0,
    };
    let rules = GitUndoRules::new(nets, workspace, |net| planning.is_left(net))?;
    let mut to_undo = Vec::with_capacity(nets.len());
    for net in nets {
        let needs_undo = match rules.of(net) {
            Some(GitUndo::LeaveToGit) => {
                planning.plan.left_alone.push(net.path().to_owned());
                false
            }
            Some(GitUndo::Stay(why)) => {
                planning.stay(net.path(), why);
                false
            }
            // Said once, of the repository.
            Some(GitUndo::StayWithAll) => false,
            Some(GitUndo::Undo) => planning.setting_needs_undo(net)?,
            // A folder stays with the repository in it.
            None if net.before.is_none() && rules.holds_used(net.path()) => false,
            None => planning.needs_undo(net)?,
        };
        if needs_undo {
            to_undo.push(net);
        }
    }
    planning
        .plan
        .stays
        .extend(rules.used().map(|unit| Conflict {
            path: unit.clone(),
            why: USED,
            lost: false,
        }));
    let moved = to_undo.iter().filter_map(|net| net.moved_folder());
    let moved = moved.map(|(is, was)| (is.to_owned(), was.to_owned()));
    planning.plan.moves = moved.collect();
    for net in to_undo {
        planning.add_targets(net)?;
    }
    planning.leave_beside_lost();
    Ok(planning.plan)
}

struct UndoPlanner<'a> {
    workspace: &'a Workspace,
    log: &'a ChangeLog,
    run: &'a RunId,
    changed: LaterChangePolicy,
    nets: &'a [NetChange],
    /// Paths outside moved folders at which these changes left something.
    occupied: HashSet<&'a Path>,
    /// Folders that they moved: current path, previous path.
    moved: Vec<(&'a Path, &'a Path)>,
    plan: UndoSteps,
    /// Paths of changes that a forced undo cannot take back.
    lost: HashSet<PathBuf>,
    bytes: u64,
}

/// Returns the path at which a change left something, unless it moved a folder there.
fn occupied_path(net: &NetChange) -> Option<&Path> {
    let is = net.after.as_ref().filter(|_| net.moved_folder().is_none());
    is.map(|is| &*is.path)
}

impl UndoPlanner<'_> {
    /// Whether a file is as the changes left it, so it must be restored. Skips a file that is already restored; any
    /// other state is a conflict.
    fn needs_undo(&mut self, net: &NetChange) -> Result<bool, UndoError> {
        let now = match &net.after {
            Some(is) => self.state_at(&is.path)?,
            None => None,
        };
        let is = |lies: Option<&PathState>, now: Option<&EntryState>| match (lies, now) {
            (Some(lies), Some(now)) => lies.state.is_same(now),
            (None, None) => true,
            _ => false,
        };
        // The old file may already be deleted, and the new one not yet created.
        let between = net.unfinished && net.before.is_some() && now.is_none();
        if !between && !is(net.after.as_ref(), now.as_ref()) {
            let back = match &net.before {
                Some(was) => {
                    let elsewhere = was.path != net.path();
                    let before = self.state_at(&was.path)?;
                    is(Some(was), before.as_ref()) && !(elsewhere && now.is_some())
                }
                None => now.is_none(),
            };
            if back {
                return Ok(false);
            }
            let why = match net.after.as_ref().map(|is| &is.state) {
                Some(EntryState::File { sha256: None, .. }) => "it is too large to compare",
                _ => "it was changed after the run",
            };
            if !self.set_aside(net.path(), now.as_ref(), why)? {
                return Ok(false);
            }
        }
        if let Some(was) = net
            .before
            .as_ref()
            .filter(|was| net.after.is_none() || was.path != net.path())
            && !self.is_occupied_by_run(&was.path)
            && let Some(lies) = self.state_at(&was.path)?
        {
            let is_back = net.after.is_none() && lies.is_same(&was.state);
            let why = "something else is there now";
            if is_back || !self.set_aside(&was.path, Some(&lies), why)? {
                return Ok(false);
            }
        }
        if net.foreign {
            let why = "another program changed it between these changes";
            self.conflict(net.path(), why);
        }
        Ok(!net.foreign)
    }

    /// Whether a file is as the changes left it.
    fn is_left(&mut self, net: &NetChange) -> Result<bool, WorkspaceError> {
        match &net.after {
            Some(is) => self.is_still(is),
            None => Ok(self.state_at(net.path())?.is_none()),
        }
    }

    /// Whether settings of a repository must be restored. Those that were changed since stay, and prevent nothing: git itself writes
    /// them.
    fn setting_needs_undo(&mut self, net: &NetChange) -> Result<bool, UndoError> {
        let known = self.plan.conflicts.len();
        let needs_undo = self.needs_undo(net)?;
        for conflict in self.plan.conflicts.split_off(known) {
            self.plan.stays.push(conflict);
        }
        Ok(needs_undo)
    }

    fn stay(&mut self, path: &Path, why: &'static str) {
        self.plan.stays.push(Conflict {
            path: path.to_owned(),
            why,
            lost: false,
        });
    }

    /// Sets aside what is at a path if the undo may continue without it; otherwise adds a conflict. Folders are not set aside, nor
    /// is anything in a folder that moves back.
    fn set_aside(
        &mut self,
        path: &Path,
        now: Option<&EntryState>,
        why: &'static str,
    ) -> Result<bool, UndoError> {
        let mut moved = self.moved.iter();
        let in_moved = moved.any(|(is, was)| path.starts_with(is) || path.starts_with(was));
        let may = matches!(
            now,
            None | Some(EntryState::File { .. } | EntryState::Link { .. })
        );
        if self.changed == LaterChangePolicy::Refuse || !may || in_moved {
            self.conflict(path, why);
            return Ok(false);
        }
        if now.is_some() && !self.is_set_aside(path) {
            let aside = self.free_name(path)?;
            self.plan.stamps.remove(path);
            self.plan.set_aside.push((path.to_owned(), aside));
        }
        Ok(true)
    }

    fn is_set_aside(&self, path: &Path) -> bool {
        self.plan.set_aside.iter().any(|(is, _)| is == path)
    }

    /// Returns `NAME.before-undo`, or the first `NAME.before-undo.N` that is free.
    fn free_name(&self, path: &Path) -> Result<PathBuf, UndoError> {
        let mut number = 1_u32;
        loop {
            let mut name = path.as_os_str().to_owned();
            name.push(".before-undo");
            if number > 1 {
                name.push(format!(".{number}"));
            }
            let free = PathBuf::from(name);
            let mut nets = self.nets.iter();
            let is_ours = nets.any(|net| {
                let mut paths = [&net.before, &net.after].into_iter().flatten();
                paths.any(|lies| lies.path == free)
            });
            if !is_ours && state_at(self.workspace, &free, &mut |_| Ok(None))?.is_none() {
                return Ok(free);
            }
            number = number.saturating_add(1);
        }
    }

    /// Whether these changes left something at this path.
    fn is_occupied_by_run(&self, path: &Path) -> bool {
        self.occupied.contains(path) || self.moved.iter().any(|(is, _)| path.starts_with(is))
    }

    fn add_targets(&mut self, net: &NetChange) -> Result<(), UndoError> {
        if net.moved_folder().is_some() {
            return Ok(());
        }
        if let Some(was) = &net.before {
            let target = self.target_for(was, net.after.as_ref())?;
            let folders = self.plan.moves.iter();
            let folder = folders
                .filter(|(_, folder)| was.path.starts_with(folder))
                .max_by_key(|(_, folder)| folder.components().count());
            let now = folder.map(|(is, folder)| {
                is.join(was.path.strip_prefix(folder).unwrap_or(Path::new("")))
            });
            match (target, now) {
                (Err(why), _) => {
                    self.lose(net, &was.path, why);
                    return Ok(());
                }
                (Ok(target), None) => _ = self.plan.direct.insert(was.path.clone(), target),
                (Ok(target), Some(now)) => {
                    // A file that was later added to the folder moves along with it.
                    let ours = self.nets.iter().any(|net| net.is_at(&now));
                    if !ours && self.state_at(&now)?.is_some() {
                        self.conflict(&now, "something else is there now");
                    }
                    self.plan.in_moved_folders.insert(was.path.clone(), target);
                }
            }
        }
        if let Some(is) = &net.after {
            let mut folders = self.plan.moves.iter();
            let inside = folders.any(|(folder, _)| is.path.starts_with(folder));
            let removals = if inside {
                &mut self.plan.removals
            } else {
                &mut self.plan.direct
            };
            removals
                .entry(is.path.clone())
                .or_insert(TargetState::Nothing);
        }
        Ok(())
    }

    /// Returns the content before the changes, from the log or from where the file was moved; or why it cannot be restored.
    fn target_for(
        &mut self,
        was: &PathState,
        is: Option<&PathState>,
    ) -> Result<Result<TargetState, &'static str>, UndoError> {
        let (sha256, mode) = match &was.state {
            EntryState::Folder { mode } => return Ok(Ok(TargetState::Folder(*mode))),
            EntryState::Link { target } => return Ok(Ok(TargetState::Link(target.0.clone()))),
            EntryState::Other => return Ok(Err("it was a pipe, a socket, a device or unreadable")),
            EntryState::File { sha256: None, .. } => return Ok(Err("it was too large to save")),
            EntryState::File {
                sha256: Some(sha256),
                bytes,
                mode,
            } => {
                let bytes = self.bytes.saturating_add(*bytes);
                if bytes > MAX_BYTES {
                    return Ok(Err(BEYOND_ONE_UNDO));
                }
                self.bytes = bytes;
                (sha256, *mode)
            }
        };
        let found = match self.log.load_file(self.run, sha256)? {
            Some(kept) => Some(kept),
            None => self.read_moved_file(was, is)?,
        };
        Ok(match found {
            Some(bytes) => Ok(TargetState::File {
                content: ContentSource::Bytes(bytes.into()),
                mode,
            }),
            None => Err("its earlier state was not saved"),
        })
    }

    /// Returns the bytes of a file that was moved but not changed.
    fn read_moved_file(
        &mut self,
        was: &PathState,
        is: Option<&PathState>,
    ) -> Result<Option<Vec<u8>>, UndoError> {
        let Some(is) = is.filter(|is| is.state.is_same(&was.state)) else {
            return Ok(None);
        };
        // A file changed or deleted since then no longer has the moved content.
        if self.is_set_aside(&is.path) || !self.is_still(is)? {
            return Ok(None);
        }
        let mut open = self.workspace.open_file(&is.path)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut open.file, &mut bytes)
            .map_err(|e| WorkspaceError::io("read", &is.path.to_string_lossy(), e))?;
        Ok(Some(bytes))
    }

    /// Whether a path is as the changes left it.
    fn is_still(&mut self, is: &PathState) -> Result<bool, WorkspaceError> {
        let now = self.state_at(&is.path)?;
        Ok(now.is_some_and(|now| now.is_same(&is.state)))
    }

    fn state_at(&mut self, path: &Path) -> Result<Option<EntryState>, WorkspaceError> {
        let stamps = &mut self.plan.stamps;
        state_at(self.workspace, path, &mut |open| {
            stamps.insert(path.to_owned(), open.stamp);
            hash_open_file(open, path)
        })
    }

    fn conflict(&mut self, path: &Path, why: &'static str) {
        self.plan.conflicts.push(Conflict {
            path: path.to_owned(),
            why,
            lost: false,
        });
    }

    /// Notes that nothing restores the earlier content of a path. A forced undo leaves what is there now where it is.
    fn lose(&mut self, net: &NetChange, was: &Path, why: &'static str) {
        let conflict = Conflict {
            path: was.to_owned(),
            why,
            lost: true,
        };
        if self.changed == LaterChangePolicy::Refuse {
            self.plan.conflicts.push(conflict);
            return;
        }
        self.lost.extend([was.to_owned(), net.path().to_owned()]);
        self.plan.stays.push(conflict);
    }

    /// Leaves at its place what would be set aside for something that nothing restores, unless something else needs the place.
    fn leave_beside_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        let mut set_aside = std::mem::take(&mut self.plan.set_aside);
        set_aside.retain(|(is, _)| !lost.contains(is) || self.plan.target(is).is_some());
        self.plan.set_aside = set_aside;
    }
}

impl UndoSteps {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.set_aside.is_empty() && self.moves.is_empty() && self.targets().next().is_none()
    }

    /// Returns all targets, in the order in which they are applied.
    pub fn targets(&self) -> impl Iterator<Item = (&PathBuf, &TargetState)> {
        self.removals
            .iter()
            .chain(&self.direct)
            .chain(&self.in_moved_folders)
    }

    /// Returns the final target of each path, without removals of files that are restored after their folder moved back.
    pub fn summary(&self) -> impl Iterator<Item = (&PathBuf, &TargetState)> {
        let again = |path: &Path| {
            let moved = self.moves.iter();
            let mut there =
                moved.filter_map(|(is, was)| Some(was.join(path.strip_prefix(is).ok()?)));
            there.any(|path| self.in_moved_folders.contains_key(&path))
        };
        let removals = self.removals.iter().filter(move |(path, _)| !again(path));
        removals.chain(&self.direct).chain(&self.in_moved_folders)
    }

    fn target(&self, path: &Path) -> Option<&TargetState> {
        let maps = [&self.removals, &self.direct, &self.in_moved_folders];
        maps.into_iter().find_map(|targets| targets.get(path))
    }

    /// Applies the undo. Writes and deletes up to 1,000 files in 200 folders atomically, unless folders move in
    /// between. A folder that contains other files is not removed.
    ///
    /// # Errors
    /// Something cannot be changed, or has changed since the undo was planned.
    pub fn apply(&self, workspace: &Workspace, changer: &Changer) -> Result<(), WorkspaceError> {
        let changer = &changer.with_repositories();
        let goes = |path: &Path| matches!(self.target(path), Some(TargetState::Nothing));
        let files: Vec<&Path> = self.targets().map(|(path, _)| path.as_path()).collect();
        let is_changed = |path: &Path| self.target(path).is_some();
        let _locks = GitLocks::take(workspace, &files, &goes, &is_changed)?;
        // Moves via temporary names, inner folders before outer ones, so folders can swap places.
        let mut moves: Vec<_> = self
            .moves
            .iter()
            .map(|(is, was)| (is, was, temporary_name()))
            .collect();
        moves.sort_by(|a, b| b.0.cmp(a.0));
        let list = |all| TargetMap {
            all,
            stamps: &self.stamps,
        };
        let removals = &list(&self.removals);
        let removals = TargetStates {
            workspace,
            changer,
            all: removals,
        };
        let (direct, in_moved_folders) = (&list(&self.direct), &list(&self.in_moved_folders));
        let place = |path: &Path| workspace.real_place(path);
        for (is, aside) in &self.set_aside {
            changer.rename(&place(is)?, &place(aside)?, false)?;
        }
        removals.delete_files()?;
        for (is, _, aside) in &moves {
            removals.delete_empty_folders()?;
            changer.rename(&place(is)?, &place(aside)?, false)?;
        }
        let all = direct;
        TargetStates { all, ..removals }.apply()?;
        moves.sort_by(|a, b| a.1.cmp(b.1));
        for (_, was, aside) in &moves {
            changer.rename(&place(aside)?, &place(was)?, false)?;
        }
        let all = in_moved_folders;
        TargetStates { all, ..removals }.apply()
    }
}

/// Returns a unique name in the root.
fn temporary_name() -> PathBuf {
    format!("{}.undo", draft_name()).into()
}
