//! `DirJournal`: journals beside the runs' records, a line an entry: `runs/<run-id>/journal.jsonl`.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::audit::runs;
use crate::call::{CallId, RunId};
use crate::journal::{ChainStart, Journal, JournalCall, JournalError, Recorded, RecordedCall};
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
    chains: usize,
    /// Chains of another process are in it, too.
    old: bool,
    line: Vec<u8>,
}

/// An entry as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Begin {
        chain: String,
        code: String,
        arguments: String,
        seed: u64,
        started_ns: i64,
    },
    Call {
        chain: String,
        seq: u64,
        tool: String,
        args_digest: String,
        noise: String,
    },
    End {
        chain: String,
        seq: u64,
        reply: String,
    },
    Close {
        chain: String,
        status: String,
    },
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

    /// Notes which calls without an end the run's record does not know to have started.
    fn look_up_started(&self, run: &RunId, last: &mut Recorded) {
        // A record that cannot be read leaves every one in doubt.
        if let Ok(started) = runs::started(&self.home, run.as_str()) {
            for entry in &mut last.calls {
                let id = last.chain.nth_within(entry.call.seq);
                entry.started = started.contains(id.as_str());
            }
        }
    }

    /// Adds a line; `chains` is what it does to the number of chains at work.
    fn add(&self, run: &RunId, line: &Line, chains: isize) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io {
            run: run.clone(),
            source,
        };
        let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(run) {
            let file = self.path(run).and_then(|path| open(&path, true));
            let file = file.map_err(failed)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(JournalError::Busy(run.clone()));
            }
            let old = end_line(&file).map_err(failed)?;
            all.insert(
                run.clone(),
                Open {
                    file,
                    chains: 0,
                    old,
                    line: Vec::new(),
                },
            );
        }
        let Some(open) = all.get_mut(run) else {
            return Ok(());
        };
        let mut written = open.write(line);
        open.chains = open.chains.saturating_add_signed(chains);
        if open.chains == 0 {
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
        let line = Line::Begin {
            chain: chain.to_string(),
            code: start.code.clone(),
            arguments: start.arguments.clone(),
            seed: start.seed,
            started_ns: i64::try_from(start.started_ns).unwrap_or(i64::MAX),
        };
        self.add(run, &line, 1)
    }

    fn call(&self, run: &RunId, chain: &CallId, call: &JournalCall) -> Result<(), JournalError> {
        let line = Line::Call {
            chain: chain.to_string(),
            seq: call.seq,
            tool: call.tool.clone(),
            args_digest: call.args_digest.clone(),
            noise: call.noise.clone(),
        };
        self.add(run, &line, 0)
    }

    fn end(&self, run: &RunId, chain: &CallId, seq: u64, reply: &str) -> Result<(), JournalError> {
        let line = Line::End {
            chain: chain.to_string(),
            seq,
            reply: reply.to_owned(),
        };
        self.add(run, &line, 0)
    }

    fn close(&self, run: &RunId, chain: &CallId, status: Status) -> Result<(), JournalError> {
        let line = Line::Close {
            chain: chain.to_string(),
            status: status.as_str().to_owned(),
        };
        self.add(run, &line, -1)
    }

    fn interrupted(&self, run: &RunId) -> Result<Option<Recorded>, JournalError> {
        let failed = |source| JournalError::Io {
            run: run.clone(),
            source,
        };
        let file = match self.path(run).and_then(|path| open(&path, false)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
            return Err(JournalError::Busy(run.clone()));
        }
        let mut reader = Reader {
            run,
            open: Vec::new(),
        };
        let mut lines = BufReader::new(file);
        for number in 1.. {
            let mut line = Vec::new();
            let mut bounded = io::Read::take(&mut lines, LONGEST_LINE);
            if bounded.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            reader.line(number, &line)?;
        }
        let Some(mut last) = reader.open.pop() else {
            return Ok(None);
        };
        if last.calls.iter().any(|call| call.reply.is_none()) {
            self.look_up_started(run, &mut last);
        }
        Ok(Some(last))
    }
}

/// Follows the chains of a run: those that began and were not closed.
struct Reader<'a> {
    run: &'a RunId,
    open: Vec<Recorded>,
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &[u8]) -> Result<(), JournalError> {
        let read = match serde_json::from_slice(line) {
            Ok(read) => read,
            // A line that a killed process did not finish: what it was about to say was not said.
            Err(_) if !line.ends_with(b"\n") => return Ok(()),
            Err(error) => return Err(self.damaged(number, error.to_string())),
        };
        match read {
            Line::Begin {
                chain,
                code,
                arguments,
                seed,
                started_ns,
            } => {
                let start = ChainStart {
                    code,
                    arguments,
                    seed,
                    started_ns: started_ns.into(),
                };
                self.begin(&chain, start);
            }
            Line::Call {
                chain,
                seq,
                tool,
                args_digest,
                noise,
            } => {
                let call = JournalCall {
                    seq,
                    tool,
                    args_digest,
                    noise,
                };
                let at = self.chain(number, &chain)?;
                match at.calls.iter_mut().find(|known| known.call.seq == seq) {
                    // Answered from the record, or run again after it had been in doubt.
                    Some(known) if known.reply.is_none() => known.call = call,
                    Some(_) => {}
                    None => at.calls.push(RecordedCall {
                        call,
                        reply: None,
                        started: true,
                    }),
                }
            }
            Line::End { chain, seq, reply } => {
                let at = self.chain(number, &chain)?;
                let call = at.calls.iter_mut().find(|known| known.call.seq == seq);
                let Some(call) = call else {
                    return Err(self.damaged(number, format!("call {seq} ended and never began")));
                };
                if call.reply.is_none() {
                    call.reply = Some(reply);
                    at.ends.push(seq);
                }
            }
            Line::Close { chain, .. } => self.open.retain(|open| open.chain.as_str() != chain),
        }
        Ok(())
    }

    /// A chain that is gone on with begins again; what it did before is still so.
    fn begin(&mut self, chain: &str, start: ChainStart) {
        let known = |open: &Recorded| open.chain.as_str() == chain;
        if !self
            .open
            .iter()
            .any(|open| known(open) && open.start == start)
        {
            self.open.retain(|open| !known(open));
            self.open.push(Recorded {
                chain: CallId::new(chain),
                start,
                calls: Vec::new(),
                ends: Vec::new(),
            });
        }
    }

    fn chain(&mut self, number: usize, chain: &str) -> Result<&mut Recorded, JournalError> {
        let damaged = self.damaged(number, format!("chain {chain} never began"));
        let found = self
            .open
            .iter_mut()
            .find(|open| open.chain.as_str() == chain);
        found.ok_or(damaged)
    }

    fn damaged(&self, line: usize, problem: String) -> JournalError {
        JournalError::Damaged {
            run: self.run.clone(),
            line,
            problem,
        }
    }
}
