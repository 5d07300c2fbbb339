//! Locks of what one process writes and others look at: a run's folder, its journal. A look never keeps a writer out.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often a lock is tried that another process has to write, which may be about to leave, and how long between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(2);
/// How often one is tried that others only look at: on a busy machine a look lasts.
const LOOKS: u32 = 5_000;

/// Locks a file or a folder for this process alone, until it is closed; false where another one writes it.
pub(crate) fn take(file: impl AsFd) -> io::Result<bool> {
    let (mut written, mut looked_at) = (0, 0);
    while written < TRIES && looked_at < LOOKS {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
        if look(&file)? {
            flock(&file, FlockOperation::Unlock)?;
            looked_at += 1;
        } else {
            written += 1;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(false)
}

/// Locks a file or a folder together with others that look, until it is closed: nobody begins to write it meanwhile. False
/// where a process, this one or another, has it for itself.
pub(crate) fn look(file: impl AsFd) -> io::Result<bool> {
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
    fn who_only_looks_keeps_nobody_out_and_who_writes_does() {
        let home = tempfile::tempdir().unwrap();
        let open = || File::open(home.path()).unwrap();
        let looking = open();
        assert!(look(&looking).unwrap());
        std::thread::scope(|threads| {
            let begun = Instant::now();
            let writes = threads.spawn(|| {
                let file = open();
                take(&file).unwrap().then_some(file)
            });
            // A look that lasts, as on a busy machine.
            while begun.elapsed() < Duration::from_millis(100) && !writes.is_finished() {
                std::thread::yield_now();
            }
            drop(looking);
            let written = writes.join().unwrap().unwrap();
            assert!(!look(open()).unwrap());
            assert!(!take(open()).unwrap());
            drop(written);
            assert!(look(open()).unwrap());
        });
    }
}
