//! Importing files from outside the root: as a hard link, or as a copy on another file system.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, UTIME_OMIT, Uid,
};
use rustix::io::Errno;

use crate::file_hash::FileHash;
use crate::workspace::write::{TemporaryFile, draft_name, new_draft, put_in_place};
use crate::workspace::{FileStamp, ResolvedPath, Workspace, WorkspaceError, display_path, named};
use haft_types::beneath::open_beneath_on_mount;

/// Number of bytes copied at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Maximum length of the list of extended attribute names, in bytes.
const MAX_NAMES: usize = 64 << 10;
/// Attributes that are never kept: overlayfs marks, access control lists, capabilities.
const STRIPPED_ATTRIBUTES: [&[u8]; 3] = [
    b"user.overlay.",
    b"system.posix_acl_",
    b"security.capability",
];

/// A regular file below a folder outside the workspace.
#[derive(Debug, Clone)]
pub struct OutsideFile {
    /// The folder outside, held open.
    pub(crate) root: Arc<OwnedFd>,
    /// The path below it, without links.
    pub(crate) path: PathBuf,
    /// Its state when it was read.
    pub(crate) stamp: FileStamp,
    /// The SHA-256 of its bytes; `None` for a file over the size limit.
    pub(crate) sha256: Option<FileHash>,
}

impl PartialEq for OutsideFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root) && self.path == other.path
    }
}

impl Eq for OutsideFile {}

/// Opens a real path beneath a folder: no links, and no other mount.
pub(crate) fn open_within(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    open_beneath_on_mount(root, named(path), flags | OFlags::NOFOLLOW)
}

/// A file from outside, and its destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Import<'a> {
    /// The real path below the root.
    pub(crate) path: &'a Path,
    pub(crate) file: &'a OutsideFile,
    /// The permission bits it gets.
    pub(crate) mode: u32,
    /// The state of the file that it replaces; `None` if nothing may be there.
    pub(crate) expected: Option<FileStamp>,
}

/// The open folders of the last import, shared by neighbors: its destination, and its file outside.
struct ImportFolders {
    path: PathBuf,
    outside: PathBuf,
    to: OwnedFd,
    from: OwnedFd,
}

impl OutsideFile {
    fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn open_parent(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        open_within(self.root.as_fd(), self.parent(), flags)
    }

    /// Opens the file in its folder, if it was not written to since it was read.
    fn open(&self, folder: &OwnedFd) -> rustix::io::Result<(File, Stat)> {
        let name = self.path.file_name().ok_or(Errno::INVAL)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open_within(folder.as_fd(), Path::new(name), flags)?;
        let stat = rustix::fs::fstat(&file)?;
        if self.stamp.is_same_content(&FileStamp::of(&stat)) {
            Ok((File::from(file), stat))
        } else {
            Err(Errno::STALE)
        }
    }

    /// Syncs the file to disk.
    ///
    /// # Errors
    /// It was deleted or written to since it was read, or the disk fails.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        rustix::fs::fdatasync(self.open(&self.open_parent()?)?.0)
    }
}

