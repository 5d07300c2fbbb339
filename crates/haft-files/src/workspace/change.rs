//! Atomic changes of several files: all staged beside their places, then renamed one by one, or all reverted.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::workspace::put_back::{CompletedChange, is, put_back};
use crate::workspace::write::{
    TemporaryFile, draft_name, fill, keep_owner, keep_owner_and_mode, new_draft, put_in_place,
};
use crate::workspace::{EntryKind, FileStamp, ResolvedPath, Workspace, WorkspaceError, WriteMode};

/// Maximum number of files synced one by one.
const MAX_SYNCED: usize = 32;

/// One of several changes made together.
#[derive(Debug, Clone, Copy)]
pub struct FileUpdate<'a> {
    /// The file to change.
    pub place: &'a ResolvedPath,
    /// The new content; `None` deletes the file.
    pub content: Option<&'a [u8]>,
    /// The state the file must be in; `None` if nothing may be there.
    pub expected: Option<FileStamp>,
    /// For a new file: another file whose mode and owner it gets.
    pub like: Option<&'a ResolvedPath>,
    /// The mode it gets, replacing its current one.
    pub mode: Option<u32>,
}

/// A prepared change: its folder is open, its content on disk under a draft's name.
struct StagedUpdate<'a> {
    place: &'a ResolvedPath,
    name: &'a OsStr,
    folder: BorrowedFd<'a>,
    expected: Option<FileStamp>,
    draft: Option<StagedFile<'a>>,
}

/// A draft with its content.
struct StagedFile<'a> {
    draft: TemporaryFile<'a>,
    stamp: FileStamp,
    /// Open only if the draft is synced by itself, or to sync all others on its file system.
    file: Option<File>,
}

impl StagedUpdate<'_> {
    /// Returns the state of the new file in its place; `None` if the old one was deleted.
    fn stamp_now(&self) -> rustix::io::Result<Option<FileStamp>> {
        let Some(StagedFile { stamp, file, .. }) = &self.draft else {
            return Ok(None);
        };
        if let Some(file) = file {
            return Ok(Some(FileStamp::of(&rustix::fs::fstat(file)?)));
        }
        let now = rustix::fs::statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW);
        let now = now.ok().map(|stat| FileStamp::of(&stat));
        // A file that another program put there since then is not the one written.
        Ok(now
            .filter(|now| stamp.is_same_content(now))
            .or(Some(*stamp)))
    }
}

