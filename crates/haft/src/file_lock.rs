//! File locks with one writer and many readers: a run's folder, its journal. A reader's short lock never makes a writer fail.

use std::io;
use std::os::fd::AsFd;
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

#[cfg(test)]
mod tests {
    use std::fs::File;
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
            drop(reader);
            let written = writes.join().unwrap().unwrap();
            assert!(!try_lock_shared(open()).unwrap());
            assert!(!try_lock(open()).unwrap());
            drop(written);
            assert!(try_lock_shared(open()).unwrap());
        });
    }
}