impl Workspace {
    /// Puts files from outside at their places and creates the parents. If both are on one mount, nothing is copied:
    /// the file gets a hard link. Strips set-id bits, access control lists, capabilities and overlayfs marks; a
    /// replaced file keeps its owner. Sort the files: each folder is then opened once for all of its files.
    ///
    /// # Errors
    /// A place is in a different state than expected, or the file outside was written to since it was read. The files before
    /// it are in their places.
    pub(crate) fn import(&self, files: &[Import<'_>]) -> Result<(), WorkspaceError> {
        let mut open: Option<ImportFolders> = None;
        for import in files {
            self.may_change_path(import.path)?;
            let (parent, outside) = (import.path.parent(), import.file.parent());
            let near =
                |open: &ImportFolders| parent == Some(&*open.path) && outside == open.outside;
            if !open.as_ref().is_some_and(near) {
                open = Some(self.folders(import)?);
            }
            if let Some(folders) = &open {
                import.put(folders).map_err(|e| match e {
                    Errno::EXIST | Errno::ISDIR | Errno::STALE => {
                        WorkspaceError::Changed(display_path(import.path))
                    }
                    other => WorkspaceError::from_errno("write", import.path, other),
                })?;
            }
        }
        Ok(())
    }

    fn folders(&self, import: &Import<'_>) -> Result<ImportFolders, WorkspaceError> {
        let path = import.path.parent().unwrap_or(Path::new(""));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let to = match self.open_beneath(path, flags) {
            Ok(folder) => folder,
            Err(_) => self.folder_for(&self.real_place(import.path)?)?,
        };
        let from = import.file.open_parent();
        Ok(ImportFolders {
            path: path.to_owned(),
            outside: import.file.parent().to_owned(),
            to,
            from: from.map_err(|e| WorkspaceError::from_errno("read", import.path, e))?,
        })
    }

    /// Sets the permission bits of the file at a place, and changes nothing else.
    ///
    /// # Errors
    /// It is in a different state than expected.
    pub(crate) fn set_file_mode(
        &self,
        place: &ResolvedPath,
        mode: u32,
        expected: Option<&FileStamp>,
    ) -> Result<(), WorkspaceError> {
        self.may_change(place)?;
        let open = self.read(place)?;
        if !expected.is_some_and(|expected| expected.is_still(&open.stamp)) {
            return Err(WorkspaceError::Changed(place.display()));
        }
        rustix::fs::fchmod(&open.file, Mode::from_raw_mode(mode & 0o777))
            .map_err(|e| WorkspaceError::from_errno("change", Path::new(&place.display()), e))
    }
}

impl Workspace {
    /// Gives the file or folder at a real path the time when another one was modified. Its content stays.
    ///
    /// # Errors
    /// It is in a different state than expected, may not be changed, or belongs to another user.
    pub(crate) fn set_modified(
        &self,
        real: &Path,
        like: &FileStamp,
        expected: &FileStamp,
    ) -> Result<(), WorkspaceError> {
        self.may_change_path(real)?;
        let open = self.beneath(real, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let to_error = |e: Errno| WorkspaceError::from_errno("change", real, e);
        let now = rustix::fs::fstat(&open).map_err(to_error)?;
        if !expected.is_still(&FileStamp::of(&now)) {
            return Err(WorkspaceError::Changed(display_path(real)));
        }
        set_time(&open, like).map_err(to_error)
    }
}

/// Gives an open file the time when another one was modified, and leaves when it was read.
fn set_time(file: impl AsFd, like: &FileStamp) -> rustix::io::Result<()> {
    let (seconds, nanoseconds) = like.modified;
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        },
    };
    rustix::fs::futimens(file, &times)
}

