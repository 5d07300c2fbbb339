//! `ChainRecord`: a chain's journal, and the answers from it when a chain is resumed.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use haft::call::{CallId, RunId};
use haft::context::Resumption;
use haft::error::ToolError;
use haft::journal::{
    ChainStart, Journal, JournalCall, JournalError, JournalFuture as WriteReceipt, RecordedCall,
    RecordedChain, digest,
};
use haft::result::Status;
use haft::spec::{Risk, Suspension, ToolSpec};
use haft::text::clip;
use haft::toolset::ToolsetSnapshot;
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// Maximum number of bytes of noise of one chain in its journal: all of it goes back to the script in one message.
const NOISE: usize = 8 << 20;

/// A chain's entries: written while it runs, read back when it is resumed.
pub(crate) struct ChainRecord {
    journal: Option<Arc<dyn Journal>>,
    run: RunId,
    chain: CallId,
    open: bool,
    /// The number of bytes of noise written.
    noise: usize,
    replay: Option<Replay>,
    /// How the chain's call is resumed.
    resumption: Option<Resumption>,
    /// Whether the script was sent to its interpreter.
    sent: bool,
}

/// The part of a record that is still to be replayed.
struct Replay {
    calls: Vec<ReplayedCall>,
    ends: Vec<u64>,
    /// The number of `ends` already answered.
    answered: usize,
    /// Requests waiting for their turn, by call number.
    waiting: HashMap<u64, u32>,
    /// Answers of calls that ran live, whose turn has not come yet.
    early: Vec<ScriptAnswer>,
}

/// A recorded call.
struct ReplayedCall {
    call: JournalCall,
    reply: Option<String>,
    /// The number of replies that the script had seen when it made the call.
    seen: u64,
}

/// An answer to send to the script now.
pub(super) struct ScriptAnswer {
    pub(super) id: u32,
    pub(super) reply: String,
    /// Whether it comes from the record, with its media.
    pub(super) recorded: bool,
}

/// What to do with a call.
pub(super) enum ReplayDecision {
    /// Run it.
    Run,
    /// Answer it from the record when its turn comes; this was its status.
    Replay(Status),
}

/// A call as the script sent it, with its number and id.
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

impl ChainRecord {
    /// Creates a record for a chain without a journal.
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

    /// Starts recording a chain.
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

    /// Records the chain's start. The chain counts as open before the write completes: if dropped meanwhile, it is closed again.
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

