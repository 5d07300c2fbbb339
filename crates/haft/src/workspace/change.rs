//! Several files changed together: all staged beside their places, then renamed one by one, or all put back.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::workspace::write::{
    Draft, draft_name, fill, keep_owner_and_mode, new_draft, put_in_place,
};
use crate::workspace::{FileStamp, Kind, Place, Workspace, WorkspaceError, WriteMode};

/// Most files that are written to the disk one by one.
const MOST_SYNCED: usize = 32;

/// One of several changes that are made together.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Where.
    pub place: &'a Place,
    /// The new text; without one the file is deleted.
    pub content: Option<&'a [u8]>,
    /// The state the file must be in; without one nothing may be there.
    pub expected: Option<FileStamp>,
    /// For a new file: another whose mode and owner it gets.
    pub like: Option<&'a Place>,
    /// The mode it gets, whatever it had.
    pub mode: Option<u32>,
}

/// A change made ready: its folder held open, its text on the disk under a draft's name.
struct Staged<'a> {
    place: &'a Place,
    name: &'a OsStr,
    folder: BorrowedFd<'a>,
    expected: Option<FileStamp>,
    draft: Option<(Draft<'a>, File)>,
}

/// Writes the drafts to the disk before any is renamed, else a crash could leave empty files in the place of the old texts:
/// one by one, or where there are many, all that is on their file systems.
fn sync(staged: &[Staged<'_>]) -> Result<(), WorkspaceError> {
    let drafts = staged
        .iter()
        .filter_map(|one| Some((one.place, &one.draft.as_ref()?.1)));
    let mut synced = HashSet::new();
    for (place, file) in drafts {
        let told = |e: io::Error| WorkspaceError::io("write", &place.shown(), e);
        if staged.len() <= MOST_SYNCED {
            file.sync_data().map_err(told)?;
        } else if synced.insert(file.metadata().map_err(told)?.dev()) {
            rustix::fs::syncfs(file).map_err(|e| told(e.into()))?;
        }
    }
    Ok(())
}

/// A change made, and what undoes it: the old file under a name of its own, or nothing where none was.
struct Made<'a> {
    place: &'a Place,
    name: &'a OsStr,
    folder: BorrowedFd<'a>,
    old: Option<Draft<'a>>,
}

impl Workspace {
    /// Makes all changes or none. Each file is replaced as [`write`](Self::write) does it; when a change fails, those
    /// before it are put back and folders made for them are removed. The state of each file afterwards, in order;
    /// `None` for one that was deleted. The places must be of different files.
    pub(crate) fn change(
        &self,
        changes: &[Change<'_>],
    ) -> Result<Vec<Option<FileStamp>>, WorkspaceError> {
        let mut made = Vec::new();
        let done = self.change_noting(changes, &mut made);
        if done.is_err() {
            // The innermost first; one that somebody else uses meanwhile stays.
            for folder in made.iter().rev() {
                self.remove_folder(folder);
            }
        }
        done
    }

    fn change_noting(
        &self,
        changes: &[Change<'_>],
        made: &mut Vec<PathBuf>,
    ) -> Result<Vec<Option<FileStamp>>, WorkspaceError> {
        let mut folders = Vec::with_capacity(changes.len());
        for change in changes {
            folders.push(self.folder_of(change, made)?);
        }
        let mut staged = Vec::with_capacity(changes.len());
        for (change, folder) in changes.iter().zip(&folders) {
            staged.push(self.stage(change, folder)?);
        }
        sync(&staged)?;
        // Before anything is touched: most of what could go wrong is seen here.
        for one in &staged {
            self.unchanged(one)?;
        }
        let mut done: Vec<Made<'_>> = Vec::with_capacity(staged.len());
        for one in &mut staged {
            match self.make(one) {
                Ok(made) => done.push(made),
                Err(cause) => return Err(put_back(done, cause)),
            }
        }
        let stamps = staged.iter().map(|one| {
            let (_, file) = one.draft.as_ref()?;
            Some(rustix::fs::fstat(file).map(|stat| FileStamp::of(&stat)))
        });
        let stamps = stamps.map(Option::transpose).collect::<Result<_, _>>();
        match stamps {
            Ok(stamps) => Ok(stamps),
            Err(e) => {
                let cause = WorkspaceError::from_errno("look at", Path::new(""), e);
                Err(put_back(done, cause))
            }
        }
    }

    /// Refuses what may not be changed, then opens the folder that holds it.
    fn folder_of(
        &self,
        change: &Change<'_>,
        made: &mut Vec<PathBuf>,
    ) -> Result<OwnedFd, WorkspaceError> {
        let place = change.place;
        self.may_change(place)?;
        match (place.kind(), change.expected) {
            (Some(_), Some(_)) => place.need(Kind::File)?,
            (Some(_), None) => return Err(WorkspaceError::Exists(place.shown())),
            (None, Some(_)) => return Err(WorkspaceError::Changed(place.shown())),
            (None, None) if change.content.is_none() => return Err(place.not_found()),
            (None, None) => {}
        }
        self.folder_noting(place, made)
    }

    fn stage<'a>(
        &self,
        change: &Change<'a>,
        folder: &'a OwnedFd,
    ) -> Result<Staged<'a>, WorkspaceError> {
        let place = change.place;
        let told = |e: Errno| WorkspaceError::from_errno("write", Path::new(&place.shown()), e);
        let name = place.real().file_name().ok_or(WorkspaceError::Root)?;
        let mut draft = None;
        if let Some(content) = change.content {
            let old = match change.mode {
                // Who sets the mode may replace a file that is read-only by its mode.
                Some(_) => self.stat(place.real()).ok(),
                None => self.old_file(place)?.map(|(_, stat)| stat),
            };
            let like = match (&old, change.like) {
                (Some(stat), _) => Some(*stat),
                (None, Some(like)) => Some(self.stat(like.real()).map_err(told)?),
                (None, None) => None,
            };
            let (new, fd) = new_draft(folder.as_fd()).map_err(told)?;
            let mut file = File::from(fd);
            fill(&mut file, None, content, WriteMode::Overwrite)
                .map_err(|e| WorkspaceError::io("write", &place.shown(), e))?;
            if let Some(stat) = &like {
                keep_owner_and_mode(&file, stat).map_err(told)?;
            }
            if let Some(mode) = change.mode {
                let mode = Mode::from_raw_mode(mode & 0o777);
                rustix::fs::fchmod(&file, mode).map_err(told)?;
            }
            draft = Some((new, file));
        }
        Ok(Staged {
            place,
            name,
            folder: folder.as_fd(),
            expected: change.expected,
            draft,
        })
    }