/// Syncs the drafts to disk before any is renamed, otherwise a crash could leave empty files in place of the old ones:
/// one by one, or for many files, their whole file systems.
fn sync(staged: &[StagedUpdate<'_>]) -> Result<(), WorkspaceError> {
    for one in staged {
        let Some(file) = one.draft.as_ref().and_then(|draft| draft.file.as_ref()) else {
            continue;
        };
        let synced = if staged.len() <= MAX_SYNCED {
            file.sync_data()
        } else {
            rustix::fs::syncfs(file).map_err(Into::into)
        };
        synced.map_err(|e| WorkspaceError::io("write", &one.place.display(), e))?;
    }
    Ok(())
}

impl Workspace {
    /// Makes all changes or none. Replaces each file as [`write`](Self::write) does; if a change fails, reverts those before it and
    /// removes the folders created for them. Returns the new state of each file, in order; `None` for a deleted one. The places
    /// must be different files.
    pub(crate) fn change(
        &self,
        changes: &[FileUpdate<'_>],
    ) -> Result<Vec<Option<FileStamp>>, WorkspaceError> {
        let mut made = Vec::new();
        let done = self.change_recording(changes, &mut made);
        if done.is_err() {
            // Innermost first; a folder that another program uses by now remains.
            for folder in made.iter().rev() {
                self.remove_folder(folder);
            }
        }
        done
    }

    fn change_recording(
        &self,
        changes: &[FileUpdate<'_>],
        made: &mut Vec<PathBuf>,
    ) -> Result<Vec<Option<FileStamp>>, WorkspaceError> {
        let mut folders: HashMap<&Path, OwnedFd> = HashMap::new();
        for change in changes {
            self.may_make(change)?;
            let folder = folder_of(change.place)?;
            // Open a folder once for all its files.
            if !folders.contains_key(folder) {
                folders.insert(folder, self.folder_recording(change.place, made)?);
            }
        }
        let mut staged = Vec::with_capacity(changes.len());
        let mut file_systems = HashSet::new();
        for change in changes {
            let folder = folders.get(folder_of(change.place)?);
            let mut one = self.stage(change, folder.ok_or(WorkspaceError::Root)?)?;
            if let Some(draft) = &mut one.draft
                && !file_systems.insert(draft.stamp.device)
                && changes.len() > MAX_SYNCED
            {
                draft.file = None;
            }
            staged.push(one);
        }
        sync(&staged)?;
        // Check everything before touching anything: this finds most problems.
        for one in &staged {
            self.check_unchanged(one)?;
        }
        let mut done: Vec<CompletedChange<'_>> = Vec::with_capacity(staged.len());
        for one in &mut staged {
            match self.make(one) {
                Ok(made) => done.push(made),
                Err(cause) => return Err(put_back(done, cause)),
            }
        }
        let stamps = staged.iter().map(StagedUpdate::stamp_now).collect();
        match stamps {
            Ok(stamps) => Ok(stamps),
            Err(e) => {
                let cause = WorkspaceError::from_errno("look at", Path::new(""), e);
                Err(put_back(done, cause))
            }
        }
    }

    /// Refuses changes that are not allowed.
    fn may_make(&self, change: &FileUpdate<'_>) -> Result<(), WorkspaceError> {
        let place = change.place;
        self.may_change(place)?;
        match (place.kind(), change.expected) {
            (Some(_), Some(_)) => place.need(EntryKind::File)?,
            (Some(_), None) => return Err(WorkspaceError::Exists(place.display())),
            (None, Some(_)) => return Err(WorkspaceError::Changed(place.display())),
            (None, None) if change.content.is_none() => return Err(place.not_found()),
            (None, None) => {}
        }
        Ok(())
    }

    fn stage<'a>(
        &self,
        change: &FileUpdate<'a>,
        folder: &'a OwnedFd,
    ) -> Result<StagedUpdate<'a>, WorkspaceError> {
        let place = change.place;
        let to_error =
            |e: Errno| WorkspaceError::from_errno("write", Path::new(&place.display()), e);
        let name = place.real().file_name().ok_or(WorkspaceError::Root)?;
        let mut draft = None;
        if let Some(content) = change.content {
            let old = match change.mode {
                // A caller that sets the mode may replace a file with a read-only mode.
                Some(_) => self.stat(place.real()).ok(),
                None => self.old_file(place)?.map(|(_, stat)| stat),
            };
            let like = match (&old, change.like) {
                (Some(stat), _) => Some(*stat),
                (None, Some(like)) => Some(self.stat(like.real()).map_err(to_error)?),
                (None, None) => None,
            };
            let (new, fd) = new_draft(folder.as_fd()).map_err(to_error)?;
            let mut file = File::from(fd);
            fill(&mut file, None, content, WriteMode::Overwrite)
                .map_err(|e| WorkspaceError::io("write", &place.display(), e))?;
            match (&like, change.mode) {
                (Some(stat), mode) => {
                    let mode = mode.unwrap_or(stat.st_mode);
                    keep_owner(&file, stat, mode).map_err(to_error)?;
                }
                (None, Some(mode)) => {
                    let mode = Mode::from_raw_mode(mode & 0o777);
                    rustix::fs::fchmod(&file, mode).map_err(to_error)?;
                }
                (None, None) => {}
            }
            let stamp = rustix::fs::fstat(&file).map_err(to_error)?;
            draft = Some(StagedFile {
                draft: new,
                stamp: FileStamp::of(&stamp),
                file: Some(file),
            });
        }
        Ok(StagedUpdate {
            place,
            name,
            folder: folder.as_fd(),
            expected: change.expected,
            draft,
        })
    }

    /// Fails if the file is no longer in the expected state.
    fn check_unchanged(&self, staged: &StagedUpdate<'_>) -> Result<(), WorkspaceError> {
        self.still(staged.place, staged.expected.as_ref())
    }

    /// Fails if a place is no longer in the expected state; without an expected state, nothing may be there.
    pub(super) fn still(
        &self,
        place: &ResolvedPath,
        expected: Option<&FileStamp>,
    ) -> Result<(), WorkspaceError> {
        match (self.stamp(place)?, expected) {
            (None, None) => Ok(()),
            (Some(now), Some(expected)) if expected.is_still(&now) => Ok(()),
            _ => Err(WorkspaceError::Changed(place.display())),
        }
    }

    fn make<'a>(
        &self,
        staged: &mut StagedUpdate<'a>,
    ) -> Result<CompletedChange<'a>, WorkspaceError> {
        self.check_unchanged(staged)?;
        let (place, name, folder) = (staged.place, staged.name, staged.folder);
        let to_error = |e: Errno| match e {
            Errno::EXIST | Errno::ISDIR => WorkspaceError::Changed(place.display()),
            other => WorkspaceError::from_errno("change", Path::new(&place.display()), other),
        };
        let old = match (&staged.expected, &mut staged.draft) {
            (None, None) => None,
            (None, Some(StagedFile { draft, .. })) => {
                put_in_place(draft, name, false).map_err(to_error)?;
                draft.done = true;
                None
            }
            (Some(expected), None) => {
                let old = set_aside(folder, name).map_err(to_error)?;
                if !is(folder, OsStr::new(&old.name), expected) {
                    return Err(put_back_set_aside(old, place, name));
                }
                Some(old)
            }
            (Some(expected), Some(StagedFile { draft, .. })) => {
                let mut old = swap(draft, place, name, expected)?;
                if old.is_none() {
                    old = Some(self.link_draft(place, folder, name)?);
                    put_in_place(draft, name, true).map_err(to_error)?;
                    draft.done = true;
                }
                old
            }
        };
        Ok(CompletedChange {
            place,
            name,
            folder,
            old,
            new: staged.draft.as_ref().map(|draft| draft.stamp),
        })
    }

    /// Gives the file at a place a second name, that of a draft: by a hard link, or a copy if links are not supported.
    fn link_draft<'a>(
        &self,
        place: &ResolvedPath,
        folder: BorrowedFd<'a>,
        name: &OsStr,
    ) -> Result<TemporaryFile<'a>, WorkspaceError> {
        let to_error =
            |e: Errno| WorkspaceError::from_errno("keep", Path::new(&place.display()), e);
        let second = draft_name();
        if rustix::fs::linkat(folder, name, folder, &second, AtFlags::empty()).is_ok() {
            return Ok(TemporaryFile {
                folder,
                name: second,
                done: false,
            });
        }
        let changed = || WorkspaceError::Changed(place.display());
        let (old, stat) = self.old_file(place)?.ok_or_else(changed)?;
        let (draft, fd) = new_draft(folder).map_err(to_error)?;
        let mut copy = File::from(fd);
        fill(&mut copy, Some(&old), &[], WriteMode::Append)
            .and_then(|()| copy.sync_data())
            .map_err(|e| WorkspaceError::io("keep", &place.display(), e))?;
        keep_owner_and_mode(&copy, &stat).map_err(to_error)?;
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