    /// Resumes a recorded chain. Fails if a call was started but has no answer, unless its tool may run twice.
    pub(crate) async fn resume(
        journal: Arc<dyn Journal>,
        run: RunId,
        recorded: RecordedChain,
        tools: &ToolsetSnapshot,
        resumption: Option<&Resumption>,
    ) -> Result<Self, ToolError> {
        let unsafe_twice = |entry: &&RecordedCall| {
            let tool = tools.entry(&entry.call.tool).map(|tool| tool.spec());
            let twice = tool.is_some_and(|spec| spec.idempotent);
            // A tool with side effects is recorded before it runs; a tool that suspends after it ran is then resumed.
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
        let calls = recorded.calls.into_iter().map(|entry| ReplayedCall {
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
        // Restarted unchanged, it is the same chain and keeps everything it had.
        record.write_start(&recorded.start).await?;
        Ok(record)
    }

    /// Returns whether the script must send what it reads from clocks and random sources.
    pub(super) fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns what the script read from clocks and random sources, call by call, to be replayed.
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

    /// Records a call before it is dispatched.
    pub(super) async fn call(
        &mut self,
        asked: CallRequest<'_>,
    ) -> Result<ReplayDecision, ToolError> {
        let Some(journal) = &self.journal else {
            return Ok(ReplayDecision::Run);
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
            return Ok(ReplayDecision::Run);
        };
        if (entry.call.seq, &entry.call.tool, &entry.call.args_digest)
            != (call.seq, &call.tool, &call.args_digest)
        {
            return Err(diverged(&entry.call, &call, asked.arguments));
        }
        Ok(match &entry.reply {
            Some(reply) => ReplayDecision::Replay(status_of(reply)),
            // It has not run or is safe to run twice; otherwise the chain would not have been resumed.
            None => ReplayDecision::Run,
        })
    }

    /// Records the answer of a finished call, before it is sent.
    pub(super) async fn end(
        &mut self,
        seq: u64,
        answer: ScriptAnswer,
    ) -> Result<Vec<ScriptAnswer>, ToolError> {
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

    /// Returns the answers that are due once `calls` calls have been received.
    pub(super) fn due(&mut self, calls: u64) -> Vec<ScriptAnswer> {
        self.replay.as_mut().map_or_else(Vec::new, |r| r.due(calls))
    }

    /// Leaves the chain open, to be resumed.
    pub(super) async fn leave(&mut self) {
        if std::mem::take(&mut self.open)
            && let Some(left) = self.suspend()
        {
            note(&self.run, left.await);
        }
    }

    /// Notes that the script was sent: from now on it may have effects.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// Returns whether the process is stopping, and leaves a resumed chain to the process that resumes it next.
    pub(super) fn is_left(&self) -> bool {
        let resumption = self.resumption.as_ref();
        self.replay.is_some() && resumption.is_some_and(Resumption::is_leaving)
    }

    /// Ends a chain whose script did not start. A chain that was to be resumed stays unchanged.
    pub(crate) async fn not_begun(&mut self) {
        if self.replay.is_some() {
            self.leave().await;
        } else {
            self.close(Status::Error).await;
        }
    }

    /// Closes the chain.
    pub(super) async fn close(&mut self, status: Status) {
        if std::mem::take(&mut self.open)
            && let Some(closed) = self.end_with(status)
        {
            note(&self.run, closed.await);
        }
    }

    /// Starts to release the chain in the journal. The journal completes the write even if the future is dropped.
    fn suspend(&self) -> Option<WriteReceipt<'_, ()>> {
        let journal = self.journal.as_ref()?;
        Some(journal.suspend(&self.run, &self.chain))
    }

    /// Starts to close the chain in the journal. The journal completes the write even if the future is dropped.
    fn end_with(&self, status: Status) -> Option<WriteReceipt<'_, ()>> {
        if let Some(resumption) = &self.resumption {
            resumption.over();
        }
        let journal = self.journal.as_ref()?;
        Some(journal.close(&self.run, &self.chain, status))
    }
}

impl Replay {
    /// Returns the due answers. A recorded answer is due once all calls have been received that preceded it the first time; answers
    /// keep their original order, and those of calls that run now follow.
    fn due(&mut self, calls: u64) -> Vec<ScriptAnswer> {
        let mut due = Vec::new();
        let next = usize::try_from(calls).unwrap_or(usize::MAX);
        while let Some(seq) = self.ends.get(self.answered) {
            let waits = |entry: &ReplayedCall| entry.seen <= self.answered as u64;
            if calls == 0 || self.calls.get(next).is_some_and(waits) {
                return due;
            }
            let Some(id) = self.waiting.remove(seq) else {
                return due;
            };
            let at = usize::try_from(seq - 1).unwrap_or(usize::MAX);
            let reply = self.calls.get_mut(at).and_then(|entry| entry.reply.take());
            self.answered += 1;
            due.extend(reply.map(|reply| ScriptAnswer {
                id,
                reply,
                recorded: true,
            }));
        }
        due.append(&mut self.early);
        due
    }
}

impl Drop for ChainRecord {
    fn drop(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let resumption = self.resumption.as_ref();
        let stays = resumption.is_some_and(Resumption::is_resumable_on_drop);
        let ended = if self.replay.is_some() && (stays || !self.sent) {
            self.suspend()
        } else {
            self.end_with(Status::Cancelled)
        };
        // The journal completes what it cannot do at once, and reports a failure itself.
        if let Some(ended) = ended.and_then(FutureExt::now_or_never) {
            note(&self.run, ended);
        }
    }
}

/// Logs that the end of a chain could not be written to the journal: nothing more can be done about it.
fn note(run: &RunId, ended: Result<(), JournalError>) {
    if let Err(error) = ended {
        tracing::error!(%run, %error, "record the end of a chain in its journal");
    }
}

/// Parses the number of replies seen, and what was read.
fn noise_of(noise: &str) -> Option<(u64, Box<RawValue>)> {
    serde_json::from_str(noise).ok()
}

fn status_of(reply: &str) -> Status {
    #[derive(serde::Deserialize)]
    struct StatusMember<'a> {
        status: &'a str,
    }
    let known = serde_json::from_str::<StatusMember<'_>>(reply).map_or("", |known| known.status);
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
