//! The pace of notices: at most one every few seconds, across all haft processes of a user.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use haft::file_lock::FileLock;

use crate::home::Home;
use crate::plain_file;

/// Minimum time between two notices.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// How soon to retry while another process shows a notice.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Held by the process whose turn it is; its modification time is that of the last notice.
const LOCK_FILE: &str = "servers/notified.lock";

/// The turn to show a notice.
#[derive(Debug)]
pub(super) struct NoticeTurn(FileLock);

impl NoticeTurn {
    /// Takes the turn; returns how long to wait if it is too early.
    pub(super) fn take(home: &Home) -> io::Result<Result<Self, Duration>> {
        let path = home.join(LOCK_FILE);
        plain_file::private_folder(path.parent().unwrap_or(home.path()))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        // A file that is just being created records no notice yet.
        let (file, fresh) = match options.clone().create_new(true).open(&path) {
            Ok(file) => (file, true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => (options.open(&path)?, false),
            Err(e) => return Err(e),
        };
        let Some(file) = FileLock::try_exclusive(file)? else {
            return Ok(Err(RETRY_DELAY));
        };
        let meta = file.metadata()?;
        if fresh || meta.len() == 0 {
            return Ok(Ok(Self(file)));
        }
        // A clock that was set back must not silence notices.
        let age = meta.modified()?.elapsed().unwrap_or(MIN_INTERVAL);
        match MIN_INTERVAL.checked_sub(age) {
            Some(rest) if !rest.is_zero() => Ok(Err(rest)),
            _ => Ok(Ok(Self(file))),
        }
    }

    /// Records that a notice is shown now.
    pub(super) fn record_notice(self) {
        let noted = self.0.set_len(0).and_then(|()| (&*self.0).write_all(b"\n"));
        if let Err(error) = noted {
            tracing::warn!(%error, "note that a notice was shown");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MIN_INTERVAL, NoticeTurn, RETRY_DELAY};
    use crate::environment::Environment;
    use crate::home::Home;

    #[test]
    fn one_process_at_a_time_shows_one_notice_in_a_period() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), &Environment::default()).unwrap();
        let turn = NoticeTurn::take(&home).unwrap().unwrap();
        assert_eq!(NoticeTurn::take(&home).unwrap().unwrap_err(), RETRY_DELAY);
        // Nothing was shown, so the next turn may be taken.
        drop(turn);
        NoticeTurn::take(&home).unwrap().unwrap().record_notice();
        let wait = NoticeTurn::take(&home).unwrap().unwrap_err();
        assert!(wait > RETRY_DELAY && wait <= MIN_INTERVAL, "{wait:?}");
    }
}
