//! File locks with one writer and many readers: a run's folder, its journal. A reader's short lock never makes a writer fail.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Number of tries while a writer has the lock, which may be about to release it, and the pause between tries.
const MAX_TRIES: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(2);
/// Number of tries while only readers have the lock: on a busy machine they may hold it for long.
const MAX_READER_TRIES: u32 = 5_000;

/// Locks a file or folder exclusively until it is closed; returns false if a writer has it.
pub(crate) fn try_lock(file: impl AsFd) -> io::Result<bool> {
    let (mut writers, mut readers) = (0, 0);
    while writers < MAX_TRIES && readers < MAX_READER_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
        if try_lock_shared(&file)? {
            flock(&file, FlockOperation::Unlock)?;
            readers += 1;
        } else {
            writers += 1;
        }
        std::thread::sleep(RETRY_DELAY);
    }
    Ok(false)
}

/// Locks a file or folder, shared with other readers, until it is closed; returns false if a writer has it, in this process or
/// another.
pub(crate) fn try_lock_shared(file: impl AsFd) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The system's list of locks.
const LOCKS: &str = "/proc/locks";
/// Maximum size of that list, in bytes.
const MAX_LOCKS_BYTES: u64 = 8 << 20;

/// Returns the process that has locked a file or folder exclusively. `None` if there is none, or the system does not tell: the lock
/// may come from another machine or namespace, or the file system may not report its own number.
pub(crate) fn writer(file: &File) -> Option<u32> {
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
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_shared_lock_keeps_no_reader_out_and_a_writer_keeps_all_out() {
        let home = tempfile::tempdir().unwrap();
        let open = || File::open(home.path()).unwrap();
        let reader = open();
        assert!(try_lock_shared(&reader).unwrap());
        std::thread::scope(|threads| {
            let started = Instant::now();
            let writes = threads.spawn(|| {
                let file = open();
                try_lock(&file).unwrap().then_some(file)
            });
            // A reader that holds its lock for long, as on a busy machine.
            while started.elapsed() < Duration::from_millis(100) && !writes.is_finished() {
                std::thread::yield_now();
            }
            assert_eq!(writer(&open()), None, "a reader does not write");
            drop(reader);
            let written = writes.join().unwrap().unwrap();
            // Not every file system tells.
            let told = writer(&open()).unwrap_or_else(std::process::id);
            assert_eq!(told, std::process::id());
            assert!(!try_lock_shared(open()).unwrap());
            assert!(!try_lock(open()).unwrap());
            drop(written);
            assert!(try_lock_shared(open()).unwrap());
        });
    }
}
