//! `ListenerNote`: notes on the addresses that the servers of a state folder listen on, so that no command connects to what decides about it.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::file_lock::FileLock;
use haft_builtins::web::network::OwnListeners;

use crate::plain_file;

/// The folder of the notes in the state folder: one file per port, locked while a server listens on it.
const FOLDER: &str = "listening";

/// Maximum wait for a process that checks whether a note still counts: it holds the lock for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A server's note; dropped, it is removed.
#[derive(Debug)]
pub struct ListenerNote {
    lock: Option<FileLock>,
    path: PathBuf,
}

impl ListenerNote {
    /// Notes that a server of this state folder listens on this address.
    ///
    /// # Errors
    /// The note cannot be written or locked.
    pub fn note(home: &Path, address: SocketAddr) -> io::Result<Self> {
        let folder = home.join(FOLDER);
        plain_file::private_folder(&folder)?;
        let path = folder.join(address.port().to_string());
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).mode(0o600);
        let lock = FileLock::shared_within(options.open(&path)?, LOCK_TIMEOUT)?;
        let lock = lock.ok_or_else(|| io::Error::from(io::ErrorKind::ResourceBusy))?;
        Ok(Self {
            lock: Some(lock),
            path,
        })
    }
}

impl Drop for ListenerNote {
    fn drop(&mut self) {
        drop(self.lock.take());
        // Another server may listen on the same port of another address.
        if matches!(is_held(&self.path), Ok(false)) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn is_held(path: &Path) -> io::Result<bool> {
    Ok(FileLock::try_exclusive(File::open(path)?)?.is_none())
}

/// Reads the notes of a state folder.
#[derive(Debug, Clone)]
pub(crate) struct Listeners(PathBuf);

impl Listeners {
    pub(crate) fn of(home: &Path) -> Self {
        Self(home.join(FOLDER))
    }
}

impl OwnListeners for Listeners {
    fn listen_at(&self, address: SocketAddr) -> bool {
        match is_held(&self.0.join(address.port().to_string())) {
            Ok(false) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            // Also if it is unknown: a command that reaches the console could approve itself.
            Ok(true) | Err(_) => is_of_this_machine(address.ip()),
        }
    }
}

/// Returns whether this machine has the address: only then can it be bound.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use haft_builtins::web::network::OwnListeners as _;

    use super::{ListenerNote, Listeners};

    #[test]
    fn a_server_is_known_as_long_as_it_listens() {
        let home = tempfile::tempdir().unwrap();
        let listeners = Listeners::of(home.path());
        let at = |text: &str| listeners.listen_at(text.parse::<SocketAddr>().unwrap());
        assert!(!at("127.0.0.1:4310"));
        let note = || ListenerNote::note(home.path(), "127.0.0.1:4310".parse().unwrap()).unwrap();
        let (one, two) = (note(), note());
        for (place, known) in [
            ("127.0.0.1:4310", true),
            ("[::1]:4310", true),
            ("127.0.0.1:4311", false),
            ("203.0.113.9:4310", false),
        ] {
            assert_eq!(at(place), known, "{place}");
        }
        drop(one);
        assert!(at("127.0.0.1:4310"));
        drop(two);
        assert!(!at("127.0.0.1:4310"));
        // A file that a killed server left behind does not count.
        std::fs::write(home.path().join("listening/4312"), "").unwrap();
        assert!(!at("127.0.0.1:4312"));
    }
}
