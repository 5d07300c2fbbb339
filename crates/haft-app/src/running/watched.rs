//! Whether a user is watching the pending requests: processes hold a shared lock while a page of their console is visible or their inbox is
//! open in a terminal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::home::Home;
use crate::plain_file;
use crate::running::folder;

const LOCK_FILE: &str = "watched.lock";
/// How often to try for a lock that another process holds for an instant while it checks.
const MAX_TRIES: usize = 20;

/// Marks this process as showing pending requests until dropped.
#[derive(Debug)]
pub struct Watching {
    _lock: File,
}

impl Watching {
    /// Tells the processes that share the state folder.
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
            .open(folder(home).join(LOCK_FILE))?;
        for _ in 0..MAX_TRIES {
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => std::thread::yield_now(),
                done => return done.map(|()| Self { _lock: file }).map_err(Into::into),
            }
        }
        Err(Errno::WOULDBLOCK.into())
    }
}

/// Returns whether any process is showing the pending requests to a user.
pub fn is_watched(home: &Home) -> bool {
    let Ok(file) = File::open(folder(home).join(LOCK_FILE)) else {
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
