//! `CallScope`: the state of a running call: the trace of its nested calls, the time in which one of them waits for a decision, and
//! whether it has been told to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::approval::suspended::SuspendedCall;
use crate::call::CallId;
use crate::result::{Status, TracedCall};
use crate::session::lane::LaneSeat;

/// Maximum number of calls in a trace: a session's default budget.
const MAX_TRACED: usize = 10_000;

/// One per running call, shared by the sessions nested in it.
#[derive(Debug)]
pub(crate) struct CallScope {
    call: CallId,
    /// The nest of the session that the call itself runs in.
    outer: Option<Arc<CallScope>>,
    trace: Mutex<Vec<TracedCall>>,
    /// Whether there is a trace: most calls make none, and this avoids the lock.
    has_trace: AtomicBool,
    waits: Mutex<WaitTime>,
    /// Whether the call or a nested one has waited for a decision.
    has_waited: AtomicBool,
    /// Why the call must end, if it must.
    ending: OnceLock<CallEndReason>,
    /// Whether its tool waits for the ending.
    listens: AtomicBool,
    /// Whether the call was suspended or interrupted and is resumed: until it is over, it can be resumed again.
    resumable: AtomicBool,
    repeat: Mutex<RepeatState>,
    changed: Notify,
    seat: LaneSeat,
}

/// What identifies a call when it is made again.
#[derive(Debug, Clone)]
pub(crate) struct RepeatKey {
    pub(crate) key: String,
    /// Whether its run exists only for it, so that it is made again in another.
    pub(crate) alone: bool,
}

/// How a call is found when it is made again.
#[derive(Debug, Clone, Default)]
pub(crate) struct RepeatState {
    /// `None` for a call that is not looked for.
    pub(crate) key: Option<RepeatKey>,
    /// Whether it has begun, so that what it waits for are requests of calls within it.
    pub(crate) has_begun: bool,
    /// As what it is noted while it waits for a decision.
    pub(crate) noted: Option<SuspendedCall>,
    /// Whether the request that it waited for stays pending without it.
    pub(crate) is_left: bool,
}

/// Why a running call must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEndReason {
    /// Its time is over.
    Late,
    /// The session was cancelled.
    Cancelled,
}

/// Time in which the call or at least one nested call waits for a decision.
#[derive(Debug, Default)]
struct WaitTime {
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

impl CallScope {
    pub(crate) fn new(call: CallId, outer: Option<Arc<CallScope>>) -> Self {
        Self {
            call,
            outer,
            trace: Mutex::default(),
            has_trace: AtomicBool::new(false),
            waits: Mutex::default(),
            has_waited: AtomicBool::new(false),
            ending: OnceLock::new(),
            listens: AtomicBool::new(false),
            resumable: AtomicBool::new(false),
            repeat: Mutex::default(),
            changed: Notify::new(),
            seat: LaneSeat::default(),
        }
    }

    /// Returns the call's seat in its session's lane.
    pub(crate) fn seat(&self) -> &LaneSeat {
        &self.seat
    }

    /// Notes whether the call could be resumed if it ended now.
    pub(crate) fn set_resumable(&self, resumable: bool) {
        self.resumable.store(resumable, Ordering::Release);
    }

    /// Returns whether the call could be resumed if it ended now.
    pub(crate) fn is_resumable(&self) -> bool {
        self.resumable.load(Ordering::Acquire)
    }

    /// Returns how the call is found when it is made again.
    pub(crate) fn repeat(&self) -> MutexGuard<'_, RepeatState> {
        self.repeat.lock()
    }

    /// Returns the outermost call around this one, or this one.
    pub(crate) fn outermost(&self) -> &Self {
        self.outer.as_deref().map_or(self, Self::outermost)
    }

    /// Tells the call's tool to end; returns false if it does not listen.
    pub(crate) fn end_now(&self, ending: CallEndReason) -> bool {
        // Only the first reason counts.
        let _ = self.ending.set(ending);
        self.changed.notify_waiters();
        self.listens.load(Ordering::Acquire)
    }

    /// Completes when the call must end.
    pub(crate) async fn ending(&self) -> CallEndReason {
        self.listens.store(true, Ordering::Release);
        loop {
            let changed = self.changed.notified();
            if let Some(ending) = self.ending.get() {
                return *ending;
            }
            changed.await;
        }
    }

    /// Returns the state of the outer call.
    pub(crate) fn outer(&self) -> Option<&Self> {
        self.outer.as_deref()
    }

    pub(crate) fn call(&self) -> &CallId {
        &self.call
    }

