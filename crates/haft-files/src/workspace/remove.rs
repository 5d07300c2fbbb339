//! Deleting and moving: files, links and whole trees, through the descriptors of their folders.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::workspace::{
    EntryKind, FileStamp, GIT, ResolvedPath, Workspace, WorkspaceError, display_path,
};

/// Maximum depth of a tree that is deleted: each level holds a descriptor open.
const MAX_DEPTH: usize = 256;

#[derive(Debug, Clone, Copy)]
pub(crate) struct FileRemoval<'a> {
    /// The real path below the root.
    pub(crate) path: &'a Path,
    /// The state that it must be in.
    pub(crate) expected: FileStamp,
}

impl Workspace {
    /// Deletes the file, link or empty folder at a place that [`entry`](Self::entry) found; with `recursive`, the
    /// whole tree. Does not touch a tree that contains a `.git` entry or haft's own files.
    pub(crate) fn remove(
        &self,
        place: &ResolvedPath,
        recursive: bool,
    ) -> Result<(), WorkspaceError> {
        self.may_move(place)?;
        let to_error =
            |e: Errno| WorkspaceError::from_errno("delete", Path::new(&place.display()), e);
        let (folder, name) = self.holder(place)?;
        if place.kind() != Some(EntryKind::Directory) {
            return rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(to_error);
        }
        if recursive {
            let tree = open_tree(folder.as_fd(), name).map_err(to_error)?;
            each_below(place, tree, 0, &|_, _, _| Ok(()))?;
            let tree = open_tree(folder.as_fd(), name).map_err(to_error)?;
            each_below(place, tree, 0, &|folder, name, kind| {
                let flags = match kind {
                    EntryKind::Directory => AtFlags::REMOVEDIR,
                    _ => AtFlags::empty(),
                };
                rustix::fs::unlinkat(folder, name, flags)
            })?;
        }
        rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR).map_err(to_error)
    }

    /// Deletes files one by one, each only in the expected state; skips those already deleted. Sort the files: each folder is then
    /// opened once for all of its files.
    ///
    /// # Errors
    /// A file is in a different state or cannot be deleted. Those before it are deleted.
    pub(crate) fn remove_files(&self, files: &[FileRemoval<'_>]) -> Result<(), WorkspaceError> {
        let mut open: Option<(&Path, OwnedFd)> = None;
        for FileRemoval { path, expected } in files {
            self.may_change_path(path)?;
            let to_error = |e: Errno| WorkspaceError::from_errno("delete", path, e);
            let name = path.file_name().ok_or(WorkspaceError::Root)?;
            let parent = path.parent().unwrap_or(Path::new(""));
            if open.as_ref().is_none_or(|(at, _)| *at != parent) {
                let folder = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?;
                open = Some((parent, folder));
            }
            let Some((_, folder)) = &open else { continue };
            match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if expected.is_still(&FileStamp::of(&stat)) => {
                    rustix::fs::unlinkat(folder, name, AtFlags::empty()).map_err(to_error)?;
                }
                Ok(_) => return Err(WorkspaceError::Changed(display_path(path))),
                Err(Errno::NOENT) => {}
                Err(e) => return Err(to_error(e)),
            }
        }
        Ok(())
    }

    /// Moves what [`entry`](Self::entry) found at `from` to `to`, and creates the parents. With `overwrite` it may replace a file or
    /// link, but never a folder.
    pub(crate) fn rename(
        &self,
        from: &ResolvedPath,
        to: &ResolvedPath,
        overwrite: bool,
    ) -> Result<(), WorkspaceError> {
        self.may_move(from)?;
        self.may_change(to)?;
        if to.real() != from.real() && to.real().starts_with(from.real()) {
            return Err(WorkspaceError::IntoItself(from.display()));
        }
        let replace = match to.kind() {
            Some(EntryKind::File | EntryKind::Link) if overwrite => true,
            Some(_) => return Err(WorkspaceError::Exists(to.display())),
            None => false,
        };
        let to_error = |e: Errno| WorkspaceError::from_errno("move", Path::new(&from.display()), e);
        let (source, old) = self.holder(from)?;
        if from.kind() == Some(EntryKind::Directory) {
            let tree = open_tree(source.as_fd(), old).map_err(to_error)?;
            each_below(from, tree, 0, &|_, _, _| Ok(()))?;
        }
        let target = self.folder_for(to)?;
        let new = to.real().file_name().ok_or(WorkspaceError::Root)?;
        let flags = if replace {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        rustix::fs::renameat_with(&source, old, &target, new, flags).map_err(|e| match e {
            Errno::EXIST => WorkspaceError::Exists(to.display()),
            Errno::XDEV => WorkspaceError::Io {
                verb: "move",
                path: from.display(),
                source: e.into(),
            },
            other => to_error(other),
        })
    }

    /// Creates the folder at an empty place, and its parents.
    pub(crate) fn make_folder(&self, place: &ResolvedPath) -> Result<(), WorkspaceError> {
        self.make_new(place, &|folder, name| {
            // Only the user has access until its mode is set.
            rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o700))
        })
    }

    /// Sets the mode of the folder at a place, without set-id bits; without a mode, the one of a new folder.
    pub(crate) fn set_mode(
        &self,
        place: &ResolvedPath,
        mode: Option<u32>,
    ) -> Result<(), WorkspaceError> {
        let to_error =
            |e: Errno| WorkspaceError::from_errno("change", Path::new(&place.display()), e);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = self.beneath(place.real(), flags)?;
        let mode = mode.map_or(0o700, |mode| mode & 0o1777);
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode)).map_err(to_error)
    }

    /// Sets all mode bits of a folder.
    pub(crate) fn set_bits(&self, real: &Path, mode: u32) -> Result<(), WorkspaceError> {
        let folder = self.beneath(real, OFlags::RDONLY | OFlags::DIRECTORY)?;
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode & 0o7777))
            .map_err(|e| WorkspaceError::from_errno("change", real, e))
    }

    /// Creates a link at an empty place, and its parents.
    pub(crate) fn make_link(
        &self,
        place: &ResolvedPath,
        target: &Path,
    ) -> Result<(), WorkspaceError> {
        self.make_new(place, &|folder, name| {
            rustix::fs::symlinkat(target, folder, name)
        })
    }

    fn make_new(
        &self,
        place: &ResolvedPath,
        make: &dyn Fn(BorrowedFd<'_>, &OsStr) -> rustix::io::Result<()>,
    ) -> Result<(), WorkspaceError> {
        self.may_change(place)?;
        let name = place.real().file_name().ok_or(WorkspaceError::Root)?;
        let folder = self.folder_for(place)?;
        make(folder.as_fd(), name)
            .map_err(|e| WorkspaceError::from_errno("make", Path::new(&place.display()), e))
    }

    fn may_move(&self, place: &ResolvedPath) -> Result<(), WorkspaceError> {
        self.may_change(place)?;
        if self.holds_own(place.real()) {
            return Err(WorkspaceError::Own(place.display()));
        }
        if place.kind().is_none() {
            return Err(place.not_found());
        }
        Ok(())
    }

    fn holder<'a>(&self, place: &'a ResolvedPath) -> Result<(OwnedFd, &'a OsStr), WorkspaceError> {
        let real = place.real();
        let name = real.file_name().ok_or(WorkspaceError::Root)?;
        let parent = real.parent().unwrap_or(Path::new(""));
        let folder = self.beneath(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((folder, name))
    }
}

