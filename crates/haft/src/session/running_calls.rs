//! `RunningCalls`: the resumable calls of a run, each of which runs only once at a time.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::call::CallId;

/// Running calls, by id.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    calls: Mutex<HashSet<CallId>>,
    left: Notify,
    /// Calls that are being resumed, and those that were cut off before their end.
    resumable: Mutex<HashSet<CallId>>,
}

/// Marks a call as running until dropped.
#[derive(Debug)]
pub(crate) struct RunningCallGuard {
    all: Arc<RunningCalls>,
    call: CallId,
}

impl RunningCalls {
    /// Waits until no other call runs under this id.
    pub(crate) async fn enter(self: &Arc<Self>, call: &CallId) -> RunningCallGuard {
        loop {
            let left = self.left.notified();
            if let Some(present) = self.try_enter(call) {
                return present;
            }
            left.await;
        }
    }

    /// Notes whether a resumed call could be resumed again if its process ended.
    pub(crate) fn note_resumable(&self, call: &CallId, resumable: bool) {
        let mut calls = self.resumable.lock();
        if resumable {
            calls.insert(call.clone());
        } else {
            calls.remove(call);
        }
    }

    /// Returns whether there is a call that can be resumed again.
    pub(crate) fn has_resumable(&self) -> bool {
        let calls = self.resumable.lock();
        !calls.is_empty()
    }

    fn try_enter(self: &Arc<Self>, call: &CallId) -> Option<RunningCallGuard> {
        let mut calls = self.calls.lock();
        calls.insert(call.clone()).then(|| RunningCallGuard {
            all: Arc::clone(self),
            call: call.clone(),
        })
    }
}

impl Drop for RunningCallGuard {
    fn drop(&mut self) {
        let calls = &self.all.calls;
        let mut calls = calls.lock();
        calls.remove(&self.call);
        self.all.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::RunningCalls;
    use crate::call::CallId;

    #[tokio::test]
    async fn one_at_a_time_under_an_id_and_others_beside_it() {
        let all = Arc::new(RunningCalls::default());
        let (a, b) = (CallId::new("a"), CallId::new("b"));
        let first = all.enter(&a).await;
        let _other = all.enter(&b).await;
        let mut second = Box::pin(all.enter(&a));
        let early = tokio::time::timeout(Duration::ZERO, &mut second).await;
        assert!(early.is_err());
        drop(first);
        let _second = second.await;
    }
}
