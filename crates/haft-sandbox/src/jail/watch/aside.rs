//! Renames what appeared under a guarded name.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use super::super::root::below;
use crate::guard_event::GuardEvent;

/// Maximum number of names to try.
const MOST: u32 = 10_000;

/// Which of the meaningless names to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewName {
    /// The first free one.
    First,
    /// One that the command cannot know beforehand: git would adopt a repository whose name the command announces.
    Unforeseen,
}

impl NewName {
    /// Returns the first number to try.
    fn first(self) -> u32 {
        match self {
            Self::First => 1,
            Self::Unforeseen => {
                let random = RandomState::new().build_hasher().finish();
                let below = (1 << 26) - u64::from(MOST);
                // Reports have room for 27 bits.
                u32::try_from(random % below).unwrap_or_default() + (1 << 26)
            }
        }
    }
}

/// Renames it to a meaningless name in the same folder; returns `None` if it no longer exists or is not the command's. `path` is where
/// it is, `appeared` where it was at first.
pub(super) fn move_aside(
    workspace: BorrowedFd<'_>,
    path: &Path,
    appeared: &Path,
    new: NewName,
) -> io::Result<Option<GuardEvent>> {
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
    let first = new.first();
    for number in first..first + MOST {
        let to = GuardEvent::aside(appeared, number);
        let new = to.file_name().unwrap_or_default();
        match renameat_with(folder, name, folder, new, RenameFlags::NOREPLACE) {
            Ok(()) => {
                let path = appeared.to_owned();
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