impl Import<'_> {
    fn put(&self, folders: &ImportFolders) -> rustix::io::Result<()> {
        let name = self.path.file_name().ok_or(Errno::INVAL)?;
        let from = self.file.path.file_name().ok_or(Errno::INVAL)?;
        let (file, stat) = self.file.open(&folders.from)?;
        let old = self.replaced_file(&folders.to, name)?;
        if FileStamp::of(&stat).links() == 1 {
            clean(&file, &stat, self.mode, old.as_ref())?;
            // A new file gets its name directly, a replacement by way of a draft.
            let draft = old.is_some().then(draft_name);
            let to = draft.as_deref().map_or(name, AsRef::as_ref);
            match rustix::fs::linkat(&folders.from, from, &folders.to, to, AtFlags::empty()) {
                Ok(()) => {
                    let Some(second) = draft else { return Ok(()) };
                    let draft = TemporaryFile {
                        folder: folders.to.as_fd(),
                        name: second,
                        done: false,
                    };
                    return finish(draft, name, true);
                }
                Err(Errno::EXIST) => return Err(Errno::EXIST),
                // Another file system, or one without hard links: copy.
                Err(_) => {}
            }
        }
        let (draft, fd) = new_draft(folders.to.as_fd())?;
        let copy = File::from(fd);
        copy_sparse(&file, &copy).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        let stat = rustix::fs::fstat(&copy)?;
        clean(&copy, &stat, self.mode, old.as_ref())?;
        // As a hard link has it: what is made from other files must not be older than they are.
        set_time(&copy, &self.file.stamp)?;
        let old = self.replaced_file(&folders.to, name)?;
        finish(draft, name, old.is_some())
    }

    /// Returns the file that is replaced, if it is as expected.
    fn replaced_file(&self, folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<Stat>> {
        let now = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(e) => return Err(e),
        };
        match (&now, &self.expected) {
            (None, None) => Ok(None),
            (Some(stat), Some(expected)) if expected.is_still(&FileStamp::of(stat)) => Ok(now),
            _ => Err(Errno::STALE),
        }
    }
}

fn finish(draft: TemporaryFile<'_>, name: &OsStr, replaces: bool) -> rustix::io::Result<()> {
    let mut draft = draft;
    put_in_place(&draft, name, replaces)?;
    draft.done = true;
    Ok(())
}

/// Sets a file's mode and the owner of the file it replaces, and strips attributes.
fn clean(file: &File, now: &Stat, mode: u32, old: Option<&Stat>) -> rustix::io::Result<()> {
    let mut now_mode = now.st_mode & 0o7777;
    let names = attributes(file)?;
    if !names.is_empty() && now_mode & 0o200 == 0 {
        // Changing the attributes of a file requires write permission.
        now_mode |= 0o200;
        rustix::fs::fchmod(file, Mode::from_raw_mode(now_mode))?;
    }
    for name in names {
        match rustix::fs::fremovexattr(file, &*name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(e) => return Err(e),
        }
    }
    if let Some(old) = old
        && (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid)
    {
        let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only a privileged user may do this; otherwise the current user owns the new file, as with any editor.
        let _ = rustix::fs::fchown(file, Some(user), Some(group));
        now_mode = rustix::fs::fstat(file)?.st_mode & 0o7777;
    }
    if now_mode != mode & 0o777 {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777))?;
    }
    Ok(())
}

/// Returns the names of the attributes to strip.
fn attributes(file: &File) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; 256];
    let length = loop {
        match rustix::fs::flistxattr(file, &mut names[..]) {
            Ok(length) => break length,
            Err(Errno::RANGE) if names.len() < MAX_NAMES => names.resize(MAX_NAMES, 0),
            // The file system has no attributes.
            Err(Errno::OPNOTSUPP) => break 0,
            Err(e) => return Err(e),
        }
    };
    let names = names.get(..length).unwrap_or_default();
    let stripped = |name: &&[u8]| {
        STRIPPED_ATTRIBUTES
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    let names = names.split(|byte| *byte == 0).filter(stripped);
    Ok(names.map(<[u8]>::to_vec).collect())
}

/// Copies a file with its holes, and syncs it to disk.
fn copy_sparse(from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let (mut at, mut buffer) = (0, vec![0; CHUNK_BYTES]);
    while let Some(data) = next_data(from, at)? {
        let end = rustix::fs::seek(from, SeekFrom::Hole(data))?.min(length);
        at = data;
        while at < end {
            let room = usize::try_from(end - at)
                .unwrap_or(CHUNK_BYTES)
                .min(CHUNK_BYTES);
            let part = buffer.get_mut(..room).unwrap_or_default();
            let count = from.read_at(part, at)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            to.write_all_at(part.get(..count).unwrap_or_default(), at)?;
            at += count as u64;
        }
    }
    to.sync_data()
}

/// Returns the position of the next bytes of a file that are not in a hole.
pub(crate) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
