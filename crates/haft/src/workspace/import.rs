//! Putting a file from outside the root at a place: as a second name of it, or as a copy on another file system.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, SeekFrom, Stat, Uid};
use rustix::io::Errno;

use crate::workspace::write::{Draft, draft_name, new_draft, put_in_place};
use crate::workspace::{FileStamp, Place, Workspace, WorkspaceError};

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;
/// Longest list of names of extended attributes.
const MOST_NAMES: usize = 64 << 10;
/// Attributes that are never carried over: marks of overlayfs, access control lists, capabilities.
const STRIPPED: [&[u8]; 3] = [
    b"user.overlay.",
    b"system.posix_acl_",
    b"security.capability",
];

/// A regular file below a folder outside the workspace.
#[derive(Debug, Clone)]
pub struct OutsideFile {
    /// The folder.
    pub(crate) root: Arc<OwnedFd>,
    /// The path below it, without links.
    pub(crate) path: PathBuf,
    /// Its state when it was read.
    pub(crate) stamp: FileStamp,
    /// The SHA-256 of its bytes, hex; none for a file over the size limit.
    pub(crate) sha256: Option<String>,
}

impl PartialEq for OutsideFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root) && self.path == other.path
    }
}

impl Eq for OutsideFile {}

/// The file, opened, and the folder that holds it.
struct Source {
    folder: OwnedFd,
    file: File,
    links: u64,
}

/// Opens a real path beneath a folder: no links, and no other mount.
pub(crate) fn open_within(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_XDEV;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
}

impl OutsideFile {
    fn open(&self) -> rustix::io::Result<Source> {
        let name = self.path.file_name().ok_or(Errno::INVAL)?;
        let parent = self.path.parent().unwrap_or(Path::new(""));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = open_within(self.root.as_fd(), parent, flags)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(open_within(folder.as_fd(), Path::new(name), flags)?);
        let stat = rustix::fs::fstat(&file)?;
        let now = FileStamp::of(&stat);
        if !self.stamp.is_same_content(&now) {
            return Err(Errno::STALE);
        }
        let links = now.links();
        Ok(Source {
            folder,
            file,
            links,
        })
    }

    /// Writes the file to the disk.
    ///
    /// # Errors
    /// It is gone or was written to since, or the disk fails.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        rustix::fs::fdatasync(&self.open()?.file)
    }
}

impl Workspace {
    /// Puts a file from outside at a place, making the parents. Nothing is copied where both lie on one mount: the file
    /// then has a second name here. With `expected`, that file is replaced; without, nothing may be there. Set-id bits,
    /// access control lists and marks of overlayfs are stripped; the owner of a replaced file stays.
    ///
    /// # Errors
    /// What is at the place is in another state than expected, or the file outside was written to since.
    pub(crate) fn import(
        &self,
        place: &Place,
        outside: &OutsideFile,
        mode: u32,
        expected: Option<&FileStamp>,
    ) -> Result<(), WorkspaceError> {
        self.may_change(place)?;
        let shown = || place.shown();
        let told = |e: Errno| match e {
            Errno::EXIST | Errno::ISDIR | Errno::STALE => WorkspaceError::Changed(shown()),
            other => WorkspaceError::from_errno("write", Path::new(&shown()), other),
        };
        let name = place.real().file_name().ok_or(WorkspaceError::Root)?;
        let source = outside.open().map_err(told)?;
        let folder = self.folder_for(place)?;
        let old = match expected {
            Some(_) => Some(self.stat(place.real()).map_err(told)?),
            None => None,
        };
        if source.links == 1 {
            clean(&source.file, mode, old.as_ref()).map_err(told)?;
        }
        self.still(place, expected)?;
        let from = outside.path.file_name().ok_or(WorkspaceError::Root)?;
        if source.links == 1 {
            // A new file gets its name at once, a replaced one by way of a draft.
            let draft = old.is_some().then(draft_name);
            let to = draft.as_deref().map_or(name, AsRef::as_ref);
            match rustix::fs::linkat(&source.folder, from, &folder, to, AtFlags::empty()) {
                Ok(()) => {
                    let Some(second) = draft else { return Ok(()) };
                    let draft = Draft {
                        folder: folder.as_fd(),
                        name: second,
                        done: false,
                    };
                    return finish(draft, name, true).map_err(told);
                }
                Err(Errno::EXIST) => return Err(told(Errno::EXIST)),
                // Another file system, or one without second names: a copy.
                Err(_) => {}
            }
        }
        let (draft, fd) = new_draft(folder.as_fd()).map_err(told)?;
        let copy = File::from(fd);
        copy_sparse(&source.file, &copy)
            .map_err(|e| WorkspaceError::io("write", &place.shown(), e))?;
        clean(&copy, mode, old.as_ref()).map_err(told)?;
        self.still(place, expected)?;
        finish(draft, name, old.is_some()).map_err(told)
    }

