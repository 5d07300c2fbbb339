//! `Spool`: stores long output in unnamed files of one folder, which vanish with the process however it ends.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};

/// The default limit of all files of a spool together: 4 GiB.
pub const DEFAULT_SPOOL: u64 = 4 << 30;

/// A folder for output that is too long for memory, with a limit for all of it. The files have no names: no other process opens
/// them, and none is left behind.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    left: AtomicU64,
}

/// Two spools are equal only if they are the same object.
impl PartialEq for Spool {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Spool {}

impl Spool {
    /// Creates a spool in this folder, which is created when first needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            left: AtomicU64::new(DEFAULT_SPOOL),
        }
    }

    /// Limits the bytes of all of its files together.
    pub fn with_bound(self, bytes: u64) -> Self {
        Self {
            left: AtomicU64::new(bytes),
            ..self
        }
    }

    /// Creates a file without a name.
    pub(super) fn file(&self) -> io::Result<File> {
        let mut dir = DirBuilder::new();
        dir.recursive(true).mode(0o700).create(&self.folder)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
        match rustix::fs::open(&self.folder, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(file.into()),
            // Not every file system supports unnamed files (open(2)).
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => self.named(),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file and removes its name at once.
    fn named(&self) -> io::Result<File> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{}-{number}", std::process::id()));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    /// Reserves space for `bytes` bytes, or as much as is left; returns how much.
    pub(super) fn take(&self, bytes: u64) -> u64 {
        let less = |left: u64| Some(left - bytes.min(left));
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.map_or(0, |left| bytes.min(left))
    }

    /// Gives reserved space back.
    pub(super) fn give_back(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}
