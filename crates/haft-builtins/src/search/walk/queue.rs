//! What the threads of a walk still have to do.

use parking_lot::{Condvar, Mutex};

/// Work that makes more work. It ends when nothing is left and nobody is busy, or when it is stopped.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: Vec<T>,
    busy: usize,
    is_stopped: bool,
}

/// A thread is busy with a task as long as it has this.
pub(super) struct Turn<'a, T> {
    queue: &'a Queue<T>,
}

impl<T> Queue<T> {
    pub(super) fn new(first: T) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: vec![first],
                busy: 0,
                is_stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// The next task, once there is one; none when all is done.
    pub(super) fn take(&self) -> Option<(T, Turn<'_, T>)> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            // The newest first: its folder is warm, and the list stays short.
            if let Some(task) = state.waiting.pop() {
                state.busy += 1;
                return Some((task, Turn { queue: self }));
            }
            if state.busy == 0 {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Has nothing more done.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }
}

impl<T> Turn<'_, T> {
    /// Adds what the task has led to.
    pub(super) fn add(&self, tasks: &mut Vec<T>) {
        if !tasks.is_empty() {
            self.queue.state.lock().waiting.append(tasks);
            self.queue.changed.notify_all();
        }
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.busy -= 1;
        if state.busy == 0 && state.waiting.is_empty() {
            self.queue.changed.notify_all();
        }
    }
}