    /// Sets the permission bits of the file at a place and nothing else of it.
    ///
    /// # Errors
    /// It is in another state than expected.
    pub(crate) fn set_file_mode(
        &self,
        place: &Place,
        mode: u32,
        expected: Option<&FileStamp>,
    ) -> Result<(), WorkspaceError> {
        self.may_change(place)?;
        let open = self.read(place)?;
        if !expected.is_some_and(|expected| expected.is_still(&open.stamp)) {
            return Err(WorkspaceError::Changed(place.shown()));
        }
        rustix::fs::fchmod(&open.file, Mode::from_raw_mode(mode & 0o777))
            .map_err(|e| WorkspaceError::from_errno("change", Path::new(&place.shown()), e))
    }
}

fn finish(draft: Draft<'_>, name: &std::ffi::OsStr, replaces: bool) -> rustix::io::Result<()> {
    let mut draft = draft;
    put_in_place(&draft, name, replaces)?;
    draft.done = true;
    Ok(())
}

/// Gives a file its mode and the owner of the one it replaces, and strips what is not carried over.
fn clean(file: &File, mode: u32, old: Option<&Stat>) -> rustix::io::Result<()> {
    for name in attributes(file)? {
        match rustix::fs::fremovexattr(file, &*name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(e) => return Err(e),
        }
    }
    let now = rustix::fs::fstat(file)?;
    if let Some(old) = old
        && (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid)
    {
        let (user, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only a privileged user may; for others the new file is theirs, as with any editor.
        let _ = rustix::fs::fchown(file, Some(user), Some(group));
    }
    if rustix::fs::fstat(file)?.st_mode & 0o7777 != mode & 0o777 {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777))?;
    }
    Ok(())
}

/// The names of the attributes to strip.
fn attributes(file: &File) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; 256];
    let length = loop {
        match rustix::fs::flistxattr(file, &mut names[..]) {
            Ok(length) => break length,
            Err(Errno::RANGE) if names.len() < MOST_NAMES => names.resize(MOST_NAMES, 0),
            // A file system without attributes.
            Err(Errno::OPNOTSUPP) => break 0,
            Err(e) => return Err(e),
        }
    };
    let names = names.get(..length).unwrap_or_default();
    let stripped = |name: &&[u8]| STRIPPED.iter().any(|prefix| name.starts_with(prefix));
    let names = names.split(|byte| *byte == 0).filter(stripped);
    Ok(names.map(<[u8]>::to_vec).collect())
}

/// Copies a file with its holes, and writes it to the disk.
fn copy_sparse(from: &File, to: &File) -> io::Result<()> {
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let (mut at, mut buffer) = (0, vec![0; CHUNK]);
    while let Some(data) = next_data(from, at)? {
        let end = rustix::fs::seek(from, SeekFrom::Hole(data))?.min(length);
        at = data;
        while at < end {
            let room = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
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

/// Where the next bytes of a file are that are not a hole.
pub(crate) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
