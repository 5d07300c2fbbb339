//! Folds change sets into one [`NetChange`] per file: its state before the first change and after the last.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::change::log::ChangeSet;
use crate::change::{ChangeEntry, EntryState};

/// A path and the state of what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathState {
    /// The path below the root, without links.
    pub path: PathBuf,
    /// What is there.
    pub state: EntryState,
}

/// The sum of all changes to one file, link or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetChange {
    /// The state before the changes; `None` for a new file.
    pub before: Option<PathState>,
    /// The state after the changes; `None` for a deleted file.
    pub after: Option<PathState>,
    /// Whether another program changed it between these changes.
    pub foreign: bool,
    /// Whether the last change may be incomplete: the process ended before, or it failed.
    pub unfinished: bool,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new file, link or folder.
    Create,
    /// Different content.
    Modify,
    /// It was deleted.
    Delete,
    /// A different path, possibly with different content.
    Move,
    /// A different kind of file in its place.
    Replace,
    /// Different permission bits, same content.
    Chmod,
}

impl ChangeKind {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Replace => "replace",
            Self::Chmod => "chmod",
        }
    }
}

impl NetChange {
    /// Returns the kind of the change.
    pub fn action(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (None, _) => ChangeKind::Create,
            (_, None) => ChangeKind::Delete,
            (Some(was), Some(is)) if was.path != is.path => ChangeKind::Move,
            (Some(was), Some(is)) => match (&was.state, &is.state) {
                (EntryState::File { sha256: a, .. }, EntryState::File { sha256: b, .. }) => {
                    if a.is_some() && a == b {
                        ChangeKind::Chmod
                    } else {
                        ChangeKind::Modify
                    }
                }
                (EntryState::Link { .. }, EntryState::Link { .. }) => ChangeKind::Modify,
                (EntryState::Folder { .. }, EntryState::Folder { .. }) => ChangeKind::Chmod,
                _ => ChangeKind::Replace,
            },
        }
    }

    /// Returns the path after the changes, or before them if it was deleted.
    pub fn path(&self) -> &Path {
        let lies = self.after.as_ref().or(self.before.as_ref());
        lies.map_or(Path::new(""), |lies| &lies.path)
    }

    /// Returns the current and the previous path of a moved folder.
    pub(super) fn moved_folder(&self) -> Option<(&Path, &Path)> {
        let (was, is) = (self.before.as_ref()?, self.after.as_ref()?);
        let folder = |lies: &PathState| matches!(lies.state, EntryState::Folder { .. });
        let moved = was.path != is.path && folder(was) && folder(is);
        moved.then_some((&*is.path, &*was.path))
    }

    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.after.as_ref().is_some_and(|is| is.path == path)
    }

    fn is_noop(&self) -> bool {
        match (&self.before, &self.after) {
            (None, None) => true,
            (Some(was), Some(is)) if was.path != is.path => false,
            (Some(was), Some(is)) => match (&was.state, &is.state) {
                (EntryState::Folder { mode: a }, EntryState::Folder { mode: b }) => a == b,
                (was, is) => was.is_same(is),
            },
            _ => false,
        }
    }
}

/// Folds change sets in order. Ignores sets that failed without changing anything.
pub fn net_changes<'a>(sets: impl IntoIterator<Item = &'a ChangeSet>) -> Vec<NetChange> {
    let mut nets = NetChanges::default();
    for set in sets {
        for change in set.changes.iter().filter(|_| set.done != Some(false)) {
            match &change.from {
                Some(from) if *from == change.path => {}
                Some(from) => nets.record_move(from, change),
                None => nets.record_change(change, set.done.is_none()),
            }
        }
    }
    let mut nets = nets.all;
    let moved = nets.iter().filter_map(NetChange::moved_folder);
    let moved: Vec<_> = moved
        .map(|(is, was)| [is.to_owned(), was.to_owned()])
        .collect();
    if moved.is_empty() {
        merge_recreated(&mut nets);
    }
    // In a moved folder, the same path may be a different file.
    let elsewhere = |net: &NetChange| {
        moved
            .iter()
            .flatten()
            .any(|folder| net.path().starts_with(folder))
    };
    nets.retain(|net| elsewhere(net) || !net.is_noop());
    nets.retain(|net| net.before.is_some() || net.after.is_some());
    nets
}

