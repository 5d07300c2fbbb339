//! `ChangeLog`: the change sets of a run and its saved files, in `runs/<run-id>/changes/`.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::{self, Receiver, Sender};

mod set;

pub use crate::file_hash::MAX_FILE_BYTES;
pub(super) use set::{BegunSet, OpenSet};

use crate::change::{ChangeEntry, FileHash};
use crate::file_hash::hash_file;
use haft_types::call::{CallId, RunId};
use haft_types::run_folder::{InvalidRunId, run_dir};

/// The folder of the log, in the run's folder.
const LOG_FOLDER: &str = "changes";
/// The log file in it.
const LOG_FILE: &str = "log.jsonl";
/// The folder of saved files, each named by the SHA-256 of its content.
const FILES_FOLDER: &str = "files";
/// The folder of the copy-on-write views that commands work on.
const VIEWS_FOLDER: &str = "views";
/// The folder of what the run's commands added to the user's caches.
const CACHES_FOLDER: &str = "caches";
/// The folder, in haft's state folder, of what the commands of groups of runs added to the user's caches.
const GROUP_CACHES_FOLDER: &str = "session-caches";
/// Maximum number of bytes of saved files per run.
pub const MAX_RUN_BYTES: u64 = 1 << 30;
/// Maximum length of a log line, and of all lines of a set, in bytes.
const MAX_LINE: u64 = 64 << 20;
/// Maximum size of a file that is read as a whole to be saved; a longer one is copied in pieces.
const MAX_READ_AT_ONCE: u64 = 128 << 10;
/// Maximum number of saved files synced one by one.
const MAX_SYNCED: usize = 32;
/// Maximum number of change sets buffered for a slow watcher.
const WATCHER_BUFFER: usize = 256;
/// Maximum number of runs in the cache of saved sizes.
const MAX_RUNS: usize = 1_000;

/// The change logs of all runs in a state folder. A run's folder must exist: its record creates it.
#[derive(Debug)]
pub struct ChangeLog {
    home: PathBuf,
    /// Bytes of saved files by run.
    saved_bytes: Mutex<HashMap<RunId, u64>>,
    made: Sender<ChangesMade>,
}

/// A change set that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesMade {
    /// The run of the call.
    pub run: RunId,
    /// The call that made it.
    pub call: CallId,
    /// Number of paths it changed.
    pub paths: usize,
}

/// Changes that are made together and recorded before they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    /// The call that made them.
    pub call: CallId,
    /// The time they began, RFC 3339.
    pub at: String,
    /// The changes, in order.
    pub changes: Vec<ChangeEntry>,
    /// Whether they were made; `None` if the process ended first, or failed in between.
    pub done: Option<bool>,
}

