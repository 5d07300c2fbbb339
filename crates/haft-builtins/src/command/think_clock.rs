//! `ThinkClock`: a command's timeout clock, which stops while the user decides about its connections.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Measures the time spent on decisions; simultaneous decisions count once.
#[derive(Debug, Default)]
pub(super) struct ThinkClock {
    state: Mutex<ThinkState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ThinkState {
    decisions: usize,
    since: Option<Instant>,
    total: Duration,
}

/// A pending decision, until dropped.
#[derive(Debug)]
pub(super) struct DecisionGuard<'a>(&'a ThinkClock);

impl ThinkClock {
    /// Starts a pending decision.
    pub(super) fn begin(&self) -> DecisionGuard<'_> {
        let mut state = self.state.lock();
        state.decisions += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        self.changed.notify_one();
        DecisionGuard(self)
    }

    /// Completes when a decision has begun or ended since the last call.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns what is left of a `time` that began at `start`, or `None` while a decision is pending.
    pub(super) fn left(&self, start: Instant, time: Duration) -> Option<Duration> {
        let state = self.state.lock();
        match state.since {
            Some(_) => None,
            None => Some((time + state.total).saturating_sub(start.elapsed())),
        }
    }
}

impl Drop for DecisionGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.decisions -= 1;
        if state.decisions == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::ThinkClock;

    #[test]
    fn time_stands_still_while_any_decision_is_awaited() {
        let clock = ThinkClock::default();
        let hour = Duration::from_secs(3600);
        let start = Instant::now();
        assert!(clock.left(start, hour).is_some());
        let one = clock.begin();
        let other = clock.begin();
        drop(one);
        assert_eq!(clock.left(start, hour), None);
        std::thread::yield_now();
        drop(other);
        let (left, passed) = (clock.left(start, hour).unwrap(), start.elapsed());
        assert!(left > hour.saturating_sub(passed), "{left:?} of {passed:?}");
    }
}
