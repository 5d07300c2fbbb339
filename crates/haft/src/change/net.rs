//! What some changes came to, file by file: where it was before the first of them and where it is after the last.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::change::log::Set;
use crate::change::{Changed, State};

/// A file, link or folder at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lies {
    /// Below the root, without links.
    pub path: PathBuf,
    /// What it is.
    pub state: State,
}

/// What became of one file, link or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Net {
    /// Where it was and as what; none for one that is new.
    pub was: Option<Lies>,
    /// Where it is and as what; none for one that is gone.
    pub is: Option<Lies>,
    /// Somebody else changed it between these changes.
    pub foreign: bool,
}

/// What is done to a file, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is new.
    Create,
    /// Its content changed.
    Modify,
    /// It is gone.
    Delete,
    /// It lies elsewhere, perhaps changed.
    Move,
    /// Something of another kind is in its place.
    Replace,
    /// Its mode alone changed.
    Chmod,
}

impl Action {
    /// The word.
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

impl Net {
    /// What was done.
    pub fn action(&self) -> Action {
        match (&self.was, &self.is) {
            (None, _) => Action::Create,
            (_, None) => Action::Delete,
            (Some(was), Some(is)) if was.path != is.path => Action::Move,
            (Some(was), Some(is)) => match (&was.state, &is.state) {
                (State::File { sha256: a, .. }, State::File { sha256: b, .. }) => {
                    if a.is_some() && a == b {
                        Action::Chmod
                    } else {
                        Action::Modify
                    }
                }
                (State::Link { .. }, State::Link { .. }) => Action::Modify,
                (State::Folder { .. }, State::Folder { .. }) => Action::Chmod,
                _ => Action::Replace,
            },
        }
    }

    /// Where it is now, or was last.
    pub fn path(&self) -> &Path {
        let lies = self.is.as_ref().or(self.was.as_ref());
        lies.map_or(Path::new(""), |lies| &lies.path)
    }

    /// From where to where a folder is moved back, if it was moved.
    pub(super) fn moved_folder(&self) -> Option<(&Path, &Path)> {
        let (was, is) = (self.was.as_ref()?, self.is.as_ref()?);
        let folder = |lies: &Lies| matches!(lies.state, State::Folder { .. });
        let moved = was.path != is.path && folder(was) && folder(is);
        moved.then_some((&*is.path, &*was.path))
    }

    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.is.as_ref().is_some_and(|is| is.path == path)
    }

    fn is_nothing(&self) -> bool {
        match (&self.was, &self.is) {
            (None, None) => true,
            (Some(was), Some(is)) if was.path != is.path => false,
            (Some(was), Some(is)) => match (&was.state, &is.state) {
                (State::Folder { mode: a }, State::Folder { mode: b }) => a == b,
                (was, is) => was.is_same(is),
            },
            _ => false,
        }
    }
}

/// What sets of changes came to. Those that failed, and changed nothing, are left out.
pub fn net<'a>(sets: impl IntoIterator<Item = &'a Set>) -> Vec<Net> {
    let mut nets = Nets::default();
    for set in sets {
        for change in set.changes.iter().filter(|_| set.done != Some(false)) {
            match &change.from {
                Some(from) if *from == change.path => {}
                Some(from) => nets.moved(from, change),
                None => nets.put(change),
            }
        }
    }
    let mut nets = nets.all;
    let moved = nets.iter().filter_map(Net::moved_folder);
    let moved: Vec<_> = moved
        .map(|(is, was)| [is.to_owned(), was.to_owned()])
        .collect();
    if moved.is_empty() {
        join(&mut nets);
    }
    // Where folders were moved, a place may be in another folder than before.
    let elsewhere = |net: &Net| {
        moved
            .iter()
            .flatten()
            .any(|folder| net.path().starts_with(folder))
    };
    nets.retain(|net| elsewhere(net) || !net.is_nothing());
    nets.retain(|net| net.was.is_some() || net.is.is_some());
    nets
}

