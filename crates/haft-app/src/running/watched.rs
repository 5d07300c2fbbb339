//! Whether a user is watching the pending requests: processes hold a shared lock while a page of their console is visible or their inbox is
//! open in a terminal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use haft::file_lock::FileLock;

use crate::home::Home;
use crate::plain_file;
use crate::running::folder;

const LOCK_FILE: &str = "watched.lock";
/// Maximum wait for another process that checks: it holds the lock for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Marks this process as showing pending requests until dropped.
#[derive(Debug)]
pub struct WatchGuard {
    _lock: FileLock,
}

impl WatchGuard {
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
        let lock = FileLock::shared_within(file, LOCK_TIMEOUT)?;
        let busy = || io::Error::from(io::ErrorKind::ResourceBusy);
        Ok(Self {
            _lock: lock.ok_or_else(busy)?,
        })
    }
}

/// Returns whether any process is showing the pending requests to a user.
pub fn is_watched(home: &Home) -> bool {
    let Ok(file) = File::open(folder(home).join(LOCK_FILE)) else {
        return false;
    };
    matches!(FileLock::try_exclusive(file), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::{WatchGuard, is_watched};
    use crate::environment::Environment;
    use crate::home::Home;

    #[test]
    fn a_console_is_watched_while_any_page_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), &Environment::default()).unwrap();
        assert!(!is_watched(&home));
        let one = WatchGuard::begin(&home).unwrap();
        let two = WatchGuard::begin(&home).unwrap();
        drop(one);
        assert!(is_watched(&home));
        drop(two);
        assert!(!is_watched(&home));
    }
}
