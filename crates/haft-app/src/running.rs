//! Servers that run on this state folder: each keeps a record while it runs, by which other processes find its console.
//!
//! A record is a file that its server holds a lock on. The system releases the lock when the process ends, however it ends, so a record
//! that can be locked belongs to a server that has exited.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft::file_lock::FileLock;
use haft::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Settings;
use crate::home::Home;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};

pub mod background;
pub mod login;
pub mod upstream;
pub mod watched;

/// The folder in haft's state folder.
const FOLDER: &str = "servers";
/// The suffix of a record's name.
const RECORD_SUFFIX: &str = ".json";
/// Maximum size of a record, in bytes.
const MAX_RECORD: u64 = 64 << 10;
/// Maximum number of records that are read.
const MAX_RECORDS: usize = 256;
/// The age at which an incomplete record is removed.
const ABANDONED_AGE: Duration = Duration::from_secs(60);

/// A server's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerDescription {
    /// haft's version.
    pub version: String,
    /// The address of its console for browsers, without a trailing slash.
    pub url: String,
    /// The folder that it serves; `None` for the background server, which has no folder.
    pub workspace: Option<String>,
    /// The database that it shows; see [`store`].
    pub store: String,
    /// Its process id, for display only: it may be from another container.
    pub pid: u32,
    /// When it became ready, in nanoseconds since 1970, UTC.
    pub began: i128,
}

/// Names the database of approvals that the settings choose: servers with the same name show the same requests.
pub fn store(settings: &Settings) -> String {
    match settings.text("store.url") {
        None => "home".to_owned(),
        // A URL may contain a password.
        Some(url) => {
            let digest = Sha256::digest(url.as_bytes());
            hex(digest.get(..16).unwrap_or_default())
        }
    }
}

/// A record that is removed when this value is dropped.
#[derive(Debug)]
pub struct ServerAnnouncement {
    path: PathBuf,
    /// Holds the lock.
    file: FileLock,
}

impl ServerAnnouncement {
    /// Writes the record of this server.
    ///
    /// # Errors
    /// The state folder cannot be written.
    pub fn new(home: &Home, record: &ServerDescription) -> Result<Self, Problem> {
        let folder = folder(home);
        let place = |e: io::Error| file_problem("announce the server", &folder, &e);
        plain_file::private_folder(&folder).map_err(place)?;
        let name = plain_file::random_hex(8).map_err(place)?;
        let draft = folder.join(format!(".{name}"));
        let path = folder.join(format!("{name}{RECORD_SUFFIX}"));
        let published = publish(&draft, &path, record);
        if published.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft);
        }
        let file = published.map_err(place)?;
        Ok(Self { path, file })
    }

    /// Returns whether the record still exists: removing it is how the background server is asked to stop.
    pub fn stands(&self) -> bool {
        let (Ok(there), Ok(ours)) = (fs::symlink_metadata(&self.path), self.file.metadata()) else {
            return false;
        };
        (there.dev(), there.ino()) == (ours.dev(), ours.ino())
    }
}

impl Drop for ServerAnnouncement {
    fn drop(&mut self) {
        if self.stands() {
            // If this fails, the record is that of a server that has exited, which readers detect.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a record. It is locked before it gets its name, so that no process finds it unlocked.
fn publish(draft: &Path, path: &Path, record: &ServerDescription) -> io::Result<FileLock> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    let file = FileLock::try_exclusive(file)?;
    let file = file.ok_or_else(|| io::Error::from(io::ErrorKind::ResourceBusy))?;
    let text = serde_json::to_string(record).map_err(io::Error::other)?;
    (&*file).write_all(text.as_bytes())?;
    fs::rename(draft, path)?;
    Ok(file)
}

/// A running server.
#[derive(Debug)]
pub struct RunningServer {
    /// Its description of itself.
    pub record: ServerDescription,
    path: PathBuf,
    file: File,
}

impl RunningServer {
    /// Returns whether it is the background server.
    pub fn is_background(&self) -> bool {
        self.record.workspace.is_none()
    }

    /// Removes its record, which stops a background server, and waits until it has exited. Blocks.
    ///
    /// # Errors
    /// The record cannot be removed, or the server has not exited within this time.
    pub fn stop(self, within: Duration) -> Result<(), Problem> {
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(file_problem("stop the server", &self.path, &e));
            }
            _ => {}
        }
        if waits_for(&self.file, within) {
            return Ok(());
        }
        let problem = format!(
            "the server did not end within {} s: process {}",
            within.as_secs(),
            self.record.pid
        );
        Err(Problem::failed(problem).advise("end the process"))
    }
}

/// Waits until a lock is free, up to `within`.
fn waits_for(file: &File, within: Duration) -> bool {
    const POLL_INTERVAL: Duration = Duration::from_millis(20);
    let looks = within.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..=looks {
        if file.try_lock_shared().is_ok() {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}

/// Returns the running servers, newest first. Removes the records of those that have exited. Blocks on disk access.
///
/// # Errors
/// The folder of records cannot be read.
pub fn servers(home: &Home) -> Result<Vec<RunningServer>, Problem> {
    let folder = folder(home);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(file_problem("look for running servers", &folder, &e)),
    };
    let mut found = Vec::new();
    for entry in entries.take(MAX_RECORDS).flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            remove_abandoned(&path);
        } else if name.ends_with(RECORD_SUFFIX) {
            found.extend(running_server(path));
        }
    }
    found.sort_by_key(|server| std::cmp::Reverse(server.record.began));
    Ok(found)
}

/// Returns the server of a record, if it is running and this haft understands the record.
fn running_server(path: PathBuf) -> Option<RunningServer> {
    let file = File::open(&path).ok()?;
    if file.try_lock_shared().is_ok() {
        // Another process may remove it at the same time.
        let _ = fs::remove_file(&path);
        return None;
    }
    let text = plain_file::read(&path, MAX_RECORD).ok()?;
    let record: ServerDescription = serde_json::from_str(&text).ok()?;
    let is_address = |url: &str| {
        let plain = url.bytes().all(|b| b.is_ascii_graphic());
        plain && (url.starts_with("http://") || url.starts_with("https://"))
    };
    let server = RunningServer { record, path, file };
    is_address(&server.record.url).then_some(server)
}

/// Removes a record whose server exited before completing it.
fn remove_abandoned(path: &Path) {
    let age = fs::metadata(path).and_then(|meta| meta.modified());
    let age = age.ok().and_then(|time| time.elapsed().ok());
    let Ok(file) = File::open(path) else { return };
    let free = file.try_lock_shared().is_ok();
    if free && age.is_some_and(|age| age > ABANDONED_AGE) {
        let _ = fs::remove_file(path);
    }
}

/// Chooses among the servers that show this database: the one of this folder, else the one in the background, else the newest.
pub fn choose(servers: Vec<RunningServer>, workspace: &str, store: &str) -> Option<RunningServer> {
    let rank = |server: &RunningServer| match &server.record.workspace {
        Some(folder) if folder == workspace => 0,
        None => 1,
        Some(_) => 2,
    };
    let shows = servers
        .into_iter()
        .filter(|server| server.record.store == store);
    // Of equal rank, the first is the newest.
    shows.min_by_key(rank)
}

fn folder(home: &Home) -> PathBuf {
    home.join(FOLDER)
}

fn file_problem(what: &str, path: &Path, error: &io::Error) -> Problem {
    Problem::failed(format!("{what}: {error}"))
        .at(SourceLocation::file(path))
        .advise("make the state folder writable, or choose another with --home or HAFT_HOME")
}

#[cfg(test)]
mod tests;