/// The reason why a run's change log cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The run id is malformed.
    #[error(transparent)]
    Run(#[from] InvalidRunId),
    /// A line is damaged.
    #[error("line {line} of {}: {why}", path.display())]
    Line {
        /// The log file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// Reading failed.
    #[error("read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// A line of the log.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChangeLogLine {
    /// A change set begins.
    Set {
        v: u32,
        set: String,
        call: String,
        at: String,
        changes: Vec<ChangeEntry>,
    },
    /// More changes of a set that has many.
    More {
        set: String,
        changes: Vec<ChangeEntry>,
    },
    /// A change set has ended.
    End { set: String, done: bool },
}

static NEXT_DRAFT: AtomicU64 = AtomicU64::new(0);

impl ChangeLog {
    /// Creates the logs below `home`, haft's state folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            saved_bytes: Mutex::default(),
            made: broadcast::channel(WATCHER_BUFFER).0,
        }
    }

    /// Returns a receiver for the change sets that this process makes from now on.
    pub fn watch(&self) -> Receiver<ChangesMade> {
        self.made.subscribe()
    }

    /// Notifies watchers of a change set.
    pub(super) fn tell(&self, made: ChangesMade) {
        // There may be no watchers.
        let _ = self.made.send(made);
    }

    /// Computes the SHA-256 of a file and saves a copy, if the quota allows.
    pub(super) fn save_file(&self, run: &RunId, file: &mut File) -> io::Result<Option<FileHash>> {
        let bytes = file.metadata()?.len();
        if bytes > MAX_FILE_BYTES {
            return Ok(None);
        }
        let files = self.ensure_folder(run)?.join(FILES_FOLDER);
        let small = match bytes {
            ..=MAX_READ_AT_ONCE => read_whole(file, bytes)?,
            _ => None,
        };
        if let Some(content) = &small {
            // Rewriting a file that is already saved is expensive; a saved file that a crash left empty is replaced.
            let sha256 = FileHash::of(content);
            let saved = read_regular_file(&files.join(sha256.to_string()));
            if saved.is_ok_and(|saved| saved == *content) || !self.reserve(run, &files, bytes)? {
                return Ok(Some(sha256));
            }
            return self.write_saved(run, &files, |mut copy| {
                copy.write_all(content)?;
                Ok(Some(sha256))
            });
        }
        if !self.reserve(run, &files, bytes)? {
            return hash_file(file, None);
        }
        self.write_saved(run, &files, |copy| hash_file(file, Some(copy)))
    }

    /// Saves what `write` writes under the SHA-256 that it returns.
    fn write_saved(
        &self,
        run: &RunId,
        files: &Path,
        write: impl FnOnce(File) -> io::Result<Option<FileHash>>,
    ) -> io::Result<Option<FileHash>> {
        write_draft(files, write).inspect_err(|_| {
            // The reservation is not used: the size is counted again.
            self.saved_bytes.lock().remove(run);
        })
    }

    /// Records the end of a set.
    pub(super) fn end(&self, run: &RunId, set: &BegunSet, done: bool) -> io::Result<()> {
        let set = set.name.clone();
        self.append(run, &ChangeLogLine::End { set, done })
            .map(drop)
    }

    /// Syncs the log of a run and these saved files to disk; for many files, the whole file system.
    pub(super) fn sync(&self, run: &RunId, saved: &[FileHash]) -> io::Result<()> {
        let folder = self.ensure_folder(run)?;
        let log = File::open(folder.join(LOG_FILE))?;
        if saved.len() > MAX_SYNCED {
            return Ok(rustix::fs::syncfs(&log)?);
        }
        let files = folder.join(FILES_FOLDER);
        for sha256 in saved {
            match File::open(files.join(sha256.to_string())) {
                Ok(file) => file.sync_data()?,
                // Not saved because of the quota.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        File::open(files)?.sync_all()?;
        log.sync_data()?;
        File::open(folder)?.sync_all()
    }

    /// Appends a line and returns its length.
    fn append(&self, run: &RunId, line: &ChangeLogLine) -> io::Result<u64> {
        let path = self.ensure_folder(run)?.join(LOG_FILE);
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if bytes.len() as u64 > MAX_LINE {
            return Err(too_much());
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut log = options.open(path)?;
        drop_partial_line(&log)?;
        // A single write: a line is complete, or cut at the end of the file by a full disk.
        log.write_all(&bytes)?;
        Ok(bytes.len() as u64)
    }

    fn folder(&self, run: &RunId) -> Result<PathBuf, InvalidRunId> {
        Ok(run_dir(&self.home, run.as_str())?.join(LOG_FOLDER))
    }

    /// Returns haft's state folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the folder for the views of a run's commands; it may not exist.
    ///
    /// # Errors
    /// The run id is malformed.
    pub fn views_folder(&self, run: &RunId) -> Result<PathBuf, InvalidRunId> {
        Ok(self.folder(run)?.join(VIEWS_FOLDER))
    }

    /// Returns the folder for what a run's commands add to the user's caches; it may not exist.
    ///
    /// # Errors
    /// The run id is malformed.
    pub fn caches_folder(&self, run: &RunId) -> Result<PathBuf, InvalidRunId> {
        Ok(self.folder(run)?.join(CACHES_FOLDER))
    }

    /// Returns the existing folders of [`views_folder`](Self::views_folder) of all runs.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub fn all_views(&self) -> io::Result<Vec<PathBuf>> {
        self.run_folders(VIEWS_FOLDER)
    }

    /// Returns the folder for what the commands of a group of runs add to the user's caches; it may not exist.
    ///
    /// # Errors
    /// The group's name is malformed.
    pub fn group_caches_folder(&self, group: &str) -> Result<PathBuf, InvalidRunId> {
        run_dir(&self.home, group)?;
        Ok(self.home.join(GROUP_CACHES_FOLDER).join(group))
    }

    /// Returns the existing folders of [`caches_folder`](Self::caches_folder) of all runs, and of
    /// [`group_caches_folder`](Self::group_caches_folder) of all groups.
    ///
    /// # Errors
    /// The runs or groups cannot be listed.
    pub fn all_caches(&self) -> io::Result<Vec<PathBuf>> {
        let mut all = self.run_folders(CACHES_FOLDER)?;
        match fs::read_dir(self.home.join(GROUP_CACHES_FOLDER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            groups => {
                for group in groups? {
                    all.push(group?.path());
                }
            }
        }
        Ok(all)
    }

    /// Returns the folders of this name. Follows no link, since its target does not belong to the log.
    fn run_folders(&self, name: &str) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let runs = match fs::read_dir(self.home.join("runs")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            runs => runs?,
        };
        for run in runs {
            let run = run?.path();
            let changes = run.join(LOG_FOLDER);
            let folder = changes.join(name);
            let is_folder =
                |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
            if [&run, &changes, &folder].into_iter().all(is_folder) {
                found.push(folder);
            }
        }
        Ok(found)
    }

    /// Returns the folder of a run's changes, created if missing.
    fn ensure_folder(&self, run: &RunId) -> io::Result<PathBuf> {
        let folder = self.folder(run).map_err(io::Error::other)?;
        let files = folder.join(FILES_FOLDER);
        if !files.is_dir() {
            for folder in [&folder, &files] {
                match DirBuilder::new().mode(0o700).create(folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => {}
                }
            }
        }
        Ok(folder)
    }

    /// Reserves bytes in a run's quota; returns whether they fit.
    fn reserve(&self, run: &RunId, files: &Path, bytes: u64) -> io::Result<bool> {
        let mut saved_bytes = self.saved_bytes.lock();
        if saved_bytes.len() >= MAX_RUNS {
            saved_bytes.clear();
        }
        let held = match saved_bytes.get(run) {
            Some(held) => *held,
            None => held_bytes(files)?,
        };
        let fits = held.saturating_add(bytes) <= MAX_RUN_BYTES;
        let held = if fits { held + bytes } else { held };
        saved_bytes.insert(run.clone(), held);
        Ok(fits)
    }

    /// Returns how many bytes of files can still be saved for a run; 0 if that cannot be told.
    pub fn room(&self, run: &RunId) -> u64 {
        if let Some(held) = self.saved_bytes.lock().get(run) {
            return MAX_RUN_BYTES.saturating_sub(*held);
        }
        let Ok(folder) = self.folder(run) else {
            return 0;
        };
        match held_bytes(&folder.join(FILES_FOLDER)) {
            Ok(held) => MAX_RUN_BYTES.saturating_sub(held),
            Err(error) if error.kind() == io::ErrorKind::NotFound => MAX_RUN_BYTES,
            Err(_) => 0,
        }
    }

    /// Returns the change sets of a run, in order.
    ///
    /// # Errors
    /// The run id is malformed, or the log is damaged or cannot be read.
    pub fn read(&self, run: &RunId) -> Result<Vec<ChangeSet>, LogError> {
        let (mut sets, mut names) = (Vec::<ChangeSet>::new(), HashMap::new());
        self.each_line(run, |line| match line {
            ChangeLogLine::Set {
                set,
                call,
                at,
                changes,
                ..
            } => {
                names.insert(set, sets.len());
                sets.push(ChangeSet {
                    call: CallId::new(call),
                    at,
                    changes,
                    done: None,
                });
            }
            ChangeLogLine::More { set, changes } => {
                if let Some(at) = names.get(&set).and_then(|at| sets.get_mut(*at)) {
                    at.changes.extend(changes);
                }
            }
            ChangeLogLine::End { set, done } => {
                if let Some(at) = names.get(&set).and_then(|at| sets.get_mut(*at)) {
                    at.done = Some(done);
                }
            }
        })?;
        Ok(sets)
    }

    /// Returns the size of a run's log in bytes; 0 if it has none.
    pub fn bytes(&self, run: &RunId) -> u64 {
        let folder = self.folder(run).ok();
        let meta = folder.and_then(|folder| fs::metadata(folder.join(LOG_FILE)).ok());
        meta.map_or(0, |meta| meta.len())
    }

    /// Counts the paths that the change sets of a run name, without holding their changes.
    ///
    /// # Errors
    /// The run id is malformed, or the log is damaged or cannot be read.
    pub fn count_paths(&self, run: &RunId) -> Result<u64, LogError> {
        let (hashes, mut paths) = (RandomState::new(), HashSet::new());
        self.each_line(run, |line| match line {
            ChangeLogLine::Set { changes, .. } | ChangeLogLine::More { changes, .. } => {
                paths.extend(changes.iter().map(|change| hashes.hash_one(&*change.path)));
            }
            ChangeLogLine::End { .. } => {}
        })?;
        Ok(paths.len() as u64)
    }

    /// Passes the lines of a run's log to `each`.
    fn each_line(&self, run: &RunId, mut each: impl FnMut(ChangeLogLine)) -> Result<(), LogError> {
        let path = self.folder(run)?.join(LOG_FILE);
        let failed = |source| LogError::Io {
            path: path.clone(),
            source,
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let mut bounded = lines.by_ref().take(MAX_LINE);
            if bounded.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            match serde_json::from_slice(&line) {
                Ok(line) => each(line),
                // A killed process may leave an incomplete line; it had not changed anything yet.
                Err(_) if !line.ends_with(b"\n") && (line.len() as u64) < MAX_LINE => break,
                Err(error) => {
                    return Err(LogError::Line {
                        path: path.clone(),
                        line: number,
                        why: error.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns a saved file by its SHA-256; `None` if it was not saved.
    ///
    /// # Errors
    /// It cannot be read, or its hash differs.
    pub fn load_file(&self, run: &RunId, sha256: &FileHash) -> Result<Option<Vec<u8>>, LogError> {
        let path = self
            .folder(run)?
            .join(FILES_FOLDER)
            .join(sha256.to_string());
        let failed = |source| LogError::Io {
            path: path.clone(),
            source,
        };
        let bytes = match read_regular_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if FileHash::of(&bytes) != *sha256 {
            return Err(failed(io::Error::other("it was changed since it was kept")));
        }
        Ok(Some(bytes))
    }
}

/// Returns the size of all saved files in a folder.
fn held_bytes(files: &Path) -> io::Result<u64> {
    fs::read_dir(files)?
        .map(|entry| Ok(entry?.metadata()?.len()))
        .sum()
}

/// Saves what `write` writes to a file under the SHA-256 that it returns; saves nothing if it returns `None`.
fn write_draft(
    files: &Path,
    write: impl FnOnce(File) -> io::Result<Option<FileHash>>,
) -> io::Result<Option<FileHash>> {
    let number = NEXT_DRAFT.fetch_add(1, Ordering::Relaxed);
    let draft = files.join(format!(".draft-{}-{number}", std::process::id()));
    let copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    let written = write(copy).and_then(|sha256| {
        match &sha256 {
            Some(sha256) => fs::rename(&draft, files.join(sha256.to_string()))?,
            // It grew over the limit while it was read.
            None => fs::remove_file(&draft)?,
        }
        Ok(sha256)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

/// Reads a file of about this size; `None` if it has grown.
fn read_whole(file: &File, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let most = usize::try_from(bytes).map_err(io::Error::other)?;
    let (mut content, mut all) = (vec![0; most + 1], 0);
    while let Some(rest) = content.get_mut(all..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, all as u64) {
            Ok(0) => {
                content.truncate(all);
                return Ok(Some(content));
            }
            Ok(count) => all += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Reads a regular file up to the size limit.
fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return Err(io::Error::other("it is not a file that was kept"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn too_much() -> io::Error {
    io::Error::other("it is too much for one note (64 MiB)")
}

/// Removes an incomplete line that a killed process left; it had not changed anything yet.
fn drop_partial_line(log: &File) -> io::Result<()> {
    let length = log.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        log.read_exact_at(&mut last, length - 1)?;
    }
    if last == [b'\n'] {
        return Ok(());
    }
    let mut bytes = Vec::new();
    (&*log).read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    log.set_len(whole.map_or(0, |at| at as u64 + 1))
}