/// Merges a file that was deleted and created again at its path.
fn merge_recreated(nets: &mut [NetChange]) {
    let new = |(at, net): (usize, &NetChange)| match (&net.before, &net.after) {
        (None, Some(is)) => Some((is.path.clone(), at)),
        _ => None,
    };
    let new: HashMap<PathBuf, usize> = nets.iter().enumerate().filter_map(new).collect();
    for at in 0..nets.len() {
        let removed = nets.get(at).filter(|net| net.after.is_none());
        let path = removed
            .and_then(|net| net.before.as_ref())
            .map(|was| &was.path);
        let again = path.and_then(|path| new.get(path)).copied();
        let is = again.and_then(|again| nets.get_mut(again)?.after.take());
        if let (Some(is), Some(net)) = (is, nets.get_mut(at)) {
            net.after = Some(is);
        }
    }
}

/// The changes so far, and their indexes by current path.
#[derive(Default)]
struct NetChanges {
    all: Vec<NetChange>,
    at: HashMap<PathBuf, usize>,
}

impl NetChanges {
    /// Records a creation, change or deletion in place.
    fn record_change(&mut self, change: &ChangeEntry, unfinished: bool) {
        let path = &*change.path;
        let is = change.after.clone();
        if let Some(at) = self.at.get(path).copied() {
            self.flag_if_foreign(at, change.before.as_ref());
            self.set_current(at, path, is);
            self.set_unfinished(at, unfinished);
            return;
        }
        let was = change.before.clone();
        let at = self.add(was.map(|state| path_state(&self.origin(path), state)));
        self.set_current(at, path, is);
        self.set_unfinished(at, unfinished);
    }

    /// Records a move, with everything below it.
    fn record_move(&mut self, from: &Path, change: &ChangeEntry) {
        let to = &*change.path;
        if let Some(before) = &change.before {
            let replaced = self.at.get(to).copied();
            let replaced = match replaced {
                Some(at) => {
                    self.flag_if_foreign(at, Some(before));
                    at
                }
                None => self.add(Some(path_state(&self.origin(to), before.clone()))),
            };
            self.set_current(replaced, to, None);
        }
        let Some(state) = &change.after else {
            return;
        };
        if let Some(at) = self.at.get(from).copied() {
            self.flag_if_foreign(at, Some(state));
        } else {
            let at = self.add(Some(path_state(&self.origin(from), state.clone())));
            self.set_current(at, from, Some(state.clone()));
        }
        let below: Vec<usize> = match state {
            EntryState::Folder { .. } => {
                let is_below =
                    |(path, at): (&PathBuf, &usize)| path.starts_with(from).then_some(*at);
                self.at.iter().filter_map(is_below).collect()
            }
            _ => self.at.get(from).copied().into_iter().collect(),
        };
        for at in below {
            let Some(is) = self.all.get(at).and_then(|net| net.after.clone()) else {
                continue;
            };
            let rest = is.path.strip_prefix(from).unwrap_or(Path::new(""));
            let new = if rest.as_os_str().is_empty() {
                to.to_owned()
            } else {
                to.join(rest)
            };
            self.at.remove(&is.path);
            self.set_current(at, &new, Some(is.state));
        }
    }

    /// Returns the original path of a file without a change so far: a parent folder may have moved.
    fn origin(&self, path: &Path) -> PathBuf {
        for folder in path.ancestors().skip(1) {
            let net = self.at.get(folder).and_then(|at| self.all.get(*at));
            if let Some(was) = net.and_then(|net| net.before.as_ref())
                && let Ok(rest) = path.strip_prefix(folder)
            {
                return was.path.join(rest);
            }
        }
        path.to_owned()
    }

    fn add(&mut self, before: Option<PathState>) -> usize {
        self.all.push(NetChange {
            before,
            after: None,
            foreign: false,
            unfinished: false,
        });
        self.all.len() - 1
    }

    /// Flags a change whose `before` differs from the last known state.
    fn flag_if_foreign(&mut self, at: usize, met: Option<&EntryState>) {
        let Some(net) = self.all.get_mut(at) else {
            return;
        };
        net.foreign |= match (&net.after, met) {
            (Some(left), Some(met)) => !left.state.is_same(met),
            (None, None) => false,
            _ => true,
        };
    }

    fn set_unfinished(&mut self, at: usize, unfinished: bool) {
        if let Some(net) = self.all.get_mut(at) {
            net.unfinished = unfinished;
        }
    }

    /// Sets the current path and state.
    fn set_current(&mut self, at: usize, path: &Path, state: Option<EntryState>) {
        let Some(net) = self.all.get_mut(at) else {
            return;
        };
        net.after = state.map(|state| path_state(path, state));
        if net.after.is_some() {
            self.at.insert(path.to_owned(), at);
        } else {
            self.at.remove(path);
        }
    }
}

fn path_state(path: &Path, state: EntryState) -> PathState {
    PathState {
        path: path.to_owned(),
        state,
    }
}
