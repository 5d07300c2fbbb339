//! `ScratchFolder`: a private folder of a jail or a script outside of it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A private folder in place of `/tmp`, removed with everything in it.
#[derive(Debug)]
pub(crate) struct ScratchFolder(pub(crate) PathBuf);

impl ScratchFolder {
    pub(crate) fn make() -> io::Result<Self> {
        Self::make_in(&std::env::temp_dir().canonicalize()?)
    }

    /// Creates it in another folder than the system's.
    pub(crate) fn make_in(folder: &Path) -> io::Result<Self> {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let name = format!("haft-{}-{random:016x}", std::process::id());
        let path = folder.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
