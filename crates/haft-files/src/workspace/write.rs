//! Writing a file completely or not at all: a new file beside it, then a rename (path rule 6).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::workspace::{EntryKind, FileStamp, ResolvedPath, Workspace, WorkspaceError};

/// What to do with an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Replace its content.
    Overwrite,
    /// Keep its content and append to it.
    Append,
    /// Fail: only a new file is written.
    Create,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteReceipt {
    /// Whether no file was there before.
    pub created: bool,
    /// The new file's state.
    pub stamp: FileStamp,
}

/// A temporary name for a new file; removed on drop unless it was renamed.
pub(super) struct TemporaryFile<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: String,
    pub(super) done: bool,
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.done {
            // If the draft cannot be removed, its name shows what it is.
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

impl Workspace {
    /// Writes a file at a place and creates its parents. Whatever goes wrong, the old content remains until the new one is completely
    /// on disk; mode and owner do not change. For a link, writes its target; another name of the same file (a hard link) keeps the
    /// old content. With `expected`, a file in a different state is not changed.
    ///
    /// # Errors
    /// The place is protected or no file, its state is not the expected one, or the file system fails.
    pub fn write(
        &self,
        place: &ResolvedPath,
        content: &[u8],
        mode: WriteMode,
        expected: Option<&FileStamp>,
    ) -> Result<WriteReceipt, WorkspaceError> {
        self.may_change(place)?;
        if place.kind().is_some() {
            place.need(EntryKind::File)?;
            if mode == WriteMode::Create {
                return Err(WorkspaceError::Exists(place.display()));
            }
        }
        let name = place.real().file_name().ok_or(WorkspaceError::Root)?;
        let folder = self.folder_for(place)?;
        let old = self.old_file(place)?;
        let to_error =
            |e: Errno| WorkspaceError::from_errno("write", Path::new(&place.display()), e);
        let (mut draft, fd) = new_draft(folder.as_fd()).map_err(to_error)?;
        let mut file = File::from(fd);
        let filled = fill(&mut file, old.as_ref().map(|old| &old.0), content, mode);
        // Before the rename: otherwise a crash could leave an empty file in place of the old content.
        filled
            .and_then(|()| file.sync_data())
            .map_err(|e| WorkspaceError::io("write", &place.display(), e))?;
        if let Some((_, stat)) = &old {
            keep_owner_and_mode(&file, stat).map_err(to_error)?;
        }
        let stamp = self.stamp(place)?;
        let same = |expected: &FileStamp| stamp.as_ref() == Some(expected);
        if !expected.is_none_or(same) {
            return Err(WorkspaceError::Changed(place.display()));
        }
        put_in_place(&draft, name, old.is_some()).map_err(|e| match e {
            Errno::EXIST | Errno::ISDIR => WorkspaceError::Changed(place.display()),
            other => to_error(other),
        })?;
        draft.done = true;
        let stat = rustix::fs::fstat(&file).map_err(to_error)?;
        Ok(WriteReceipt {
            created: old.is_none(),
            stamp: FileStamp::of(&stat),
        })
    }

    /// Opens the folder that contains a place, and creates missing parents.
    pub(super) fn folder_for(&self, place: &ResolvedPath) -> Result<OwnedFd, WorkspaceError> {
        self.folder_recording(place, &mut Vec::new())
    }

    /// Opens the folder that contains a place, creates missing parents, and adds those to `made`, outermost first.
    pub(super) fn folder_recording(
        &self,
        place: &ResolvedPath,
        made: &mut Vec<PathBuf>,
    ) -> Result<OwnedFd, WorkspaceError> {
        let parent = place.real().parent().ok_or(WorkspaceError::Root)?;
        let absent = place.missing().saturating_sub(1);
        let present = parent.ancestors().nth(absent).unwrap_or(Path::new(""));
        let mut fd = self.beneath(present, OFlags::PATH | OFlags::DIRECTORY)?;
        let to_make = parent.strip_prefix(present).unwrap_or(Path::new(""));
        let mut at = present.to_path_buf();
        for name in to_make {
            let to_error = |e| WorkspaceError::from_errno("make the folders of", place.real(), e);
            let new;
            (fd, new) = make_folder(&fd, name).map_err(to_error)?;
            at.push(name);
            if new {
                made.push(at.clone());
            }
        }
        Ok(fd)
    }

    /// Opens the file to be replaced for reading, if the system would let this user write to it.
    pub(super) fn old_file(
        &self,
        place: &ResolvedPath,
    ) -> Result<Option<(File, Stat)>, WorkspaceError> {
        let to_error =
            |e: Errno| WorkspaceError::from_errno("write", Path::new(&place.display()), e);
        let base = OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open_beneath(place.real(), base | OFlags::WRONLY) {
            // A running program cannot be written to, but it can be replaced.
            Ok(_) | Err(Errno::TXTBSY) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(to_error(e)),
        }
        let fd = match self.open_beneath(place.real(), base | OFlags::RDONLY) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(to_error(e)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(to_error)?;
        match EntryKind::of(rustix::fs::FileType::from_raw_mode(stat.st_mode)) {
            EntryKind::File => Ok(Some((File::from(fd), stat))),
            kind => Err(WorkspaceError::NotAFile {
                path: place.display(),
                kind,
            }),
        }
    }
}

/// Returns a unique name, from the process id and a counter.
pub(crate) fn draft_name() -> String {
    static NEXT_DRAFT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT_DRAFT.fetch_add(1, Ordering::Relaxed);
    format!(".haft-{}-{number}.tmp", std::process::id())
}

pub(super) fn new_draft(
    folder: BorrowedFd<'_>,
) -> rustix::io::Result<(TemporaryFile<'_>, OwnedFd)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let name = draft_name();
        match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => {
                let draft = TemporaryFile {
                    folder,
                    name,
                    done: false,
                };
                return Ok((draft, fd));
            }
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e),
        }
    }
}

