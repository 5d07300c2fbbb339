//! `Folder`: an open folder whose entries are listed and opened without walking its path again.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, RawDir};

use crate::workspace::place::kind_and_bytes;
use crate::workspace::{EntryKind, OpenFile, Workspace, WorkspaceError};

/// Size of the buffer for entries, in bytes.
const ENTRY_BUFFER: usize = 32 << 10;

/// A folder of the workspace, held by its descriptor. It stays the same folder even if something else takes its path.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    real: PathBuf,
}

impl Workspace {
    /// Opens the folder at a real path, as found by a walk below the root; a link anywhere on the path is an error, so a
    /// misled walk never reads outside. One call of the system.
    ///
    /// # Errors
    /// Nothing is there any more, it is not a folder, or it cannot be read.
    pub fn folder(&self, real: &Path) -> Result<Folder, WorkspaceError> {
        let fd = self.beneath(real, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Folder {
            fd,
            real: real.to_path_buf(),
        })
    }
}

impl Folder {
    /// Returns its path below the root when it was opened.
    pub fn path(&self) -> &Path {
        &self.real
    }

    /// Calls `each` with the name and kind of every entry of the folder, in the system's order.
    ///
    /// # Errors
    /// The folder cannot be read completely.
    pub fn entries(&self, mut each: impl FnMut(&OsStr, EntryKind)) -> Result<(), WorkspaceError> {
        let mut buffer = Vec::with_capacity(ENTRY_BUFFER);
        let mut entries = RawDir::new(&self.fd, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|e| WorkspaceError::from_errno("list", &self.real, e))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the kind.
                FileType::Unknown => self.look(name).map(|(kind, _)| kind),
                known => Some(EntryKind::of(known)),
            };
            if let Some(kind) = kind {
                each(name, kind);
            }
        }
        Ok(())
    }

    /// Opens a regular file in the folder. One call to open it and one `fstat`.
    ///
    /// # Errors
    /// The folder has no such entry, it is not a regular file (a link is not), or it cannot be read.
    pub fn open_file(&self, name: &OsStr) -> Result<OpenFile, WorkspaceError> {
        OpenFile::open(&self.fd, Path::new(name), &self.real.join(name))
    }

    /// Returns the kind and size in bytes of the entry with this name; `None` if there is none.
    pub fn look(&self, name: &OsStr) -> Option<(EntryKind, u64)> {
        // Only a name, not a path, so it cannot lead elsewhere.
        let is_path = name == ".." || name.as_bytes().contains(&b'/');
        let stat =
            (!is_path).then(|| rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW));
        stat?.ok().as_ref().map(kind_and_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use crate::workspace::{EntryKind, Workspace};

    #[test]
    fn a_folder_stays_what_it_was_and_leads_nowhere_else() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("in/deep")).unwrap();
        fs::write(at("in/a"), "four").unwrap();
        fs::write(at("above"), "").unwrap();
        symlink(outside.path().join("secret"), at("in/link")).unwrap();
        let workspace = Workspace::open(root.path()).unwrap();
        let folder = workspace.folder(Path::new("in")).unwrap();
        // Swapped for a link: opening it again fails, the open folder remains.
        fs::rename(at("in"), at("moved")).unwrap();
        symlink(outside.path(), at("in")).unwrap();
        assert!(workspace.folder(Path::new("in")).is_err());
        let mut found = Vec::new();
        folder
            .entries(|name, kind| found.push((name.to_str().unwrap().to_owned(), kind)))
            .unwrap();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let names = ["a", "deep", "link"].map(str::to_owned);
        let kinds = [EntryKind::File, EntryKind::Directory, EntryKind::Link];
        assert_eq!(found, names.into_iter().zip(kinds).collect::<Vec<_>>());
        let open = |name: &str| folder.open_file(OsStr::new(name)).is_ok();
        assert!(open("a"));
        for wrong in ["link", "deep", "gone", "../above", "/etc/passwd", ".."] {
            assert!(!open(wrong), "{wrong}");
        }
        let look = |name: &str| folder.look(OsStr::new(name));
        assert_eq!(look("a"), Some((EntryKind::File, 4)));
        assert_eq!(look("link").unwrap().0, EntryKind::Link);
        for wrong in ["gone", "../above", "..", "/etc/passwd"] {
            assert_eq!(look(wrong), None, "{wrong}");
        }
    }
}
