//! Files of `/etc` that are exactly as a package of the system ships them: what everybody may know.
//!
//! `dpkg` notes the digest of each settings file that a package ships (`Conffiles` in its list of packages), and `ucf` the digest of those
//! that a package makes when it is installed. What an administrator changed has another digest, and what one added has none.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use md5::{Digest, Md5};

use super::only_changed_by;
use crate::places::is_system;

/// Maximum size in bytes of the lists of `dpkg` and `ucf`.
const LARGEST_LIST: u64 = 64 << 20;
/// Maximum number of entries of a folder that is shown.
const MOST_ENTRIES: usize = 512;
/// Maximum number of bytes of all its files.
const MOST_BYTES: u64 = 4 << 20;
/// Maximum depth of folders.
const DEEPEST: usize = 8;

/// The MD5 digests of settings files as packages ship them, by their paths.
#[derive(Debug, Default)]
pub(super) struct ShippedFiles(HashMap<String, String>);

impl ShippedFiles {
    /// Reads the lists of `dpkg` and `ucf`, which only `owner` may be able to change. Empty for a system without them.
    pub(super) fn read(dpkg: &Path, ucf: &Path, owner: u32) -> Self {
        let mut found = HashMap::new();
        let mut add = |path: &str, digest: &str| {
            let is_digest = digest.len() == 32 && digest.bytes().all(|b| b.is_ascii_hexdigit());
            if is_digest && path.starts_with('/') {
                found.insert(path.to_owned(), digest.to_ascii_lowercase());
            }
        };
        for line in list(ucf, owner).unwrap_or_default().lines() {
            if let Some((digest, path)) = line.split_once(' ') {
                add(path.trim_start(), digest);
            }
        }
        for line in list(dpkg, owner).unwrap_or_default().lines() {
            let Some(file) = line.strip_prefix(' ').filter(|file| file.starts_with('/')) else {
                continue;
            };
            let file = file.strip_suffix(" obsolete").unwrap_or(file);
            if let Some((path, digest)) = file.rsplit_once(' ') {
                add(path, digest);
            }
        }
        Self(found)
    }

    /// Returns an error, as the rest of a sentence about the folder, if anything in it is not as a package ships it.
    pub(super) fn check(&self, folder: &Path, owner: u32) -> Result<(), String> {
        let meta = fs::symlink_metadata(folder).map_err(|error| error.to_string())?;
        if !only_changed_by(&meta, owner) || !is_for_everybody(&meta) {
            return Err("belongs to another user than root, or is not for everybody".into());
        }
        let mut check = FolderCheck {
            shipped: self,
            root: folder,
            device: meta.dev(),
            owner,
            entries: MOST_ENTRIES,
            bytes: MOST_BYTES,
        };
        check.folder(folder, 0)
    }
}

/// Returns the text of a list that only `owner` can change.
fn list(path: &Path, owner: u32) -> io::Result<String> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !only_changed_by(&meta, owner) || !meta.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_LIST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the MD5 digest of bytes as the lists have it.
pub(super) fn md5_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Md5::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether every user may read the file, or list the folder.
pub(super) fn is_for_everybody(meta: &Metadata) -> bool {
    let needed = if meta.is_dir() { 0o005 } else { 0o004 };
    meta.mode() & needed == needed
}

struct FolderCheck<'a> {
    shipped: &'a ShippedFiles,
    root: &'a Path,
    device: u64,
    owner: u32,
    entries: usize,
    bytes: u64,
}

impl FolderCheck<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), String> {
        let list = fs::read_dir(folder).map_err(|error| self.about(folder, &error.to_string()))?;
        for entry in list {
            let path = entry
                .map_err(|error| self.about(folder, &error.to_string()))?
                .path();
            self.entries = self
                .entries
                .checked_sub(1)
                .ok_or("has too many files to look at")?;
            let meta = fs::symlink_metadata(&path)
                .map_err(|error| self.about(&path, &error.to_string()))?;
            if meta.is_symlink() {
                self.link(&path)?;
                continue;
            }
            if !only_changed_by(&meta, self.owner) || meta.dev() != self.device {
                return Err(self.about(&path, "belongs to another user or is mounted there"));
            }
            if !is_for_everybody(&meta) {
                return Err(self.about(&path, "is not for everybody"));
            }
            if meta.is_dir() && depth < DEEPEST {
                self.folder(&path, depth + 1)?;
            } else if meta.is_file() {
                self.file(&path, meta.len())?;
            } else {
                return Err(self.about(&path, "is not a file"));
            }
        }
        Ok(())
    }

    /// A link must stay in the folder or lead to the system's folders of programs.
    fn link(&self, path: &Path) -> Result<(), String> {
        let Ok(real) = path.canonicalize() else {
            // It leads nowhere outside either, or nowhere that this user may look.
            return Err(self.about(path, "is a link that leads nowhere"));
        };
        if real.starts_with(self.root) || is_system(&real) {
            return Ok(());
        }
        Err(self.about(path, "is a link that leads out"))
    }

    fn file(&mut self, path: &Path, length: u64) -> Result<(), String> {
        let shipped = path.to_str().and_then(|name| self.shipped.0.get(name));
        let shipped = shipped.ok_or_else(|| self.about(path, "is not known as a package's"))?;
        let left = self.bytes.checked_sub(length);
        self.bytes = left.ok_or("is too large to look at")?;
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| self.about(path, &error.to_string()))?;
        if md5_text(&bytes) == *shipped {
            Ok(())
        } else {
            Err(self.about(path, "is not as its package ships it"))
        }
    }

    fn about(&self, path: &Path, what: &str) -> String {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        format!("is left out: {} {what}", path.display())
    }
}
