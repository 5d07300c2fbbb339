//! A folder's entries, read through its descriptor.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Dir, OFlags};

use crate::workspace::{EntryKind, ResolvedPath, Workspace, WorkspaceError, display_path};

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name; invalid UTF-8 appears as replacement characters.
    pub name: String,
    /// Its kind; a link is a link, wherever it leads.
    pub kind: EntryKind,
}

impl Workspace {
    /// Returns the first `max` visible entries of the folder at a place, sorted by name, and whether there are more.
    pub(super) fn list_shown(
        &self,
        place: &ResolvedPath,
        max: usize,
        shows: &dyn Fn(&Path) -> bool,
    ) -> Result<(Vec<DirEntry>, bool), WorkspaceError> {
        if place.kind().is_none() {
            return Err(place.not_found());
        }
        place.need(EntryKind::Directory)?;
        let mut entries = Vec::new();
        let mut more = false;
        for entry in self.open_folder(place.real())? {
            let entry = entry.map_err(|e| WorkspaceError::from_errno("list", place.real(), e))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = place.real().join(name);
            if name == "." || name == ".." || !shows(&path) {
                continue;
            }
            if entries.len() == max {
                more = true;
                break;
            }
            let kind = match self.look(&path) {
                Some((kind, _)) => kind,
                None => EntryKind::of(entry.file_type()),
            };
            entries.push(DirEntry {
                name: name.to_string_lossy().into_owned(),
                kind,
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((entries, more))
    }

    /// Returns the real paths of everything below the folder at a place, including hidden files, for the policy to judge; `None` if
    /// there are more than `max`. A name that is not UTF-8 is an error: no rule could match it.
    ///
    /// # Errors
    /// [`WorkspaceError::Malformed`] for a name that is not UTF-8, [`WorkspaceError::Io`] if a folder cannot be listed.
    pub fn tree(
        &self,
        place: &ResolvedPath,
        max: usize,
    ) -> Result<Option<Vec<String>>, WorkspaceError> {
        let mut found = Vec::new();
        let mut todo = vec![place.real().to_path_buf()];
        while let Some(folder) = todo.pop() {
            for entry in self.open_folder(&folder)? {
                let entry = entry.map_err(|e| WorkspaceError::from_errno("list", &folder, e))?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                if found.len() == max {
                    return Ok(None);
                }
                let path = folder.join(name);
                let text = path.to_str().ok_or_else(|| {
                    WorkspaceError::Malformed(
                        display_path(&path),
                        "it holds a name that is not UTF-8",
                    )
                })?;
                found.push(text.to_owned());
                if self
                    .look(&path)
                    .is_some_and(|(kind, _)| kind == EntryKind::Directory)
                {
                    todo.push(path);
                }
            }
        }
        Ok(Some(found))
    }

    /// Whether the folder at a place is empty.
    pub(crate) fn is_empty(&self, place: &ResolvedPath) -> bool {
        let is_own = |name: &[u8]| name == b"." || name == b"..";
        self.open_folder(place.real()).is_ok_and(|mut entries| {
            entries.all(|entry| entry.is_ok_and(|entry| is_own(entry.file_name().to_bytes())))
        })
    }

    /// Returns at most `max` UTF-8 names in a folder, in no particular order.
    pub(super) fn names(&self, folder: &Path, max: usize) -> Result<Vec<String>, WorkspaceError> {
        let entries = self.open_folder(folder)?;
        let names = entries
            .take(max)
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| name != "." && name != "..");
        Ok(names.collect())
    }

    fn open_folder(&self, real: &Path) -> Result<Dir, WorkspaceError> {
        let fd = self.beneath(real, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Dir::new(fd).map_err(|e| WorkspaceError::from_errno("list", real, e))
    }
}