    /// Fails when the file is no longer as it was expected.
    fn unchanged(&self, staged: &Staged<'_>) -> Result<(), WorkspaceError> {
        self.still(staged.place, staged.expected.as_ref())
    }

    /// Fails when what is at a place is no longer as expected; without an expected state nothing may be there.
    pub(super) fn still(
        &self,
        place: &Place,
        expected: Option<&FileStamp>,
    ) -> Result<(), WorkspaceError> {
        match (self.stamp(place)?, expected) {
            (None, None) => Ok(()),
            (Some(now), Some(expected)) if expected.is_still(&now) => Ok(()),
            _ => Err(WorkspaceError::Changed(place.shown())),
        }
    }

    fn make<'a>(&self, staged: &mut Staged<'a>) -> Result<Made<'a>, WorkspaceError> {
        self.unchanged(staged)?;
        let (place, name, folder) = (staged.place, staged.name, staged.folder);
        let told = |e: Errno| match e {
            Errno::EXIST | Errno::ISDIR => WorkspaceError::Changed(place.shown()),
            other => WorkspaceError::from_errno("change", Path::new(&place.shown()), other),
        };
        let old = match (&staged.expected, &mut staged.draft) {
            (None, None) => None,
            (None, Some((draft, _))) => {
                put_in_place(draft, name, false).map_err(told)?;
                draft.done = true;
                None
            }
            (Some(_), None) => Some(set_aside(folder, name).map_err(told)?),
            (Some(_), Some((draft, _))) => {
                let old = self.second_name(place, folder, name)?;
                put_in_place(draft, name, true).map_err(told)?;
                draft.done = true;
                Some(old)
            }
        };
        Ok(Made {
            place,
            name,
            folder,
            old,
        })
    }

    /// The file at a place under a draft's name, too: by a hard link, or a copy where there are none.
    fn second_name<'a>(
        &self,
        place: &Place,
        folder: BorrowedFd<'a>,
        name: &OsStr,
    ) -> Result<Draft<'a>, WorkspaceError> {
        let told = |e: Errno| WorkspaceError::from_errno("keep", Path::new(&place.shown()), e);
        let second = draft_name();
        if rustix::fs::linkat(folder, name, folder, &second, AtFlags::empty()).is_ok() {
            return Ok(Draft {
                folder,
                name: second,
                done: false,
            });
        }
        let gone = || WorkspaceError::Changed(place.shown());
        let (old, stat) = self.old_file(place)?.ok_or_else(gone)?;
        let (draft, fd) = new_draft(folder).map_err(told)?;
        let mut copy = File::from(fd);
        fill(&mut copy, Some(&old), &[], WriteMode::Append)
            .and_then(|()| copy.sync_data())
            .map_err(|e| WorkspaceError::io("keep", &place.shown(), e))?;
        keep_owner_and_mode(&copy, &stat).map_err(told)?;
        Ok(draft)
    }

    fn remove_folder(&self, real: &Path) {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return;
        };
        if let Ok(parent) = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY) {
            let _ = rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Takes a file out of its place; it goes for good when the draft is dropped.
fn set_aside<'a>(folder: BorrowedFd<'a>, name: &OsStr) -> rustix::io::Result<Draft<'a>> {
    let aside = draft_name();
    let flags = RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(folder, name, folder, &aside, flags) {
        // Some network file systems know no flags.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::renameat(folder, name, folder, &aside)?;
        }
        other => other?,
    }
    Ok(Draft {
        folder,
        name: aside,
        done: false,
    })
}

/// Undoes changes, the last one first. What cannot be undone keeps its old text beside it, and the error says so.
fn put_back(done: Vec<Made<'_>>, cause: WorkspaceError) -> WorkspaceError {
    let mut error = cause;
    for made in done.into_iter().rev() {
        let real = made.place.real();
        let (undone, before) = if let Some(mut old) = made.old {
            let undone = rustix::fs::renameat(made.folder, &old.name, made.folder, made.name);
            // Also where it failed: then it is the only one left.
            old.done = true;
            let kept = real.with_file_name(&old.name);
            (undone, format!("its old text is in {:?}", kept.display()))
        } else {
            let undone = rustix::fs::unlinkat(made.folder, made.name, AtFlags::empty());
            (undone, "it was not there before".to_owned())
        };
        if let Err(e) = undone {
            error = WorkspaceError::NotPutBack {
                path: made.place.shown(),
                cause: Box::new(error),
                source: e.into(),
                before,
            };
        }
    }
    error
}
