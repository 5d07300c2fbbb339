//! `ChangeLog`: what the calls of a run changed, and the files as they were, in `runs/<run-id>/changes/`.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::audit::runs;
use crate::call::{CallId, RunId};
use crate::change::Changed;
use crate::clock;
use crate::spec::hex;

/// Below a run's folder.
const FOLDER: &str = "changes";
/// The log, in it.
const LOG: &str = "log.jsonl";
/// The files as they were, each by the SHA-256 of its bytes.
const FILES: &str = "files";
/// Largest file that is kept, and that is read to be compared.
pub const MOST_OF_FILE: u64 = 64 << 20;
/// Most bytes that are kept of one run.
pub const MOST_OF_RUN: u64 = 1 << 30;
/// Longest line that is read.
const LONGEST_LINE: u64 = 64 << 20;
/// Most runs of which it is remembered how much is kept; then it is looked up again.
const MOST_RUNS: usize = 1_000;

/// What the calls of runs changed, below haft's state folder. A run's folder must be there: its record makes it.
#[derive(Debug)]
pub struct ChangeLog {
    home: PathBuf,
    /// Bytes that are kept of each run.
    kept: Mutex<HashMap<RunId, u64>>,
}

/// Some changes that were made together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The call that made them.
    pub call: CallId,
    /// When it began to, RFC 3339.
    pub at: String,
    /// In the order in which they were made.
    pub changes: Vec<Changed>,
    /// Whether they were made; none where the process ended meanwhile, or where it failed in the middle.
    pub done: Option<bool>,
}

