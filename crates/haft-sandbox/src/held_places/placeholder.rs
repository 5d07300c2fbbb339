//! Empty files and folders that hold the place of guarded names which do not exist.
//!
//! A name that does not exist cannot be mounted over, and a command that can create files in a folder can create
//! that name. So while a command runs, an empty placeholder holds it. It is recognised by its modification
//! time, held with a shared lock by every command that relies on it, and removed by the last of them. The next
//! command there takes over, and removes, one that a killed host left behind.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

/// How often to retry a placeholder that others create and remove meanwhile, and how long to wait for a removal.
const TRIES: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(2);
/// The modification time of placeholders; no file is this old by chance.
const MARK: Duration = Duration::from_secs(0x6861_6674 / 100);

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Placeholders in order of creation: one may lie in another, so they are removed in reverse order.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Vec<Placeholder>);

impl Placeholders {
    pub(crate) fn push(&mut self, placeholder: Placeholder) {
        self.0.push(placeholder);
    }

    /// Returns the paths of the files among them, relative to this folder.
    pub(crate) fn files_below(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        let files = self.0.iter().filter(|placeholder| !placeholder.folder);
        files.filter_map(move |file| file.path.strip_prefix(folder).ok().map(Path::to_path_buf))
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

#[derive(Debug)]
pub(crate) struct Placeholder {
    path: PathBuf,
    lock: File,
    folder: bool,
}

fn mark() -> SystemTime {
    SystemTime::UNIX_EPOCH + MARK
}

/// Whether an empty file or folder holds the place of a guarded name, for a running command or since one that was killed.
pub fn is_placeholder(meta: &fs::Metadata) -> bool {
    let empty = if meta.is_dir() {
        meta.nlink() <= 2
    } else {
        meta.is_file() && meta.len() == 0
    };
    empty && meta.modified().is_ok_and(|modified| modified == mark())
}

impl Placeholder {
    /// Creates a placeholder, or shares an existing one; `None` if a real file or folder took the place.
    pub(crate) fn take(path: &Path, folder: bool) -> io::Result<Option<Self>> {
        for _ in 0..TRIES {
            match Self::make(path, folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let open = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(path);
            let lock = match open {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            // The last holder removes it under an exclusive lock, which takes a while on a busy machine: try again.
            if flock(&lock, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(PAUSE);
                continue;
            }
            let (mine, now) = (lock.metadata()?, fs::symlink_metadata(path));
            if now.is_ok_and(|now| now.ino() == mine.ino() && now.dev() == mine.dev()) {
                let folder = mine.is_dir();
                let held = Self {
                    path: path.to_owned(),
                    lock,
                    folder,
                };
                return Ok(is_placeholder(&mine).then_some(held));
            }
        }
        Err(io::Error::other("a placeholder keeps changing"))
    }

    /// Creates it under another name and moves it into place, so that no process sees one without its mark.
    fn make(path: &Path, folder: bool) -> io::Result<()> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let around = PlaceholderParent::of(path);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let made = path.with_file_name(format!(".haft-{}-{number}", std::process::id()));
        if folder {
            fs::DirBuilder::new().mode(0o755).create(&made)?;
        } else {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(&made)?;
        }
        let date = || -> io::Result<()> {
            set_mark(&made)?;
            Ok(renameat_with(
                CWD,
                &made,
                CWD,
                path,
                RenameFlags::NOREPLACE,
            )?)
        };
        date().inspect_err(|_| {
            let _ = if folder {
                fs::remove_dir(&made)
            } else {
                fs::remove_file(&made)
            };
        })?;
        around.mark();
        Ok(())
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let same = fs::symlink_metadata(&self.path).is_ok_and(|now| {
            self.lock
                .metadata()
                .is_ok_and(|mine| mine.ino() == now.ino() && mine.dev() == now.dev())
                && is_placeholder(&now)
        });
        if same {
            let around = PlaceholderParent::of(&self.path);
            // A folder that is not empty stays: `remove_dir` refuses to remove it.
            let _ = if self.folder {
                fs::remove_dir(&self.path)
            } else {
                fs::remove_file(&self.path)
            };
            around.mark();
        }
    }
}

/// The folder of a placeholder, if it is a placeholder itself: its modification time is restored.
struct PlaceholderParent<'a>(Option<&'a Path>);

impl<'a> PlaceholderParent<'a> {
    fn of(path: &'a Path) -> Self {
        let is_marked = |folder: &&Path| {
            let modified = fs::symlink_metadata(folder).and_then(|meta| meta.modified());
            modified.is_ok_and(|modified| modified == mark())
        };
        Self(path.parent().filter(is_marked))
    }

    fn mark(&self) {
        // A folder that loses its mark is left behind, with no other harm.
        let _ = self.0.map(set_mark);
    }
}

fn set_mark(path: &Path) -> io::Result<()> {
    File::open(path)?.set_times(FileTimes::new().set_modified(mark()))
}