/// Returns the folder that contains a place.
fn folder_of(place: &ResolvedPath) -> Result<&Path, WorkspaceError> {
    place.real().parent().ok_or(WorkspaceError::Root)
}

/// Atomically swaps a draft and the file at its place, which then has the draft's name. Returns `None` and does nothing
/// if the file system does not support this.
pub(super) fn swap<'a>(
    draft: &mut TemporaryFile<'a>,
    place: &ResolvedPath,
    name: &OsStr,
    expected: &FileStamp,
) -> Result<Option<TemporaryFile<'a>>, WorkspaceError> {
    let folder = draft.folder;
    let swapped =
        || rustix::fs::renameat_with(folder, &draft.name, folder, name, RenameFlags::EXCHANGE);
    // The fallback without a swap reports any other problem, too.
    if swapped().is_err() {
        return Ok(None);
    }
    if is(folder, OsStr::new(&draft.name), expected) {
        draft.done = true;
        return Ok(Some(TemporaryFile {
            folder,
            name: draft.name.clone(),
            done: false,
        }));
    }
    // Another program wrote to it or replaced it after it was compared.
    swapped().map_err(|e| {
        draft.done = true;
        let remaining = place.real().with_file_name(&draft.name);
        WorkspaceError::NotPutBack {
            path: place.display(),
            cause: Box::new(WorkspaceError::Changed(place.display())),
            source: e.into(),
            before: format!("what was there is in {:?}", remaining.display()),
        }
    })?;
    Err(WorkspaceError::Changed(place.display()))
}

/// Puts back a file that was set aside and differs from its compared state.
fn put_back_set_aside(
    mut old: TemporaryFile<'_>,
    place: &ResolvedPath,
    name: &OsStr,
) -> WorkspaceError {
    old.done = true;
    let changed = WorkspaceError::Changed(place.display());
    match put_in_place(&old, name, false) {
        Ok(()) => changed,
        Err(e) => WorkspaceError::NotPutBack {
            path: place.display(),
            cause: Box::new(changed),
            source: e.into(),
            before: format!(
                "what was there is in {:?}",
                place.real().with_file_name(&old.name).display()
            ),
        },
    }
}

/// Takes a file out of its place; dropping the draft deletes it for good.
fn set_aside<'a>(folder: BorrowedFd<'a>, name: &OsStr) -> rustix::io::Result<TemporaryFile<'a>> {
    let aside = draft_name();
    let flags = RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(folder, name, folder, &aside, flags) {
        // Some network file systems support no flags.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::renameat(folder, name, folder, &aside)?;
        }
        other => other?,
    }
    Ok(TemporaryFile {
        folder,
        name: aside,
        done: false,
    })
}
