//! `DirJournal`: journals next to the runs' records, one line per entry: `runs/<run-id>/journal.jsonl`. An entry costs one write,
//! so this is the default unless runs are stored in a database that other machines share.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::future::ready;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::OFlags;

use crate::audit::runs;
use crate::call::{CallId, RunId};
use crate::file_lock::{self, FileLock};
use crate::future::run_blocking;
use crate::journal::line::{JournalLine, JournalReader};
use crate::journal::{
    ChainStart, Journal, JournalCall, JournalError, JournalFuture, RecordedChain,
};
use crate::result::Status;

#[cfg(test)]
mod tests;

const FILE_NAME: &str = "journal.jsonl";
/// Maximum length of a line that is read: a script with its arguments, or a reply, including escapes.
const MAX_LINE: u64 = 64 << 20;

/// Journals in haft's state folder. A run's file is locked while one of its chains is running. Clones share the journals.
///
/// An entry is appended to its file before the call that writes it returns: that is faster than waking another thread. Journals
/// are read on threads for blocking work.
#[derive(Debug, Clone)]
pub struct DirJournal {
    home: Arc<Path>,
    open: Arc<Mutex<HashMap<RunId, OpenJournal>>>,
}

/// A run's file, open while chains of the run are running.
#[derive(Debug)]
struct OpenJournal {
    file: FileLock,
    chains: HashSet<CallId>,
    /// Whether the file also holds chains of another process, or a suspended one.
    old: bool,
    line: Vec<u8>,
}

impl DirJournal {
    /// Creates the journals in `home`, haft's state folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into().into(),
            open: Arc::default(),
        }
    }

    fn path(&self, run: &RunId) -> io::Result<PathBuf> {
        let dir = runs::run_dir(&self.home, run.as_str()).map_err(io::Error::other)?;
        Ok(dir.join(FILE_NAME))
    }

    /// Appends a line.
    fn add(&self, run: &RunId, line: &JournalLine) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io {
            run: run.clone(),
            source,
        };
        let mut all = self.open.lock();
        if !all.contains_key(run) {
            let file = self.path(run).and_then(|path| open(&path, true));
            let file = file.and_then(file_lock::lock_after_readers);
            let Some(file) = file.map_err(failed)? else {
                return Err(JournalError::Busy(run.clone()));
            };
            let old = end_line(&file).map_err(failed)?;
            all.insert(
                run.clone(),
                OpenJournal {
                    file,
                    chains: HashSet::new(),
                    old,
                    line: Vec::new(),
                },
            );
        }
        let Some(open) = all.get_mut(run) else {
            return Ok(());
        };
        let mut written = open.write(line);
        line.note(&mut open.chains);
        if open.chains.is_empty() {
            // Ended chains need no journal, and a run may have thousands.
            if !open.old && written.is_ok() {
                written = open.file.set_len(0);
            }
            all.remove(run);
        }
        written.map_err(failed)
    }
}

impl OpenJournal {
    fn write(&mut self, line: &JournalLine) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        // A single write: a line is complete, or cut at the end of the file by a full disk.
        (&*self.file).write_all(&self.line)?;
        self.line.shrink_to(64 << 10);
        Ok(())
    }
}

fn open(path: &Path, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    if write {
        options.append(true).create(true).mode(0o600);
    }
    options
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Makes the file end with a complete line: removes what a killed process left of one, since it never took effect.
/// Returns whether the file had content.
fn end_line(file: &File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut lines = BufReader::new(file);
    let (mut whole, mut line) = (0, Vec::new());
    loop {
        line.clear();
        match io::Read::take(&mut lines, MAX_LINE).read_until(b'\n', &mut line)? {
            0 => return Ok(true),
            length if line.ends_with(b"\n") => whole += length as u64,
            _ if serde_json::from_slice::<JournalLine>(&line).is_ok() => {
                (&*file).write_all(b"\n")?;
                return Ok(true);
            }
            _ => {
                file.set_len(whole)?;
                return Ok(true);
            }
        }
    }
}

/// Returns an answer that is ready.
fn answer<'a>(written: Result<(), JournalError>) -> JournalFuture<'a, ()> {
    Box::pin(ready(written))
}

impl Journal for DirJournal {
    fn begin<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        start: &'a ChainStart,
    ) -> JournalFuture<'a, ()> {
        answer(self.add(run, &JournalLine::begin(chain, start)))
    }

    fn call<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        call: &'a JournalCall,
    ) -> JournalFuture<'a, ()> {
        answer(self.add(run, &JournalLine::call(chain, call)))
    }

    fn end<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        seq: u64,
        reply: &'a str,
    ) -> JournalFuture<'a, ()> {
        answer(self.add(run, &JournalLine::end(chain, seq, reply)))
    }

    fn close<'a>(
        &'a self,
        run: &'a RunId,
        chain: &'a CallId,
        status: Status,
    ) -> JournalFuture<'a, ()> {
        answer(self.add(run, &JournalLine::close(chain, status)))
    }

    fn suspend<'a>(&'a self, run: &'a RunId, chain: &'a CallId) -> JournalFuture<'a, ()> {
        let mut all = self.open.lock();
        if let Some(open) = all.get_mut(run) {
            open.chains.remove(chain);
            // The suspended chain's entries must not be wiped when others end.
            open.old = true;
            if open.chains.is_empty() {
                all.remove(run);
            }
        }
        answer(Ok(()))
    }

    fn abandoned<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Vec<RecordedChain>> {
        self.work(run, |journal, run| {
            let Some(read) = journal.read(run)? else {
                return Ok(Vec::new());
            };
            let all = journal.open.lock();
            let none = HashSet::new();
            Ok(read.abandoned(all.get(run).map_or(&none, |open| &open.chains)))
        })
    }

    fn interrupted<'a>(
        &'a self,
        run: &'a RunId,
        chain: Option<&'a CallId>,
    ) -> JournalFuture<'a, Option<RecordedChain>> {
        let chain = chain.cloned();
        self.work(run, move |journal, run| {
            let read = journal.read(run)?;
            Ok(read.and_then(|read| read.open(chain.as_ref(), &journal.home)))
        })
    }
}

impl DirJournal {
    /// Runs blocking work on another thread.
    fn work<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl FnOnce(&Self, &RunId) -> Result<T, JournalError> + Send + 'static,
    ) -> JournalFuture<'static, T> {
        let (journal, run) = (self.clone(), run.clone());
        let of = run.clone();
        let working = run_blocking(move || work(&journal, &of));
        Box::pin(async move {
            let failed = |source| JournalError::Io { run, source };
            working.await.map_err(failed)?
        })
    }

    /// Reads the chains of a run that no other process is working on; `None` if it has no journal.
    fn read<'a>(&self, run: &'a RunId) -> Result<Option<JournalReader<'a>>, JournalError> {
        let failed = |source| JournalError::Io {
            run: run.clone(),
            source,
        };
        let file = match self.path(run).and_then(|path| open(&path, false)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let all = self.open.lock();
        let ours = all.contains_key(run);
        drop(all);
        let lock = FileLock::try_shared(file.try_clone().map_err(failed)?).map_err(failed)?;
        if !ours && lock.is_none() {
            return Err(JournalError::Busy(run.clone()));
        }
        let mut reader = JournalReader::new(run);
        let mut lines = BufReader::new(file);
        for number in 1.. {
            let mut line = Vec::new();
            let mut bounded = io::Read::take(&mut lines, MAX_LINE);
            if bounded.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            reader.line(number, &line)?;
        }
        Ok(Some(reader))
    }
}
