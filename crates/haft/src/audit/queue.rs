//! The bounded queue between calls and the single writer: a call only pays for moving an event into it.

use std::collections::HashMap;
use std::mem;
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::audit::index::ClosedEvent;
use crate::audit::{AuditError, AuditEvent, EventKind};
use crate::call::RunId;

/// Maximum number of queued messages.
const MAX_MESSAGES: usize = 32 << 10;
/// Approximate maximum total size of queued messages, in bytes: arguments may be long.
const MAX_BYTES: usize = 64 << 20;
/// Size that a message counts besides its texts, in bytes.
const MESSAGE_OVERHEAD: usize = 256;
/// How long the writer lets lines accumulate: half of the ten milliseconds in which a line reaches its file.
const BATCH_DELAY: Duration = Duration::from_millis(5);
/// Number of naps without a line after which the writer sleeps until woken: a second in total. Waking it costs a few
/// microseconds, which only the first call after such a pause pays.
const MAX_IDLE_BATCHES: u32 = 200;

/// A message to the writer.
pub(super) enum WriterMessage {
    /// Write this event; answer when it is durable, if a sender is given.
    Event(AuditEvent, Option<oneshot::Sender<Result<(), AuditError>>>),
    /// End this run's record, at this time, and answer with how it was closed.
    Close(
        RunId,
        i128,
        oneshot::Sender<Result<ClosedEvent, AuditError>>,
    ),
    /// Leave this run's record open so that it can be resumed; answer when all of it is on disk.
    Leave(RunId, oneshot::Sender<Result<(), AuditError>>),
    /// Answer when all earlier messages are written.
    Flush(oneshot::Sender<()>),
}

/// What the writer is doing, which determines whether a sender must wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterState {
    /// It is working and will check the queue again by itself.
    Busy,
    /// It lets lines accumulate for a moment.
    Batching,
    /// It waits to be woken.
    Asleep,
}

struct QueueState {
    waiting: Vec<WriterMessage>,
    weight: usize,
    /// Whether a sender waits for an answer, so that the writer must not nap.
    urgent: bool,
    writer: WriterState,
    /// Number of senders that wait for room.
    blocked: usize,
    /// The open runs; an error tells why a run's events are refused after a failed write.
    runs: HashMap<RunId, Result<(), AuditError>, RandomState>,
    shut: bool,
}

pub(super) struct EventQueue {
    state: Mutex<QueueState>,
    /// Signals the writer that there is work.
    work: Condvar,
    /// Signals senders that there is room.
    room: Condvar,
}

impl EventQueue {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                waiting: Vec::new(),
                weight: 0,
                urgent: false,
                writer: WriterState::Busy,
                blocked: 0,
                runs: HashMap::default(),
                shut: false,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Queues a message, waiting for room. Refuses messages of a run that is not open or could not be written.
    pub(super) fn send(&self, message: WriterMessage) -> Result<(), AuditError> {
        let weight = message.weight();
        let mut state = self.state();
        while state.is_full(weight) && !state.shut {
            state.blocked += 1;
            self.room.wait(&mut state);
            state.blocked -= 1;
        }
        state.admit(&message)?;
        state.weight += weight;
        state.urgent |= !matches!(message, WriterMessage::Event(_, None));
        state.waiting.push(message);
        let wake = match state.writer {
            WriterState::Busy => false,
            WriterState::Batching => state.urgent || state.is_half_full(),
            WriterState::Asleep => true,
        };
        if wake {
            state.writer = WriterState::Busy;
            drop(state);
            self.work.notify_one();
        }
        Ok(())
    }

    /// For the writer: swaps the queued messages into `batch`, which is empty. Returns false once the queue is shut and empty.
    pub(super) fn receive(&self, batch: &mut Vec<WriterMessage>) -> bool {
        let mut state = self.state();
        let mut naps = 0;
        while !state.shut && !state.urgent && !state.is_half_full() {
            if naps > 0 && !state.waiting.is_empty() {
                break;
            }
            if naps < MAX_IDLE_BATCHES {
                naps += 1;
                state.writer = WriterState::Batching;
                self.work.wait_for(&mut state, BATCH_DELAY);
            } else {
                state.writer = WriterState::Asleep;
                self.work.wait(&mut state);
                // More messages may follow the one that woke it.
                naps = 0;
            }
        }
        state.writer = WriterState::Busy;
        state.urgent = false;
        state.weight = 0;
        mem::swap(&mut state.waiting, batch);
        let blocked = state.blocked > 0;
        drop(state);
        if blocked {
            self.room.notify_all();
        }
        !batch.is_empty()
    }

    /// Returns whether a run accepts events, or why not, if writing it failed.
    pub(super) fn check_accepts(&self, run: &RunId) -> Result<(), AuditError> {
        let known = self.state().runs.get(run).cloned();
        check(run, known)
    }