    fn lines(&self) -> MutexGuard<'_, Vec<TracedCall>> {
        self.trace.lock()
    }

    /// Adds a nested call to the trace and returns its number, from 1. Until it ends, its status is cancelled: if it is dropped, that
    /// is correct.
    pub(crate) fn begin(&self, tool: &str, args_digest: String) -> Option<u64> {
        let mut lines = self.lines();
        if lines.len() >= MAX_TRACED {
            return None;
        }
        let seq = lines.len() as u64 + 1;
        lines.push(TracedCall {
            seq,
            tool: tool.chars().take(128).collect(),
            args_digest,
            status: Status::Cancelled,
            duration_ms: 0.0,
        });
        self.has_trace.store(true, Ordering::Release);
        Some(seq)
    }

    /// Sets the status of a nested call that has ended.
    pub(crate) fn end(&self, seq: u64, status: Status, duration_ms: f64) {
        let index = usize::try_from(seq - 1).unwrap_or(usize::MAX);
        if let Some(line) = self.lines().get_mut(index) {
            line.status = status;
            line.duration_ms = duration_ms;
        }
    }

    /// Returns the nested calls, in the order in which they began.
    pub(crate) fn trace(&self) -> Vec<TracedCall> {
        if !self.has_trace.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.lines().clone()
    }

    /// Begins a wait for a decision, in this call and in those around it; the wait ends when the guard is dropped.
    pub(crate) fn begin_wait(self: &Arc<Self>) -> WaitGuard {
        let mut at = Some(self);
        while let Some(nest) = at {
            nest.change(|waits| {
                waits.open += 1;
                waits.since.get_or_insert_with(Instant::now);
            });
            at = nest.outer.as_ref();
        }
        WaitGuard(Arc::clone(self))
    }

    fn change(&self, change: impl FnOnce(&mut WaitTime)) {
        self.has_waited.store(true, Ordering::Release);
        change(&mut self.waits.lock());
        self.changed.notify_waiters();
    }

    /// Returns how long the call or a nested one has waited for decisions so far, and whether one waits now.
    pub(crate) fn waited(&self) -> (Duration, bool) {
        if !self.has_waited.load(Ordering::Acquire) {
            return (Duration::ZERO, false);
        }
        let waits = self.waits.lock();
        let now = waits.since.map_or(Duration::ZERO, |since| since.elapsed());
        (waits.total + now, waits.open > 0)
    }

    /// Completes when `limit` has passed since `begun`, not counting waits for decisions.
    pub(crate) async fn elapsed(&self, begun: Instant, limit: Duration) {
        loop {
            let changed = self.changed.notified();
            let (waited, waiting) = self.waited();
            let spent = begun.elapsed().saturating_sub(waited);
            let Some(left) = limit.checked_sub(spent).filter(|left| !left.is_zero()) else {
                return;
            };
            if waiting {
                changed.await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = changed => {}
            }
        }
    }
}

/// An ongoing wait for a decision.
#[derive(Debug)]
pub(crate) struct WaitGuard(Arc<CallScope>);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let mut at = Some(&self.0);
        while let Some(nest) = at {
            nest.change(|waits| {
                waits.open = waits.open.saturating_sub(1);
                if waits.open == 0
                    && let Some(since) = waits.since.take()
                {
                    waits.total += since.elapsed();
                }
            });
            at = nest.outer.as_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::CallScope;
    use crate::call::CallId;
    use crate::result::Status;

    #[test]
    fn a_call_that_nobody_closes_is_traced_as_cancelled() {
        let nest = CallScope::new(CallId::new("call-1"), None);
        let (first, second) = (nest.begin("a", "x".into()), nest.begin("b", "y".into()));
        nest.end(second.unwrap(), Status::Ok, 1.0);
        let seen: Vec<_> = nest.trace().iter().map(|c| (c.seq, c.status)).collect();
        assert_eq!(first, Some(1));
        assert_eq!(seen, [(1, Status::Cancelled), (2, Status::Ok)]);
    }

    #[tokio::test]
    async fn waits_of_calls_within_stop_the_clock_of_all_around_them() {
        let outer = Arc::new(CallScope::new(CallId::new("call-1"), None));
        let inner = Arc::new(CallScope::new(
            CallId::new("call-2"),
            Some(Arc::clone(&outer)),
        ));
        let started = Instant::now();
        let (first, second) = (inner.begin_wait(), inner.begin_wait());
        let limit = Duration::from_millis(30);
        let early = tokio::time::timeout(Duration::from_millis(90), outer.elapsed(started, limit));
        assert!(
            early.await.is_err(),
            "the clock ran while a person was asked"
        );
        drop(first);
        assert!(outer.waited().1);
        drop(second);
        assert!(!outer.waited().1 && outer.waited().0 >= Duration::from_millis(90));
        outer.elapsed(started, limit).await;
        assert!(started.elapsed() >= Duration::from_millis(120));
    }
}
