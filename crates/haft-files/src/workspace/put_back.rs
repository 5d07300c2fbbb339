//! Reverting changes made before one that failed. Files that another program put in a place since then remain.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use crate::workspace::write::{TemporaryFile, draft_name, put_in_place};
use crate::workspace::{FileStamp, ResolvedPath, WorkspaceError};

/// A change that was made.
pub(super) struct CompletedChange<'a> {
    pub(super) place: &'a ResolvedPath,
    pub(super) name: &'a OsStr,
    pub(super) folder: BorrowedFd<'a>,
    /// The old file under a draft's name; `None` if nothing was there.
    pub(super) old: Option<TemporaryFile<'a>>,
    /// The state of the new file; `None` if it was deleted.
    pub(super) new: Option<FileStamp>,
}

/// Reverts changes, the last one first. If one cannot be reverted, its old content remains beside it, and the error says so.
pub(super) fn put_back(done: Vec<CompletedChange<'_>>, cause: WorkspaceError) -> WorkspaceError {
    let mut error = cause;
    for mut made in done.into_iter().rev() {
        let Err(source) = made.put_back() else {
            continue;
        };
        let before = match &mut made.old {
            Some(old) => {
                // It is the only copy left.
                old.done = true;
                let remaining = made.place.real().with_file_name(&old.name);
                format!("its old text is in {:?}", remaining.display())
            }
            None => "it was not there before".to_owned(),
        };
        error = WorkspaceError::NotPutBack {
            path: made.place.display(),
            cause: Box::new(error),
            source,
            before,
        };
    }
    error
}

impl CompletedChange<'_> {
    fn put_back(&mut self) -> io::Result<()> {
        match (&mut self.old, &self.new) {
            (Some(old), Some(new)) => swap_back(old, self.name, new),
            (Some(old), None) => {
                put_in_place(old, self.name, false)?;
                old.done = true;
                Ok(())
            }
            (None, Some(new)) => remove(self.folder, self.name, new),
            (None, None) => Ok(()),
        }
    }
}

/// Puts the old file in place of the new one, which is removed.
fn swap_back(old: &mut TemporaryFile<'_>, name: &OsStr, new: &FileStamp) -> io::Result<()> {
    let folder = old.folder;
    let swap = || rustix::fs::renameat_with(folder, &old.name, folder, name, RenameFlags::EXCHANGE);
    match swap() {
        Ok(()) if is(folder, OsStr::new(&old.name), new) => return Ok(()),
        Ok(()) => {
            swap()?;
            return Err(changed());
        }
        // Some file systems cannot swap.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        Err(other) => return Err(other.into()),
    }
    if !is(folder, name, new) {
        return Err(changed());
    }
    put_in_place(old, name, true)?;
    old.done = true;
    Ok(())
}

/// Removes a file that was created.
fn remove(folder: BorrowedFd<'_>, name: &OsStr, new: &FileStamp) -> io::Result<()> {
    let aside = TemporaryFile {
        folder,
        name: draft_name(),
        done: true,
    };
    rustix::fs::renameat(folder, name, folder, &aside.name)?;
    if is(folder, OsStr::new(&aside.name), new) {
        return Ok(rustix::fs::unlinkat(folder, &aside.name, AtFlags::empty())?);
    }
    put_in_place(&aside, name, false)?;
    Err(changed())
}

/// Whether an entry is a file in this state.
pub(super) fn is(folder: BorrowedFd<'_>, name: &OsStr, state: &FileStamp) -> bool {
    let now = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    now.is_ok_and(|now| state.is_same_content(&FileStamp::of(&now)))
}

fn changed() -> io::Error {
    io::Error::other("another program changed it since")
}
