//! `Record`: a chain's journal, and the answers from it where a chain runs again.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use haft::call::{CallId, RunId};
use haft::context::Resumption;
use haft::error::ToolError;
use haft::journal::{
    Answer as Written, ChainStart, Journal, JournalCall, JournalError, Recorded, RecordedCall,
    digest,
};
use haft::result::Status;
use haft::spec::{Risk, Suspension, ToolSpec};
use haft::text::clip;
use haft::toolset::Snapshot;
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// Most bytes that the noise of one chain takes in its journal: all of it goes back to the script in one message.
const NOISE: usize = 8 << 20;

/// A chain's entries: written as it goes, read again where it goes on.
pub(crate) struct Record {
    journal: Option<Arc<dyn Journal>>,
    run: RunId,
    chain: CallId,
    open: bool,
    /// Bytes of noise that were written.
    noise: usize,
    replay: Option<Replay>,
    /// How the chain's call is resumed.
    resumption: Option<Resumption>,
    /// The script was sent to its interpreter.
    sent: bool,
}

/// What is still to be answered from a record.
struct Replay {
    calls: Vec<Entry>,
    ends: Vec<u64>,
    /// How many of `ends` were answered.
    answered: usize,
    /// Requests that wait for their turn, by the number of their call.
    waiting: HashMap<u64, u32>,
    /// Answers of calls that run live, for which it is too early.
    early: Vec<Answer>,
}

/// A recorded call.
struct Entry {
    call: JournalCall,
    reply: Option<String>,
    /// How many replies the script had seen when it made it.
    seen: u64,
}

/// An answer that goes to the script now.
pub(super) struct Answer {
    pub(super) id: u32,
    pub(super) reply: String,
    /// It comes from the record, with its media.
    pub(super) recorded: bool,
}

/// What is to be done about a call.
pub(super) enum Step {
    /// It runs.
    Run,
    /// It is answered from the record, when its turn comes; this was its status.
    Replay(Status),
}

/// What a call says, and where it stands.
pub(super) struct CallRequest<'a> {
    pub(super) seq: u64,
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) noise: String,
    pub(super) arguments: &'a str,
}

fn unwritten(error: JournalError) -> ToolError {
    ToolError::unavailable("the chain's journal cannot be kept")
        .with_advice("nothing was run without a record")
        .for_operator("see that haft's state folder can be written")
        .with_source(error)
}

impl Record {
    /// A chain that nobody records.
    pub(crate) fn none(run: RunId, chain: CallId) -> Self {
        Self {
            journal: None,
            run,
            chain,
            open: false,
            noise: 0,
            replay: None,
            resumption: None,
            sent: false,
        }
    }

    /// Begins to record a chain.
    pub(crate) async fn begin(
        journal: Arc<dyn Journal>,
        run: RunId,
        chain: CallId,
        start: &ChainStart,
    ) -> Result<Self, ToolError> {
        let mut record = Self::none(run, chain);
        record.journal = Some(journal);
        record.write_start(start).await?;
        Ok(record)
    }