/// Why a run's changes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The run's name is none.
    #[error(transparent)]
    Run(#[from] runs::RunsError),
    /// A line is damaged.
    #[error("line {line} of {}: {why}", path.display())]
    Line {
        /// The log.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The system refused.
    #[error("read {}: {source}", path.display())]
    Io {
        /// What was read.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A line of the log.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    /// What is about to be changed.
    Set {
        v: u32,
        set: String,
        call: String,
        at: String,
        changes: Vec<Changed>,
    },
    /// What became of it.
    End { set: String, done: bool },
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl ChangeLog {
    /// Logs below `home`, haft's state folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            kept: Mutex::default(),
        }
    }

    /// Reads a file for its SHA-256 and keeps a copy, where it finds room.
    pub(super) fn keep(&self, run: &RunId, file: &mut File) -> io::Result<Option<String>> {
        let bytes = file.metadata()?.len();
        if bytes > MOST_OF_FILE {
            return Ok(None);
        }
        let files = self.made(run)?.join(FILES);
        if !self.reserve(run, &files, bytes)? {
            return digest(file, None);
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = files.join(format!(".draft-{}-{number}", std::process::id()));
        let copy = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        let kept = digest(file, Some(copy)).and_then(|sha256| {
            match &sha256 {
                Some(sha256) => fs::rename(&draft, files.join(sha256))?,
                // It grew while it was read.
                None => fs::remove_file(&draft)?,
            }
            Ok(sha256)
        });
        kept.inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
    }

    /// Notes what a call is about to change.
    pub(super) fn begin(
        &self,
        run: &RunId,
        call: &CallId,
        changes: Vec<Changed>,
    ) -> io::Result<String> {
        let (now, number) = (clock::now(), NEXT.fetch_add(1, Ordering::Relaxed));
        let set = format!("{now:x}-{}-{number}", std::process::id());
        let line = Line::Set {
            v: 1,
            set: set.clone(),
            call: call.to_string(),
            at: clock::rfc3339(now),
            changes,
        };
        self.add(run, &line)?;
        Ok(set)
    }

    /// Notes what became of it.
    pub(super) fn end(&self, run: &RunId, set: String, done: bool) -> io::Result<()> {
        self.add(run, &Line::End { set, done })
    }

    fn add(&self, run: &RunId, line: &Line) -> io::Result<()> {
        let path = self.made(run)?.join(LOG);
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if bytes.len() as u64 > LONGEST_LINE {
            return Err(io::Error::other("it is too much for one note (64 MiB)"));
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut log = options.open(path)?;
        end_line(&log)?;
        // One write: a line is there whole, or cut at the end of the file by a full disk.
        log.write_all(&bytes)
    }

    fn folder(&self, run: &RunId) -> Result<PathBuf, runs::RunsError> {
        Ok(runs::run_dir(&self.home, run.as_str())?.join(FOLDER))
    }

    /// The folder of a run's changes, made where it is not there.
    fn made(&self, run: &RunId) -> io::Result<PathBuf> {
        let folder = self.folder(run).map_err(io::Error::other)?;
        let files = folder.join(FILES);
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

    /// Whether so many bytes more may be kept of a run.
    fn reserve(&self, run: &RunId, files: &Path, bytes: u64) -> io::Result<bool> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_RUNS {
            kept.clear();
        }
        let held = match kept.get(run) {
            Some(held) => *held,
            None => fs::read_dir(files)?
                .map(|entry| Ok(entry?.metadata()?.len()))
                .sum::<io::Result<u64>>()?,
        };
        let fits = held.saturating_add(bytes) <= MOST_OF_RUN;
        let held = if fits { held + bytes } else { held };
        kept.insert(run.clone(), held);
        Ok(fits)
    }

    /// What the calls of a run changed, in order; nothing where nothing was.
    ///
    /// # Errors
    /// The run has no such name, or its log is damaged or cannot be read.
    pub fn read(&self, run: &RunId) -> Result<Vec<Set>, LogError> {
        let path = self.folder(run)?.join(LOG);
        let failed = |source| LogError::Io {
            path: path.clone(),
            source,
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut lines = BufReader::new(file);
        let (mut sets, mut names) = (Vec::new(), HashMap::new());
        for number in 1.. {
            let mut line = Vec::new();
            let mut bounded = lines.by_ref().take(LONGEST_LINE);
            if bounded.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            match serde_json::from_slice(&line) {
                Ok(Line::Set {
                    set,
                    call,
                    at,
                    changes,
                    ..
                }) => {
                    names.insert(set, sets.len());
                    sets.push(Set {
                        call: CallId::new(call),
                        at,
                        changes,
                        done: None,
                    });
                }
                Ok(Line::End { set, done }) => {
                    if let Some(at) = names.get(&set).and_then(|at| sets.get_mut(*at)) {
                        at.done = Some(done);
                    }
                }
                // A killed process may have left a part: nothing was done on it.
                Err(_) if !line.ends_with(b"\n") && (line.len() as u64) < LONGEST_LINE => break,
                Err(error) => {
                    return Err(LogError::Line {
                        path: path.clone(),
                        line: number,
                        why: error.to_string(),
                    });
                }
            }
        }
        Ok(sets)
    }

    /// The bytes of a file as it was, by their SHA-256; none where they were not kept.
    ///
    /// # Errors
    /// They cannot be read, or are not what was kept.
    pub fn kept(&self, run: &RunId, sha256: &str) -> Result<Option<Vec<u8>>, LogError> {
        let path = self.folder(run)?.join(FILES).join(sha256);
        let failed = |source| LogError::Io {
            path: path.clone(),
            source,
        };
        if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(failed(io::Error::other("it is not a SHA-256")));
        }
        let bytes = match read_plain(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if hex(&Sha256::digest(&bytes)) != sha256 {
            return Err(failed(io::Error::other("it was changed since it was kept")));
        }
        Ok(Some(bytes))
    }
}

/// The bytes of a regular file that is not larger than what is kept.
fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MOST_OF_FILE {
        return Err(io::Error::other("it is not a file that was kept"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_OF_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Takes away what a killed process left of a line: nothing was done on it.
fn end_line(log: &File) -> io::Result<()> {
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

/// The SHA-256 of a file, whose bytes go to `copy`, too; none where there are too many.
pub(super) fn digest(file: &mut File, mut copy: Option<File>) -> io::Result<Option<String>> {
    let (mut hasher, mut all) = (Sha256::new(), 0_u64);
    let mut buffer = vec![0; 128 << 10];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        all += count as u64;
        if all > MOST_OF_FILE {
            return Ok(None);
        }
        let part = buffer.get(..count).unwrap_or_default();
        hasher.update(part);
        if let Some(copy) = &mut copy {
            copy.write_all(part)?;
        }
    }
    Ok(Some(hex(&hasher.finalize())))
}
