//! `Backlog`: lines that were read but not handled yet, limited in bytes. Reading ahead makes it possible to notice the end of
//! the input while the output is blocked.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

/// What the reading thread delivers.
#[derive(Debug)]
pub enum InputLine {
    /// A line that is not blank, without its newline.
    Message(Vec<u8>),
    /// A line over the limit; it was skipped to its end.
    TooLong,
    /// The stream failed.
    Broken(io::Error),
}

impl InputLine {
    /// Returns the bytes that it takes of a backlog.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message(bytes) => bytes.len(),
            Self::TooLong | Self::Broken(_) => 0,
        }
    }
}

/// Lines queued between the reading thread and the server.
#[derive(Debug)]
pub struct Backlog {
    most: usize,
    state: Mutex<BacklogState>,
    /// Wakes the reading thread.
    room: Condvar,
    /// Wakes the server.
    more: Notify,
}

#[derive(Debug, Default)]
struct BacklogState {
    lines: VecDeque<InputLine>,
    bytes: usize,
    /// Whether the input has ended.
    ended: bool,
    /// Whether the server takes no more lines.
    closed: bool,
}

impl Backlog {
    /// Creates a backlog of at most `most` bytes; a longer line is alone in it.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            state: Mutex::default(),
            room: Condvar::new(),
            more: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock()
    }

    /// Adds a line once there is room; returns false if no more lines are taken. Blocks.
    pub fn push(&self, line: InputLine) -> bool {
        let bytes = line.bytes();
        let full = |state: &mut BacklogState| {
            !state.closed && !state.lines.is_empty() && state.bytes + bytes > self.most
        };
        let mut state = self.lock();
        self.room.wait_while(&mut state, full);
        if state.closed {
            return false;
        }
        state.lines.push_back(line);
        state.bytes += bytes;
        self.more.notify_one();
        true
    }

    /// Marks the end of the input.
    pub fn end(&self) {
        self.lock().ended = true;
        self.more.notify_one();
    }

    /// Returns the next line; `None` once all were taken and the input has ended. Dropping the future loses nothing.
    pub async fn next(&self) -> Option<InputLine> {
        loop {
            let more = self.more.notified();
            {
                let mut state = self.lock();
                if let Some(line) = state.lines.pop_front() {
                    state.bytes -= line.bytes();
                    self.room.notify_one();
                    return Some(line);
                }
                if state.ended {
                    return None;
                }
            }
            more.await;
        }
    }

    /// Returns whether the end of the input was read, even if lines before it are still queued.
    pub fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Stops taking lines: the reading thread ends at its next line.
    pub fn close(&self) {
        self.lock().closed = true;
        self.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: usize) -> InputLine {
        InputLine::Message(vec![b'x'; bytes])
    }

    #[tokio::test]
    async fn lines_come_in_order_within_the_bytes_and_the_end_is_known_before_they_are_taken() {
        let backlog = Backlog::new(10);
        let reading = std::thread::spawn({
            let backlog = Arc::clone(&backlog);
            move || {
                for bytes in [4, 6, 20, 1] {
                    assert!(backlog.push(line(bytes)));
                    let held = backlog.lock().bytes;
                    assert!(held <= 10 || held == bytes, "{held} bytes");
                }
                backlog.end();
            }
        });
        let mut taken = Vec::new();
        while let Some(line) = backlog.next().await {
            taken.push(line.bytes());
        }
        reading.join().unwrap();
        assert_eq!(taken, [4, 6, 20, 1]);
        let backlog = Backlog::new(10);
        assert!(backlog.push(line(1)));
        backlog.end();
        assert!(backlog.has_ended() && backlog.next().await.is_some());
        assert!(backlog.next().await.is_none());
    }

    #[test]
    fn a_thread_that_waits_for_room_is_let_go_when_nobody_takes_any_more() {
        let backlog = Backlog::new(10);
        assert!(backlog.push(line(10)));
        let reading = std::thread::spawn({
            let backlog = Arc::clone(&backlog);
            move || backlog.push(line(10))
        });
        backlog.close();
        assert!(!reading.join().unwrap());
    }
}
