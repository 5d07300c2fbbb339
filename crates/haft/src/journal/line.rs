//! `JournalLine`: the stored form of a journal entry, and the `JournalReader` that follows a run's chains through them.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::audit::runs;
use crate::call::{CallId, RunId};
use crate::journal::{ChainStart, JournalCall, JournalError, RecordedCall, RecordedChain};
use crate::result::Status;

/// The stored form of an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the fields are those of what the entry is made from"
)]
pub enum JournalLine {
    /// A chain starts.
    Begin {
        chain: String,
        code: String,
        arguments: String,
        seed: u64,
        started_ns: i64,
    },
    /// A call is about to be dispatched.
    Call {
        chain: String,
        seq: u64,
        tool: String,
        args_digest: String,
        noise: String,
    },
    /// A call has ended.
    End {
        chain: String,
        seq: u64,
        reply: String,
    },
    /// The chain has ended.
    Close { chain: String, status: String },
}

impl JournalLine {
    /// Updates the set of running chains.
    pub fn note(&self, at_work: &mut HashSet<CallId>) {
        match self {
            Self::Begin { chain, .. } => {
                at_work.insert(CallId::new(chain.as_str()));
            }
            Self::Close { chain, .. } => {
                at_work.remove(&CallId::new(chain.as_str()));
            }
            Self::Call { .. } | Self::End { .. } => {}
        }
    }

    /// Creates the line for the start of a chain.
    pub fn begin(chain: &CallId, start: &ChainStart) -> Self {
        Self::Begin {
            chain: chain.to_string(),
            code: start.code.clone(),
            arguments: start.arguments.clone(),
            seed: start.seed,
            started_ns: i64::try_from(start.started_ns).unwrap_or(i64::MAX),
        }
    }

    /// Creates the line for a call about to be dispatched.
    pub fn call(chain: &CallId, call: &JournalCall) -> Self {
        Self::Call {
            chain: chain.to_string(),
            seq: call.seq,
            tool: call.tool.clone(),
            args_digest: call.args_digest.clone(),
            noise: call.noise.clone(),
        }
    }

    /// Creates the line for the end of a call.
    pub fn end(chain: &CallId, seq: u64, reply: &str) -> Self {
        Self::End {
            chain: chain.to_string(),
            seq,
            reply: reply.to_owned(),
        }
    }

    /// Creates the line for the end of a chain.
    pub fn close(chain: &CallId, status: Status) -> Self {
        Self::Close {
            chain: chain.to_string(),
            status: status.as_str().to_owned(),
        }
    }
}

/// Follows the chains of a run: those that started and were not closed.
#[derive(Debug)]
pub struct JournalReader<'a> {
    run: &'a RunId,
    open: Vec<RecordedChain>,
}

impl<'a> JournalReader<'a> {
    /// Creates a reader for this run.
    pub fn new(run: &'a RunId) -> Self {
        Self {
            run,
            open: Vec::new(),
        }
    }

    /// Returns the given chain, or else the last, if it was not closed. The run's record in `home` tells which of its unfinished
    /// calls started.
    pub fn open(mut self, chain: Option<&CallId>, home: &Path) -> Option<RecordedChain> {
        let mut last = match chain {
            None => self.open.pop()?,
            Some(chain) => self.open.into_iter().find(|open| open.chain == *chain)?,
        };
        if last.calls.iter().any(|call| call.reply.is_none())
            // If the record cannot be read, all of them stay in doubt.
            && let Ok(started) = runs::started(home, self.run.as_str())
        {
            for entry in &mut last.calls {
                let id = last.chain.nth_within(entry.call.seq);
                entry.started = started.contains(id.as_str());
            }
        }
        Some(last)
    }

    /// Returns the chains that were not closed and are not in `at_work`.
    pub fn abandoned(mut self, at_work: &HashSet<CallId>) -> Vec<RecordedChain> {
        self.open.retain(|open| !at_work.contains(&open.chain));
        self.open
    }

    /// Reads the next line, with its number from 1.
    ///
    /// # Errors
    /// [`JournalError::Damaged`] if the line is not a valid journal line or does not follow the previous one.
    pub fn line(&mut self, number: usize, line: &[u8]) -> Result<(), JournalError> {
        let read = match serde_json::from_slice(line) {
            Ok(read) => read,
            // A line that a killed process did not finish; it never took effect.
            Err(_) if !line.ends_with(b"\n") => return Ok(()),
            Err(error) => return Err(self.damaged(number, error.to_string())),
        };
        match read {
            JournalLine::Begin {
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
            JournalLine::Call {
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
                begin_call(self.chain(number, &chain)?, call);
            }
            JournalLine::End { chain, seq, reply } => {
                let at = self.chain(number, &chain)?;
                let call = at.calls.iter_mut().find(|known| known.call.seq == seq);
                let Some(call) = call else {
                    return Err(self.damaged(number, format!("call {seq} ended but never began")));
                };
                if call.reply.is_none() {
                    call.reply = Some(reply);
                    at.ends.push(seq);
                }
            }
            JournalLine::Close { chain, .. } => {
                self.open.retain(|open| open.chain.as_str() != chain);
            }
        }
        Ok(())
    }

    /// Starts a chain; if it is resumed, its earlier entries stay.
    fn begin(&mut self, chain: &str, start: ChainStart) {
        let known = |open: &RecordedChain| open.chain.as_str() == chain;
        if !self
            .open
            .iter()
            .any(|open| known(open) && open.start == start)
        {
            self.open.retain(|open| !known(open));
            self.open.push(RecordedChain {
                chain: CallId::new(chain),
                start,
                calls: Vec::new(),
                ends: Vec::new(),
            });
        }
    }

    fn chain(&mut self, number: usize, chain: &str) -> Result<&mut RecordedChain, JournalError> {
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

/// Adds a call to its chain.
fn begin_call(at: &mut RecordedChain, call: JournalCall) {
    match at.calls.iter_mut().find(|known| known.call.seq == call.seq) {
        // Answered from the record, or run again after it was in doubt.
        Some(known) if known.reply.is_none() => known.call = call,
        Some(_) => {}
        None => at.calls.push(RecordedCall {
            call,
            reply: None,
            started: true,
        }),
    }
}
