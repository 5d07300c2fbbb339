//! `DirJournal`: journals beside the runs' records, a line an entry: `runs/<run-id>/journal.jsonl`. An entry costs one
//! write, so this is what is used unless runs are kept in a database that other machines share.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use parking_lot::Mutex;
use rustix::fs::OFlags;

use crate::audit::runs;
use crate::call::{CallId, RunId};
use crate::file_lock;
use crate::journal::line::{Line, Reader};
use crate::journal::{ChainStart, Journal, JournalCall, JournalError, Recorded};
use crate::result::Status;

#[cfg(test)]
mod tests;

const FILE: &str = "journal.jsonl";
/// Longest line that is read: a script and its arguments, or a reply, with their escapes.
const LONGEST_LINE: u64 = 64 << 20;

/// Journals in haft's state folder. A run's file is locked while one of its chains is at work.
#[derive(Debug)]
pub struct DirJournal {
    home: PathBuf,
    open: Mutex<HashMap<RunId, Open>>,
}

/// A run's file, held for as long as chains of the run are at work.
#[derive(Debug)]
struct Open {
    file: File,
    chains: HashSet<CallId>,
    /// Chains of another process are in it, too.
    old: bool,
    line: Vec<u8>,
}

impl DirJournal {
    /// Journals below `home`, haft's state folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            open: Mutex::default(),
        }
    }

    fn path(&self, run: &RunId) -> io::Result<PathBuf> {
        let dir = runs::run_dir(&self.home, run.as_str()).map_err(io::Error::other)?;
        Ok(dir.join(FILE))
    }

    /// Adds a line.
    fn add(&self, run: &RunId, line: &Line) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io {
            run: run.clone(),
            source,
        };
        let mut all = self.open.lock();
        if !all.contains_key(run) {
            let file = self.path(run).and_then(|path| open(&path, true));
            let file = file.map_err(failed)?;
            if !file_lock::try_lock(&file).map_err(failed)? {
                return Err(JournalError::Busy(run.clone()));
            }
            let old = end_line(&file).map_err(failed)?;
            all.insert(
                run.clone(),
                Open {
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
            // Chains that ended need no journal; a run may have thousands.
            if !open.old && written.is_ok() {
                written = open.file.set_len(0);
            }
            // The lock goes with the file.
            all.remove(run);
        }
        written.map_err(failed)
    }
}

impl Open {
    fn write(&mut self, line: &Line) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        // One write: a line is there whole, or cut at the end of the file by a full disk.
        self.file.write_all(&self.line)?;
        self.line.shrink_to(64 << 10);
        Ok(())
    }
}

fn open(path: &std::path::Path, write: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    if write {
        options.append(true).create(true).mode(0o600);
    }
    options
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Ends the file with a whole line: what a killed process left of one is taken away, it was not said. Whether the file
/// holds anything.
fn end_line(file: &File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut lines = BufReader::new(file);
    let (mut whole, mut line) = (0, Vec::new());
    loop {
        line.clear();
        match io::Read::take(&mut lines, LONGEST_LINE).read_until(b'\n', &mut line)? {
            0 => return Ok(true),
            length if line.ends_with(b"\n") => whole += length as u64,
            _ if serde_json::from_slice::<Line>(&line).is_ok() => {
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

impl Journal for DirJournal {
    fn begin(&self, run: &RunId, chain: &CallId, start: &ChainStart) -> Result<(), JournalError> {
        let line = Line::begin(chain, start);
        self.add(run, &line)
    }

    fn call(&self, run: &RunId, chain: &CallId, call: &JournalCall) -> Result<(), JournalError> {
        let line = Line::call(chain, call);
        self.add(run, &line)
    }

    fn end(&self, run: &RunId, chain: &CallId, seq: u64, reply: &str) -> Result<(), JournalError> {
        let line = Line::end(chain, seq, reply);
        self.add(run, &line)
    }

    fn close(&self, run: &RunId, chain: &CallId, status: Status) -> Result<(), JournalError> {
        let line = Line::close(chain, status);
        self.add(run, &line)
    }

    fn suspend(&self, run: &RunId, chain: &CallId) -> Result<(), JournalError> {
        let mut all = self.open.lock();
        if let Some(open) = all.get_mut(run) {
            open.chains.remove(chain);
            // What was left is not wiped when others end.
            open.old = true;
            if open.chains.is_empty() {
                all.remove(run);
            }
        }
        Ok(())
    }

    fn abandoned(&self, run: &RunId) -> Result<Vec<Recorded>, JournalError> {
        let Some(read) = self.read(run)? else {
            return Ok(Vec::new());
        };
        let all = self.open.lock();
        let none = HashSet::new();
        Ok(read.abandoned(all.get(run).map_or(&none, |open| &open.chains)))
    }

    fn interrupted(
        &self,
        run: &RunId,
        chain: Option<&CallId>,
    ) -> Result<Option<Recorded>, JournalError> {
        let read = self.read(run)?;
        Ok(read.and_then(|read| read.open(chain, &self.home)))
    }
}

impl DirJournal {
    /// The chains of a run that no other process is at; none where it has no journal.
    fn read<'a>(&self, run: &'a RunId) -> Result<Option<Reader<'a>>, JournalError> {
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
        if !ours && !file_lock::try_lock_shared(&file).map_err(failed)? {
            return Err(JournalError::Busy(run.clone()));
        }
        let mut reader = Reader::new(run);
        let mut lines = BufReader::new(file);
        for number in 1.. {
            let mut line = Vec::new();
            let mut bounded = io::Read::take(&mut lines, LONGEST_LINE);
            if bounded.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            reader.line(number, &line)?;
        }
        Ok(Some(reader))
    }
}
