//! `Changer`: all by which the files of a workspace are changed. What one that notes is about to do is in the run's log first.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::call::{CallId, RunId};
use crate::change::log::ChangeLog;
use crate::change::state::{read, state};
use crate::change::{Changed, State};
use crate::spec::hex;
use crate::workspace::{
    Change, FileStamp, Kind, Place, Workspace, WorkspaceError, WriteMode, Written,
};

/// Most entries of a folder that is deleted.
const MOST_BELOW: usize = 100_000;

/// The hand of one call that changes files.
#[derive(Debug, Clone)]
pub struct Changer {
    workspace: Workspace,
    noting: Option<Noting>,
}

#[derive(Debug, Clone)]
struct Noting {
    log: Arc<ChangeLog>,
    run: RunId,
    call: CallId,
}

/// What a change is noted as, and what of it must be whole.
struct Noted {
    changes: Vec<Changed>,
    /// A failure has changed nothing.
    whole: bool,
}

impl Workspace {
    /// What changes files without a note of it, so that nothing can be undone: for a host's own files and for tests. A tool
    /// takes [`CallContext::changer`](crate::context::CallContext::changer).
    pub fn unrecorded(&self) -> Changer {
        Changer {
            workspace: self.clone(),
            noting: None,
        }
    }
}

impl Changer {
    /// That of a call.
    pub(crate) fn of(
        workspace: &Workspace,
        log: &Arc<ChangeLog>,
        run: &RunId,
        call: &CallId,
    ) -> Self {
        Self {
            workspace: workspace.clone(),
            noting: Some(Noting {
                log: Arc::clone(log),
                run: run.clone(),
                call: call.clone(),
            }),
        }
    }

    /// Writes a file at a place, making its parents. The old text is there until the new one is whole on the disk,
    /// whatever goes wrong; mode and owner stay. A link's target is written, not the link; another name of the same
    /// file (a hard link) keeps the old text. With `expected`, a file in any other state is left alone.
    ///
    /// # Errors
    /// The place may not be changed, is no file, or is in another state than expected; or the disk is full.
    pub fn write(
        &self,
        place: &Place,
        content: &[u8],
        mode: WriteMode,
        expected: Option<&FileStamp>,
    ) -> Result<Written, WorkspaceError> {
        let noted = |noting: &Noting| {
            let real = place.real();
            let before = self.lost(noting, real)?;
            let old = match mode {
                WriteMode::Append => self.bytes(place)?,
                WriteMode::Overwrite | WriteMode::Create => Vec::new(),
            };
            let after = written(&[&old, content], before.as_ref());
            let mut changes = folders(place);
            changes.push(changed(real, before, Some(after)));
            Ok(Noted {
                changes,
                whole: true,
            })
        };
        self.noting(noted, || {
            self.workspace.write(place, content, mode, expected)
        })
    }