    /// For the writer: refuses this run's events from now on.
    pub(super) fn fail(&self, run: &RunId, why: AuditError) {
        if let Some(run) = self.state().runs.get_mut(run) {
            *run = Err(why);
        }
    }

    /// Refuses further messages; the writer ends once it has written the queued ones.
    pub(super) fn shut_down(&self) {
        self.state().shut = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    /// For a writer that has ended: shuts the queue and drops its messages, so that no sender waits for an answer.
    pub(super) fn abandon(&self) {
        self.shut_down();
        self.state().waiting.clear();
    }
}

impl QueueState {
    fn is_full(&self, more: usize) -> bool {
        // A single message may exceed the limit: it waits until the queue is empty.
        let heavy = self.weight + more > MAX_BYTES && !self.waiting.is_empty();
        heavy || self.waiting.len() >= MAX_MESSAGES
    }

    fn is_half_full(&self) -> bool {
        let much = self.waiting.len() >= MAX_MESSAGES / 2 || self.weight >= MAX_BYTES / 2;
        // If the queue is empty, unblocked senders have not run yet.
        much || (self.blocked > 0 && !self.waiting.is_empty())
    }

    /// Returns whether the message's run accepts it; opens and closes runs.
    fn admit(&mut self, message: &WriterMessage) -> Result<(), AuditError> {
        if self.shut {
            return Err(AuditError::new("the archive is shut"));
        }
        match message {
            WriterMessage::Flush(_) => Ok(()),
            // Only the writer knows whether the run exists or existed.
            WriterMessage::Close(run, ..) => check(run, self.runs.remove(run).or(Some(Ok(())))),
            WriterMessage::Leave(run, _) => check(run, self.runs.remove(run)),
            WriterMessage::Event(event, _) => self.admit_event(event),
        }
    }

    fn admit_event(&mut self, event: &AuditEvent) -> Result<(), AuditError> {
        let run = &event.run;
        match event.what {
            EventKind::RunStarted(_) | EventKind::RunResumed(_) if self.runs.contains_key(run) => {
                Err(AuditError::new(format!("run {run} is already open")))
            }
            EventKind::RunStarted(_) | EventKind::RunResumed(_) => {
                self.runs.insert(run.clone(), Ok(()));
                Ok(())
            }
            EventKind::RunClosed => check(run, self.runs.remove(run)),
            EventKind::CallStarted(_) | EventKind::CallEnded(..) => {
                check(run, self.runs.get(run).cloned())
            }
        }
    }
}

/// Refuses a run that is not open or could not be written.
fn check(run: &RunId, state: Option<Result<(), AuditError>>) -> Result<(), AuditError> {
    match state {
        Some(Ok(())) => Ok(()),
        Some(Err(why)) => Err(why),
        None => Err(AuditError::new(format!("run {run} is not open"))),
    }
}

impl WriterMessage {
    /// Returns its approximate size in memory.
    fn weight(&self) -> usize {
        let texts = match self {
            Self::Event(event, _) => match &event.what {
                EventKind::RunStarted(_) | EventKind::RunResumed(_) | EventKind::RunClosed => 0,
                EventKind::CallStarted(call) => call.arguments.len() + call.tool.len(),
                EventKind::CallEnded(call, end) => {
                    let error = end.error.as_ref().map_or(0, |(_, message)| message.len());
                    call.arguments.len() + call.tool.len() + end.summary.len() + error
                }
            },
            Self::Close(..) | Self::Leave(..) | Self::Flush(_) => 0,
        };
        MESSAGE_OVERHEAD + texts
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const SENDERS: usize = 3;

    #[test]
    fn senders_that_were_let_in_and_have_not_come_yet_are_no_end() {
        // More than the queue holds: no sender ends without having waited.
        let each = 2 * MAX_MESSAGES;
        let queue = EventQueue::new();
        thread::scope(|scope| {
            for _ in 0..SENDERS {
                scope.spawn(|| {
                    for _ in 0..each {
                        let (tell, _) = oneshot::channel();
                        queue.send(WriterMessage::Flush(tell)).unwrap();
                    }
                });
            }
            // All senders wait for room; the writer empties the queue and checks again before they run.
            while queue.state().blocked < SENDERS {
                thread::yield_now();
            }
            let (mut batch, mut received) = (Vec::new(), 0);
            while received < SENDERS * each {
                let goes_on = queue.receive(&mut batch);
                if !goes_on {
                    // Let the senders end, too, before the panic.
                    queue.abandon();
                    panic!("the queue was taken for shut after {received} messages");
                }
                received += batch.len();
                batch.clear();
            }
            queue.shut_down();
            assert!(!queue.receive(&mut batch));
        });
    }
}
