//! `WalkQueue`: the remaining work of a walk's threads.

use parking_lot::{Condvar, Mutex};

/// A queue of tasks that may add more tasks. It ends when it is empty and no thread is busy, or when it is stopped.
#[derive(Debug)]
pub(super) struct WalkQueue<T> {
    state: Mutex<WalkQueueState<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct WalkQueueState<T> {
    waiting: Vec<T>,
    busy: usize,
    is_stopped: bool,
}

/// Marks a thread as busy with a task until dropped.
pub(super) struct BusyGuard<'a, T> {
    queue: &'a WalkQueue<T>,
}

impl<T> WalkQueue<T> {
    pub(super) fn new(first: T) -> Self {
        Self {
            state: Mutex::new(WalkQueueState {
                waiting: vec![first],
                busy: 0,
                is_stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for the next task. Returns `None` when everything is done.
    pub(super) fn take(&self) -> Option<(T, BusyGuard<'_, T>)> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            // The newest first: its folder is still cached, and the list stays short.
            if let Some(task) = state.waiting.pop() {
                state.busy += 1;
                return Some((task, BusyGuard { queue: self }));
            }
            if state.busy == 0 {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Stops the queue; no further tasks start.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }
}

impl<T> BusyGuard<'_, T> {
    /// Adds the tasks that this task led to.
    pub(super) fn add(&self, tasks: &mut Vec<T>) {
        if !tasks.is_empty() {
            self.queue.state.lock().waiting.append(tasks);
            self.queue.changed.notify_all();
        }
    }
}

impl<T> Drop for BusyGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.busy -= 1;
        if state.busy == 0 && state.waiting.is_empty() {
            self.queue.changed.notify_all();
        }
    }
}
