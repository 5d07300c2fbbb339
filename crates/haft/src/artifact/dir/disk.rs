//! Files of the artifact folder: private, written completely or not at all, changed by one process at a time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::artifact::source::{ByteSource, each_piece};
use crate::file_lock::FileLock;

/// Maximum wait for the lock: other processes hold it for one write or one sweep.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a folder and its parents, accessible only to the current user.
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a regular file; never follows a link in its place.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Writes a short file that can be lost or recreated.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Takes the store's lock.
pub(super) fn lock(root: &Path) -> io::Result<FileLock> {
    make_dir(root)?;
    let mut options = OpenOptions::new();
    let options = options.append(true).create(true).mode(0o600);
    let file = options.open(root.join("lock"))?;
    FileLock::exclusive_within(file, LOCK_TIMEOUT)?.ok_or_else(|| {
        let busy = "another process has held the artifact folder's lock for 10 seconds";
        io::Error::new(io::ErrorKind::TimedOut, busy)
    })
}

/// A file that is written and synced but not yet under its final name. Removed on drop unless kept.
pub(super) struct UncommittedFile {
    path: PathBuf,
}

impl UncommittedFile {
    pub(super) fn write(dir: &Path, bytes: &dyn ByteSource) -> io::Result<Self> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        make_dir(dir)?;
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", std::process::id(), crate::clock::now());
        let staged = Self {
            path: dir.join(name),
        };
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&staged.path)?;
        each_piece(bytes, |piece| file.write_all(piece))?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Moves it to its final name, replacing what may be there.
    pub(super) fn keep(self, path: &Path) -> io::Result<()> {
        if let Some(dir) = path.parent() {
            make_dir(dir)?;
            fs::rename(&self.path, path)?;
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for UncommittedFile {
    fn drop(&mut self) {
        // Already moved if it was kept.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the folders within a folder; empty if it does not exist.
pub(super) fn folders(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = entries(dir)?;
    Ok(entries.into_iter().filter(|path| path.is_dir()).collect())
}

/// Returns all entries of a folder; empty if it does not exist.
pub(super) fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read?.map(|entry| Ok(entry?.path())).collect(),
    }
}