/// Visits everything below a folder, children first; fails at a `.git` entry.
fn each_below(
    place: &ResolvedPath,
    tree: Dir,
    depth: usize,
    visit: &dyn Fn(BorrowedFd<'_>, &OsStr, EntryKind) -> rustix::io::Result<()>,
) -> Result<(), WorkspaceError> {
    let to_error = |e: Errno| WorkspaceError::from_errno("delete", Path::new(&place.display()), e);
    if depth == MAX_DEPTH {
        return Err(WorkspaceError::Malformed(
            place.display(),
            "its folders are nested more than 256 deep",
        ));
    }
    let mut tree = tree;
    while let Some(entry) = tree.read() {
        let entry = entry.map_err(to_error)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if name.eq_ignore_ascii_case(GIT) {
            return Err(WorkspaceError::Git(place.display()));
        }
        let folder = tree.fd().map_err(to_error)?;
        let kind = kind_in(folder, name, entry.file_type()).map_err(to_error)?;
        if kind == EntryKind::Directory {
            let below = open_tree(folder, name).map_err(to_error)?;
            each_below(place, below, depth + 1, visit)?;
        }
        let folder = tree.fd().map_err(to_error)?;
        visit(folder, name, kind).map_err(to_error)?;
    }
    Ok(())
}

fn kind_in(folder: BorrowedFd<'_>, name: &OsStr, known: FileType) -> rustix::io::Result<EntryKind> {
    if known != FileType::Unknown {
        return Ok(EntryKind::of(known));
    }
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(EntryKind::of(FileType::from_raw_mode(stat.st_mode)))
}

fn open_tree(folder: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Dir::new(rustix::fs::openat(folder, name, flags, Mode::empty())?)
}