    /// Writes that the chain begins. It is open before that is known: dropped meanwhile, it is closed again.
    async fn write_start(&mut self, start: &ChainStart) -> Result<(), ToolError> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        self.open = true;
        let begun = journal.begin(&self.run, &self.chain, start).await;
        begun.map_err(|error| {
            self.open = false;
            unwritten(error)
        })
    }

    /// Goes on with a recorded chain. A call that began and did not end stops it, unless its tool may run twice.
    pub(crate) async fn resume(
        journal: Arc<dyn Journal>,
        run: RunId,
        recorded: Recorded,
        tools: &Snapshot,
        resumption: Option<&Resumption>,
    ) -> Result<Self, ToolError> {
        let unsafe_twice = |entry: &&RecordedCall| {
            let tool = tools.entry(&entry.call.tool).map(|tool| tool.spec());
            let twice = tool.is_some_and(|spec| spec.idempotent);
            // What changes something is on the record before it does; a tool that is suspended after it ran goes on then.
            let recorded = |spec: &&Arc<ToolSpec>| {
                spec.risk >= Risk::High || spec.suspension == Suspension::After
            };
            let not_run = !entry.started && tool.as_ref().is_some_and(recorded);
            entry.reply.is_none() && !twice && !not_run
        };
        if let Some(entry) = recorded.calls.iter().find(unsafe_twice) {
            if let Some(resumption) = resumption {
                resumption.over();
            }
            return Err(in_doubt(&entry.call));
        }
        let noise = recorded.calls.iter().map(|entry| entry.call.noise.len());
        let noise = noise.sum();
        let calls = recorded.calls.into_iter().map(|entry| Entry {
            seen: noise_of(&entry.call.noise).map_or(0, |(seen, _)| seen),
            call: entry.call,
            reply: entry.reply,
        });
        let replay = Replay {
            calls: calls.collect(),
            ends: recorded.ends,
            answered: 0,
            waiting: HashMap::new(),
            early: Vec::new(),
        };
        let mut record = Self::none(run, recorded.chain);
        record.journal = Some(journal);
        record.noise = noise;
        record.replay = Some(replay);
        record.resumption = resumption.cloned();
        // Begun again as it was, it is the same chain: what it had is still its own.
        record.write_start(&recorded.start).await?;
        Ok(record)
    }

    /// Whether what the script reads of clocks and random sources is to be sent along.
    pub(super) fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// What the script reads of clocks and random sources, once more, call by call.
    pub(super) fn noise(&self) -> Vec<Box<RawValue>> {
        let calls = self.replay.iter().flat_map(|replay| &replay.calls);
        let empty = || RawValue::from_string("[]".to_owned()).ok();
        calls
            .filter_map(|entry| {
                noise_of(&entry.call.noise)
                    .map(|(_, read)| read)
                    .or_else(empty)
            })
            .collect()
    }

    /// Takes a call in, before it is dispatched.
    pub(super) async fn call(&mut self, asked: CallRequest<'_>) -> Result<Step, ToolError> {
        let Some(journal) = &self.journal else {
            return Ok(Step::Run);
        };
        let call = JournalCall {
            seq: asked.seq,
            tool: asked.name.to_owned(),
            args_digest: digest(asked.arguments),
            noise: asked.noise,
        };
        let entry = self.replay.as_mut().and_then(|replay| {
            let at = usize::try_from(asked.seq - 1).ok()?;
            let entry = replay.calls.get(at)?;
            if entry.reply.is_some() {
                replay.waiting.insert(asked.seq, asked.id);
            }
            Some(entry)
        });
        let Some(entry) = entry else {
            self.noise += call.noise.len();
            if self.noise > NOISE {
                return Err(too_noisy(&call));
            }
            let written = journal.call(&self.run, &self.chain, &call).await;
            written.map_err(unwritten)?;
            return Ok(Step::Run);
        };
        if (entry.call.seq, &entry.call.tool, &entry.call.args_digest)
            != (call.seq, &call.tool, &call.args_digest)
        {
            return Err(diverged(&entry.call, &call, asked.arguments));
        }
        Ok(match &entry.reply {
            Some(reply) => Step::Replay(status_of(reply)),
            // It has not run or is safe to run twice, or the chain would not have begun again.
            None => Step::Run,
        })
    }

    /// Takes the answer of a call that ran, before it is told.
    pub(super) async fn end(&mut self, seq: u64, answer: Answer) -> Result<Vec<Answer>, ToolError> {
        if let Some(journal) = &self.journal {
            let written = journal.end(&self.run, &self.chain, seq, &answer.reply);
            let written = written.await;
            written.map_err(unwritten)?;
        }
        let Some(replay) = &mut self.replay else {
            return Ok(vec![answer]);
        };
        replay.early.push(answer);
        Ok(replay.due(0))
    }

    /// The answers whose turn it is after `calls` calls have come in.
    pub(super) fn due(&mut self, calls: u64) -> Vec<Answer> {
        self.replay.as_mut().map_or_else(Vec::new, |r| r.due(calls))
    }

    /// Leaves it open, to be resumed.
    pub(super) async fn leave(&mut self) {
        if std::mem::take(&mut self.open)
            && let Some(left) = self.suspend()
        {
            note(&self.run, left.await);
        }
    }

    /// The script is sent: from here on it may do something.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// Whether the process stops, and leaves a resumed chain to whoever resumes it next.
    pub(super) fn is_left(&self) -> bool {
        let resumption = self.resumption.as_ref();
        self.replay.is_some() && resumption.is_some_and(Resumption::is_leaving)
    }

    /// The script does not begin. A chain that was to be resumed stays as it was.
    pub(crate) async fn not_begun(&mut self) {
        if self.replay.is_some() {
            self.leave().await;
        } else {
            self.close(Status::Error).await;
        }
    }

    /// Closes it.
    pub(super) async fn close(&mut self, status: Status) {
        if std::mem::take(&mut self.open)
            && let Some(closed) = self.end_with(status)
        {
            note(&self.run, closed.await);
        }
    }

    /// Begins to release the chain in the journal, which finishes it.
    fn suspend(&self) -> Option<Written<'_, ()>> {
        let journal = self.journal.as_ref()?;
        Some(journal.suspend(&self.run, &self.chain))
    }

    /// Begins to close the chain in the journal, which finishes it.
    fn end_with(&self, status: Status) -> Option<Written<'_, ()>> {
        if let Some(resumption) = &self.resumption {
            resumption.over();
        }
        let journal = self.journal.as_ref()?;
        Some(journal.close(&self.run, &self.chain, status))
    }
}