    /// Makes all changes or none. Each file is replaced as [`write`](Self::write) does it; when a change fails, those
    /// before it are put back and folders made for them are removed. The state of each file afterwards, in order;
    /// `None` for one that was deleted. The places must be of different files.
    ///
    /// # Errors
    /// A file is not as it was expected, or cannot be changed; [`WorkspaceError::NotPutBack`] says that some were changed.
    pub fn change(&self, changes: &[Change<'_>]) -> Result<Vec<Option<FileStamp>>, WorkspaceError> {
        let noted = |noting: &Noting| {
            let mut all = Vec::with_capacity(changes.len());
            let mut made = HashSet::new();
            for change in changes {
                let real = change.place.real();
                let before = self.lost(noting, real)?;
                let like = match (&before, change.like) {
                    (None, Some(like)) => self.kept(like.real())?,
                    _ => before.clone(),
                };
                let after = |content: &[u8]| {
                    let after = written(&[content], like.as_ref());
                    change
                        .mode
                        .map_or(after.clone(), |mode| with_mode(after, mode))
                };
                let after = change.content.map(after);
                let folders = folders(change.place).into_iter();
                all.extend(folders.filter(|folder| made.insert(folder.path.clone())));
                all.push(changed(real, before, after));
            }
            Ok(Noted {
                changes: all,
                whole: true,
            })
        };
        self.noting(noted, || self.workspace.change(changes))
    }

    /// Moves what [`entry`](Workspace::entry) found at `from` to `to`, making the parents. A file or link may be
    /// replaced with `overwrite`, a folder never.
    ///
    /// # Errors
    /// Something is in the way, or may not be changed.
    pub fn rename(&self, from: &Place, to: &Place, overwrite: bool) -> Result<(), WorkspaceError> {
        let noted = |noting: &Noting| {
            let mut changes = folders(to);
            changes.push(Changed {
                path: to.real().into(),
                from: Some(from.real().into()),
                before: self.lost(noting, to.real())?,
                after: self.kept(from.real())?,
            });
            Ok(Noted {
                changes,
                whole: true,
            })
        };
        self.noting(noted, || self.workspace.rename(from, to, overwrite))
    }

    /// Deletes the file, link or empty folder at a place that [`entry`](Workspace::entry) found; with `recursive` the
    /// whole tree. A tree that holds a `.git` entry or something of haft's own is left alone.
    ///
    /// # Errors
    /// It may not be deleted, is not empty, or holds more than 100,000 entries.
    pub fn remove(&self, place: &Place, recursive: bool) -> Result<(), WorkspaceError> {
        let noted = |noting: &Noting| {
            let mut below = Vec::new();
            if recursive && place.kind() == Some(Kind::Directory) {
                below = self.below(place)?;
            }
            // As they go: what a folder holds before the folder.
            below.sort();
            let gone = below.iter().rev().map(PathBuf::as_path);
            let gone = gone.chain([place.real()]);
            let changes = gone.map(|path| Ok(changed(path, self.lost(noting, path)?, None)));
            Ok(Noted {
                changes: changes.collect::<Result<_, WorkspaceError>>()?,
                whole: !recursive,
            })
        };
        self.noting(noted, || self.workspace.remove(place, recursive))
    }

    /// Makes the folder at a place where nothing is, and its parents. Its mode is still to be [set](Self::set_mode).
    pub(crate) fn make_folder(
        &self,
        place: &Place,
        mode: Option<u32>,
    ) -> Result<(), WorkspaceError> {
        let noted = |_: &Noting| {
            let mut changes = folders(place);
            let folder = State::Folder { mode };
            changes.push(changed(place.real(), None, Some(folder)));
            Ok(Noted {
                changes,
                whole: true,
            })
        };
        self.noting(noted, || self.workspace.make_folder(place))
    }

    /// Sets the mode of the folder at a place, without set-id bits; that of a new one where none is given.
    pub(crate) fn set_mode(&self, place: &Place, mode: Option<u32>) -> Result<(), WorkspaceError> {
        let noted = |noting: &Noting| {
            let before = self.lost(noting, place.real())?;
            let after = Some(State::Folder { mode });
            Ok(Noted {
                changes: vec![changed(place.real(), before, after)],
                whole: true,
            })
        };
        self.noting(noted, || self.workspace.set_mode(place, mode))
    }

    /// Makes a link at a place where nothing is, and its parents.
    pub(crate) fn make_link(&self, place: &Place, target: &Path) -> Result<(), WorkspaceError> {
        let noted = |_: &Noting| {
            let mut changes = folders(place);
            let target = target.into();
            changes.push(changed(place.real(), None, Some(State::Link { target })));
            Ok(Noted {
                changes,
                whole: true,
            })
        };
        self.noting(noted, || self.workspace.make_link(place, target))
    }

    fn noting<T>(
        &self,
        noted: impl FnOnce(&Noting) -> Result<Noted, WorkspaceError>,
        act: impl FnOnce() -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let Some(noting) = &self.noting else {
            return act();
        };
        let Noted { changes, whole } = noted(noting)?;
        let (log, run) = (&noting.log, &noting.run);
        let set = log.begin(run, &noting.call, changes);
        let set = set.map_err(WorkspaceError::NotNoted)?;
        let done = act();
        let known = match &done {
            Ok(_) => true,
            Err(WorkspaceError::NotPutBack { .. }) => false,
            Err(_) => whole,
        };
        if known && let Err(error) = log.end(run, set, done.is_ok()) {
            // It then counts as perhaps done, and is compared with what lies there.
            tracing::warn!(%error, %run, "note that a change is done");
        }
        done
    }

    /// What lies at a path, and will not afterwards: a file's text is kept.
    fn lost(&self, noting: &Noting, real: &Path) -> Result<Option<State>, WorkspaceError> {
        state(&self.workspace, real, &mut |mut open| {
            let kept = noting.log.keep(&noting.run, &mut open.file);
            kept.map_err(WorkspaceError::NotNoted)
        })
    }

    /// What lies at a path, and goes on to do so somewhere.
    fn kept(&self, real: &Path) -> Result<Option<State>, WorkspaceError> {
        state(&self.workspace, real, &mut |open| read(open, real))
    }

    /// The bytes of the file at a place; none where nothing is there.
    fn bytes(&self, place: &Place) -> Result<Vec<u8>, WorkspaceError> {
        if place.kind().is_none() {
            return Ok(Vec::new());
        }
        let mut open = self.workspace.read(place)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut open.file, &mut bytes)
            .map_err(|e| WorkspaceError::io("read", &place.shown(), e))?;
        Ok(bytes)
    }

    fn below(&self, place: &Place) -> Result<Vec<PathBuf>, WorkspaceError> {
        let below = self.workspace.tree(place, MOST_BELOW)?;
        let below = below.ok_or_else(|| {
            WorkspaceError::Malformed(place.shown(), "it holds more than 100,000 entries")
        })?;
        Ok(below.into_iter().map(PathBuf::from).collect())
    }
}

fn changed(real: &Path, before: Option<State>, after: Option<State>) -> Changed {
    Changed {
        path: real.into(),
        from: None,
        before,
        after,
    }
}

/// The folders that are made for a place, the outermost first.
fn folders(place: &Place) -> Vec<Changed> {
    let missing = place.missing().saturating_sub(1);
    let above = place.real().ancestors().skip(1).take(missing);
    let mut made: Vec<_> = above
        .map(|folder| changed(folder, None, Some(State::Folder { mode: None })))
        .collect();
    made.reverse();
    made
}

/// A file of these bytes with the mode of the one before.
fn written(parts: &[&[u8]], before: Option<&State>) -> State {
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    for part in parts {
        hasher.update(part);
        bytes += part.len() as u64;
    }
    State::File {
        sha256: Some(hex(&hasher.finalize())),
        bytes,
        mode: match before {
            // Never the bits by which a program runs as another user.
            Some(State::File { mode, .. }) => mode.map(|mode| mode & 0o777),
            _ => None,
        },
    }
}

fn with_mode(state: State, mode: u32) -> State {
    match state {
        State::File { sha256, bytes, .. } => State::File {
            sha256,
            bytes,
            mode: Some(mode),
        },
        other => other,
    }
}
