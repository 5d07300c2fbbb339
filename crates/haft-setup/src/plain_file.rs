//! Small files of haft's own: read whole, up to a limit and never from a device or FIFO; written completely or not at all.

use haft::beneath::open_beneath;
use haft::file_lock::FileLock;
use haft::text::hex;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Reads a regular file of at most `most` bytes as text.
///
/// # Errors
/// The file is missing, not a regular file, too large, or not UTF-8.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    // Without O_NONBLOCK, opening a FIFO would block until a process writes to it.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(name_loop)?;
    whole(file, most)
}

/// Returns the error in words if it is about links that lead nowhere, which the system only names "too many levels".
pub fn name_loop(error: io::Error) -> io::Error {
    if Errno::from_io_error(&error) == Some(Errno::LOOP) {
        return io::Error::new(error.kind(), "its symbolic links lead in a circle");
    }
    error
}

/// Reads such a file below a folder that others may write to: no symbolic link in the path is followed.
///
/// # Errors
/// As for [`read`], and if the path contains a link.
pub fn read_beneath(folder: &Path, name: &str, most: u64) -> io::Result<String> {
    let root = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(folder, root, Mode::empty())?;
    let file = open_beneath(&root, Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK);
    let file = file.map_err(|errno| match errno {
        Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"),
        other => other.into(),
    })?;
    whole(file.into(), most)
}

fn whole(file: File, most: u64) -> io::Result<String> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    bounded(file, most)
}

/// Reads a stream of at most `most` bytes as text.
///
/// # Errors
/// The stream is longer than `most`, not UTF-8, or cannot be read.
pub fn bounded(from: impl Read, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("over {most} bytes"),
        ));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("not UTF-8 at byte {at}"),
        )
    })
}

/// What differs in a file's metadata after it was written or replaced: device, inode, length, and times of content and entry changes.
pub type Stamp = [i128; 5];

/// Returns the file's current stamp; `None` if there is no file.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Some([
        i128::from(meta.dev()),
        i128::from(meta.ino()),
        i128::from(meta.len()),
        nanoseconds(meta.mtime(), meta.mtime_nsec()),
        nanoseconds(meta.ctime(), meta.ctime_nsec()),
    ])
}

/// Writes `text` to `path`, readable only by the owner; readers see either the old text or the new one, complete.
///
/// # Errors
/// The file cannot be written next to `path` or renamed to it.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}", random_hex(8)?));
    let written = create_private(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // The draft may not exist; the error of the write is the one to report.
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// Creates a new file with mode 0600.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn create_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Creates a folder and its parents, accessible only to the owner.
///
/// # Errors
/// A folder cannot be created.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// How long to wait for another process to release a folder or file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often to check whether it is released.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Locks a folder, or a file that is only ever replaced whole, against other haft processes until the lock is dropped.
///
/// # Errors
/// It cannot be opened or locked, or another process holds it for half a minute.
pub fn lock_folder(folder: &Path) -> io::Result<FileLock> {
    let started = Instant::now();
    loop {
        if let Some(lock) = FileLock::try_exclusive(File::open(folder)?)? {
            let (held, named) = (lock.metadata()?, std::fs::metadata(folder)?);
            // The process that held it may have removed or replaced it.
            if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
                return Ok(lock);
            }
        }
        if started.elapsed() > LOCK_TIMEOUT {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "another process of haft holds it; try again when it has ended",
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Removes drafts of a file that a killed process left behind: the name with a leading dot and a random hex suffix. The caller must hold
/// the folder's lock.
pub fn sweep_drafts(folder: &Path, name: &str) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let is_draft = |found: &str| {
        let hex = found
            .strip_prefix('.')
            .and_then(|rest| rest.strip_prefix(name))
            .and_then(|rest| rest.strip_prefix('.'));
        hex.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(is_draft) {
            // Best effort: a draft that remains does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Returns `bytes` random bytes from the operating system, as hex.
///
/// # Errors
/// The operating system provides no random bytes.
pub fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(hex(&random))
}
