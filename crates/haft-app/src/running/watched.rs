//! Whether a person looks at what waits: a lock that processes hold together, each while a page of its console is seen or its
//! inbox is open at a terminal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::home::Home;
use crate::plain_file;
use crate::running::folder;

const FILE: &str = "watched.lock";
/// How often a lock is tried that somebody looks at in this very moment.
const TRIES: usize = 20;

/// What waits is looked at by way of this process, as long as this value lives.
#[derive(Debug)]
pub struct Watching {
    _lock: File,
}

impl Watching {
    /// Says so to the processes that share the state folder.
    ///
    /// # Errors
    /// The state folder cannot be written.
    pub fn begin(home: &Home) -> io::Result<Self> {
        plain_file::private_folder(&folder(home))?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder(home).join(FILE))?;
        for _ in 0..TRIES {
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => std::thread::yield_now(),
                done => return done.map(|()| Self { _lock: file }).map_err(Into::into),
            }
        }
        Err(Errno::WOULDBLOCK.into())
    }
}

/// Whether what waits is looked at by way of any process.
pub fn is_watched(home: &Home) -> bool {
    let Ok(file) = File::open(folder(home).join(FILE)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::{Watching, is_watched};
    use crate::environment::Environment;
    use crate::home::Home;

    #[test]
    fn a_console_is_watched_while_any_page_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), &Environment::default()).unwrap();
        assert!(!is_watched(&home));
        let one = Watching::begin(&home).unwrap();
        let two = Watching::begin(&home).unwrap();
        drop(one);
        assert!(is_watched(&home));
        drop(two);
        assert!(!is_watched(&home));
    }
}