pub(super) fn fill(
    file: &mut File,
    old: Option<&File>,
    content: &[u8],
    mode: WriteMode,
) -> io::Result<()> {
    if let (WriteMode::Append, Some(old)) = (mode, old) {
        io::copy(&mut &*old, file)?;
    }
    file.write_all(content)
}

pub(super) fn keep_owner_and_mode(file: &File, old: &Stat) -> rustix::io::Result<()> {
    keep_owner(file, old, old.st_mode)
}

/// Gives a draft the owner of the old file, and these permission bits.
pub(super) fn keep_owner(file: &File, old: &Stat, mode: u32) -> rustix::io::Result<()> {
    let new = rustix::fs::fstat(file)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let (user, group) = (
            rustix::fs::Uid::from_raw(old.st_uid),
            rustix::fs::Gid::from_raw(old.st_gid),
        );
        // Only a privileged user may do this; otherwise the current user owns the new file, as with any editor.
        let _ = rustix::fs::fchown(file, Some(user), Some(group));
    }
    // Never keep set-id bits: the content no longer comes from the file's owner.
    let mode = mode & 0o777;
    if new.st_mode & 0o7777 == mode {
        return Ok(());
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
}

/// Renames the draft to its final name. Does not replace a file that appeared where there was none.
pub(super) fn put_in_place(
    draft: &TemporaryFile<'_>,
    name: &OsStr,
    replaces: bool,
) -> rustix::io::Result<()> {
    if replaces {
        return rustix::fs::renameat(draft.folder, &draft.name, draft.folder, name);
    }
    let flags = RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(draft.folder, &draft.name, draft.folder, name, flags) {
        // Some network file systems support no flags.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(
                draft.folder,
                &draft.name,
                draft.folder,
                name,
                AtFlags::empty(),
            )?;
            rustix::fs::unlinkat(draft.folder, &draft.name, AtFlags::empty())
        }
        other => other,
    }
}

/// Opens a folder, creating it if missing; returns whether it is new.
fn make_folder(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<(OwnedFd, bool)> {
    let new = match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(e),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    Ok((fd, new))
}
