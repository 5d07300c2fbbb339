//! Renames what appeared under a guarded name.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::super::root::below;
use crate::guard_event::GuardEvent;

/// Maximum number of names to try.
const MOST: u32 = 10_000;

/// Renames it to a meaningless name in the same folder; returns `None` if it no longer exists or is not the command's.
pub(super) fn move_aside(workspace: BorrowedFd<'_>, path: &Path) -> io::Result<Option<GuardEvent>> {
    let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
        return Ok(None);
    };
    let opened;
    let folder = if parent == Path::new("") {
        workspace
    } else {
        match below(workspace, parent) {
            Ok(folder) => opened = folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        std::os::fd::AsFd::as_fd(&opened)
    };
    for number in 1..MOST {
        let to = GuardEvent::aside(path, number);
        let new = to.file_name().unwrap_or_default();
        match renameat_with(folder, name, folder, new, RenameFlags::NOREPLACE) {
            Ok(()) => {
                let path = path.to_owned();
                return Ok(Some(GuardEvent::MovedAside { path, to }));
            }
            Err(Errno::EXIST) => {}
            // If this process may not rename there, the command cannot have created anything.
            Err(Errno::NOENT | Errno::ROFS | Errno::ACCESS | Errno::PERM) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