/// What was deleted and made again at its place is one file.
fn join(nets: &mut [Net]) {
    let new = |(at, net): (usize, &Net)| match (&net.was, &net.is) {
        (None, Some(is)) => Some((is.path.clone(), at)),
        _ => None,
    };
    let new: HashMap<PathBuf, usize> = nets.iter().enumerate().filter_map(new).collect();
    for at in 0..nets.len() {
        let gone = nets.get(at).filter(|net| net.is.is_none());
        let path = gone.and_then(|net| net.was.as_ref()).map(|was| &was.path);
        let again = path.and_then(|path| new.get(path)).copied();
        let is = again.and_then(|again| nets.get_mut(again)?.is.take());
        if let (Some(is), Some(net)) = (is, nets.get_mut(at)) {
            net.is = Some(is);
        }
    }
}

/// Those so far, by where they are.
#[derive(Default)]
struct Nets {
    all: Vec<Net>,
    at: HashMap<PathBuf, usize>,
}

impl Nets {
    /// Something is made, changed or deleted where it lies.
    fn put(&mut self, change: &Changed) {
        let path = &*change.path;
        let is = change.after.clone();
        if let Some(at) = self.at.get(path).copied() {
            self.meets(at, change.before.as_ref());
            self.lies(at, path, is);
            return;
        }
        let was = change.before.clone();
        let at = self.add(was.map(|state| lies(&self.origin(path), state)));
        self.lies(at, path, is);
    }

    /// Something is moved, with all below it.
    fn moved(&mut self, from: &Path, change: &Changed) {
        let to = &*change.path;
        if let Some(before) = &change.before {
            let replaced = self.at.get(to).copied();
            let replaced = match replaced {
                Some(at) => {
                    self.meets(at, Some(before));
                    at
                }
                None => self.add(Some(lies(&self.origin(to), before.clone()))),
            };
            self.lies(replaced, to, None);
        }
        let Some(state) = &change.after else {
            return;
        };
        if let Some(at) = self.at.get(from).copied() {
            self.meets(at, Some(state));
        } else {
            let at = self.add(Some(lies(&self.origin(from), state.clone())));
            self.lies(at, from, Some(state.clone()));
        }
        let below: Vec<usize> = match state {
            State::Folder { .. } => {
                let is_below =
                    |(path, at): (&PathBuf, &usize)| path.starts_with(from).then_some(*at);
                self.at.iter().filter_map(is_below).collect()
            }
            _ => self.at.get(from).copied().into_iter().collect(),
        };
        for at in below {
            let Some(is) = self.all.get(at).and_then(|net| net.is.clone()) else {
                continue;
            };
            let rest = is.path.strip_prefix(from).unwrap_or(Path::new(""));
            let new = if rest.as_os_str().is_empty() {
                to.to_owned()
            } else {
                to.join(rest)
            };
            self.at.remove(&is.path);
            self.lies(at, &new, Some(is.state));
        }
    }

    /// Where something was that lies here and was not changed yet: folders may have been moved with it in them.
    fn origin(&self, path: &Path) -> PathBuf {
        for folder in path.ancestors().skip(1) {
            let net = self.at.get(folder).and_then(|at| self.all.get(*at));
            if let Some(was) = net.and_then(|net| net.was.as_ref())
                && let Ok(rest) = path.strip_prefix(folder)
            {
                return was.path.join(rest);
            }
        }
        path.to_owned()
    }

    fn add(&mut self, was: Option<Lies>) -> usize {
        self.all.push(Net {
            was,
            is: None,
            foreign: false,
        });
        self.all.len() - 1
    }

    /// Notes whether a change met what the one before had left.
    fn meets(&mut self, at: usize, met: Option<&State>) {
        let Some(net) = self.all.get_mut(at) else {
            return;
        };
        net.foreign |= match (&net.is, met) {
            (Some(left), Some(met)) => !left.state.is_same(met),
            (None, None) => false,
            _ => true,
        };
    }

    /// Notes where it is from now on.
    fn lies(&mut self, at: usize, path: &Path, state: Option<State>) {
        let Some(net) = self.all.get_mut(at) else {
            return;
        };
        net.is = state.map(|state| lies(path, state));
        if net.is.is_some() {
            self.at.insert(path.to_owned(), at);
        } else {
            self.at.remove(path);
        }
    }
}

fn lies(path: &Path, state: State) -> Lies {
    Lies {
        path: path.to_owned(),
        state,
    }
}