impl Replay {
    /// A recorded answer goes out when all calls have come in that were made before the script saw it, in the order in
    /// which the answers went out the first time; those of calls that run now follow.
    fn due(&mut self, calls: u64) -> Vec<Answer> {
        let mut due = Vec::new();
        let next = usize::try_from(calls).unwrap_or(usize::MAX);
        while let Some(seq) = self.ends.get(self.answered) {
            let waits = |entry: &Entry| entry.seen <= self.answered as u64;
            if calls == 0 || self.calls.get(next).is_some_and(waits) {
                return due;
            }
            let Some(id) = self.waiting.remove(seq) else {
                return due;
            };
            let at = usize::try_from(seq - 1).unwrap_or(usize::MAX);
            let reply = self.calls.get_mut(at).and_then(|entry| entry.reply.take());
            self.answered += 1;
            due.extend(reply.map(|reply| Answer {
                id,
                reply,
                recorded: true,
            }));
        }
        due.append(&mut self.early);
        due
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let resumption = self.resumption.as_ref();
        let stays = resumption.is_some_and(Resumption::is_left_when_dropped);
        let ended = if self.replay.is_some() && (stays || !self.sent) {
            self.suspend()
        } else {
            self.end_with(Status::Cancelled)
        };
        // The journal finishes what it cannot do at once, and says itself where that fails.
        if let Some(ended) = ended.and_then(FutureExt::now_or_never) {
            note(&self.run, ended);
        }
    }
}

/// Logs that the end of a chain is not in the journal: nothing can be done about it any more.
fn note(run: &RunId, ended: Result<(), JournalError>) {
    if let Err(error) = ended {
        tracing::error!(%run, %error, "record the end of a chain in its journal");
    }
}

/// Replies seen, and what was read.
fn noise_of(noise: &str) -> Option<(u64, Box<RawValue>)> {
    serde_json::from_str(noise).ok()
}

fn status_of(reply: &str) -> Status {
    #[derive(serde::Deserialize)]
    struct Known<'a> {
        status: &'a str,
    }
    let known = serde_json::from_str::<Known<'_>>(reply).map_or("", |known| known.status);
    let all = [
        Status::Ok,
        Status::Denied,
        Status::Suspended,
        Status::Timeout,
        Status::Cancelled,
    ];
    let found = all.into_iter().find(|status| status.as_str() == known);
    found.unwrap_or(Status::Error)
}

fn too_noisy(call: &JournalCall) -> ToolError {
    let message = format!(
        "by call {}, {}, the script has read clocks and random sources too often to be recorded: more than {} MiB",
        call.seq,
        call.tool,
        NOISE >> 20
    );
    ToolError::failed(message).with_advice(
        "read a clock once and keep what it says; wait with time.sleep, not by reading a clock in a loop",
    )
}

fn in_doubt(call: &JournalCall) -> ToolError {
    let message = format!(
        "call {} of the interrupted script, {} (arguments {}), began and did not end: it may have run",
        call.seq, call.tool, call.args_digest
    );
    ToolError::failed(message).with_advice(
        "see what it did and run a script that does the rest; nothing was repeated and nothing went on",
    )
}

fn diverged(recorded: &JournalCall, now: &JournalCall, arguments: &str) -> ToolError {
    let shown = clip(arguments, 200);
    let message = format!(
        "the script went another way than it did before it was interrupted: call {} was {} (arguments {}) \
         and is now {} (arguments {}: {shown})",
        recorded.seq, recorded.tool, recorded.args_digest, now.tool, now.args_digest
    );
    ToolError::failed(message).with_advice(
        "nothing was repeated; run a script that does the rest, and let it not depend on what differs each time",
    )
}
