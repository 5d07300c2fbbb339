//! File locks between processes and within one. With one writer and many readers, a reader's short lock never makes a writer fail.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

/// Longest pause between two tries of a lock that is waited for.
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// A locked file or folder. Dropping it releases the lock at once: closing the file alone would not while a child process that is
/// being started still has its own descriptor of it.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks a file or folder exclusively; returns `None` if it is locked elsewhere.
    ///
    /// # Errors
    /// The file system fails, or knows no locks.
    pub fn try_exclusive(file: File) -> io::Result<Option<Self>> {
        let locked = file.try_lock();
        Self::of(file, locked)
    }

    /// Locks a file or folder, shared with other readers; returns `None` if a writer has it, in this process or another.
    ///
    /// # Errors
    /// As for [`try_exclusive`](Self::try_exclusive).
    pub fn try_shared(file: File) -> io::Result<Option<Self>> {
        let locked = file.try_lock_shared();
        Self::of(file, locked)
    }

    /// Locks a file or folder exclusively, and waits for it at most so long; returns `None` if it stays locked elsewhere. Blocks.
    ///
    /// # Errors
    /// As for [`try_exclusive`](Self::try_exclusive).
    pub fn exclusive_within(file: File, timeout: Duration) -> io::Result<Option<Self>> {
        Self::within(file, timeout, File::try_lock)
    }

    /// Locks a file or folder, shared with other readers, and waits for its writer at most so long; returns `None` if it stays locked.
    /// Blocks.
    ///
    /// # Errors
    /// As for [`try_exclusive`](Self::try_exclusive).
    pub fn shared_within(file: File, timeout: Duration) -> io::Result<Option<Self>> {
        Self::within(file, timeout, File::try_lock_shared)
    }

    fn within(
        file: File,
        timeout: Duration,
        lock: fn(&File) -> Result<(), TryLockError>,
    ) -> io::Result<Option<Self>> {
        let end = Instant::now() + timeout;
        let mut pause = Duration::from_micros(100);
        loop {
            match lock(&file) {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) if Instant::now() > end => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(pause),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn of(file: File, locked: Result<(), TryLockError>) -> io::Result<Option<Self>> {
        match locked {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file releases it, too, if later.
        let _ = self.0.unlock();
    }
}

/// Number of tries while a writer has the lock, which may be about to release it, and the pause between tries.
const MAX_TRIES: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(2);
/// Number of tries while only readers have the lock: on a busy machine they may hold it for long.
const MAX_READER_TRIES: u32 = 5_000;

/// Locks a file or folder exclusively, after its readers; returns `None` if a writer has it.
///
/// # Errors
/// The file cannot be locked.
pub fn lock_after_readers(file: File) -> io::Result<Option<FileLock>> {
    let (mut writers, mut readers) = (0, 0);
    while writers < MAX_TRIES && readers < MAX_READER_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(Some(FileLock(file))),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match file.try_lock_shared() {
            Ok(()) => {
                file.unlock()?;
                readers += 1;
            }
            Err(TryLockError::WouldBlock) => writers += 1,
            Err(TryLockError::Error(error)) => return Err(error),
        }
        std::thread::sleep(RETRY_DELAY);
    }
    Ok(None)
}

/// The system's list of locks.
const LOCKS: &str = "/proc/locks";
/// Maximum size of that list, in bytes.
const MAX_LOCKS_BYTES: u64 = 8 << 20;

/// Returns the process that has locked a file or folder exclusively. `None` if there is none, or the system does not tell: the lock
/// may come from another machine or namespace, or the file system may not report its own number.
pub fn writer(file: &File) -> Option<u32> {
    let found = file.metadata().ok()?;
    let (major, minor) = (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
    );
    let place = format!("{major:02x}:{minor:02x}:{}", found.ino());
    let mut locks = String::new();
    let list = File::open(LOCKS).ok()?;
    list.take(MAX_LOCKS_BYTES).read_to_string(&mut locks).ok()?;
    locks.lines().find_map(|line| {
        // `12: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF`
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, of, ..] = fields[..] else {
            return None;
        };
        let pid = pid.parse().ok().filter(|pid| *pid > 0);
        pid.filter(|_| of == place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_lock_keeps_no_reader_out_and_a_writer_keeps_all_out() {
        let home = tempfile::tempdir().unwrap();
        let open = || File::open(home.path()).unwrap();
        let reader = FileLock::try_shared(open()).unwrap().unwrap();
        std::thread::scope(|threads| {
            let started = Instant::now();
            let writes = threads.spawn(|| lock_after_readers(open()).unwrap());
            // A reader that holds its lock for long, as on a busy machine.
            while started.elapsed() < Duration::from_millis(100) && !writes.is_finished() {
                std::thread::yield_now();
            }
            assert_eq!(writer(&open()), None, "a reader does not write");
            drop(reader);
            let written = writes.join().unwrap().unwrap();
            let another_descriptor = written.try_clone().unwrap();
            // Not every file system tells.
            let told = writer(&open()).unwrap_or_else(std::process::id);
            assert_eq!(told, std::process::id());
            assert!(FileLock::try_shared(open()).unwrap().is_none());
            assert!(FileLock::try_exclusive(open()).unwrap().is_none());
            assert!(lock_after_readers(open()).unwrap().is_none());
            // As in a child process between its fork and its exec.
            drop(written);
            assert!(FileLock::try_exclusive(open()).unwrap().is_some());
            drop(another_descriptor);
        });
    }
}
