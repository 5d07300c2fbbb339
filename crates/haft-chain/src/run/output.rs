//! `Output`: what a script prints: bounded for the model, live for screens.

use std::fmt::Write as _;
use std::time::Instant;

use haft::progress::{Progress, Stream};

/// What is kept of its beginning, in bytes.
const HEAD: usize = 64 << 10;
/// What is kept of its end, in bytes.
const TAIL: usize = 16 << 10;

pub(super) struct Output {
    head: String,
    tail: String,
    total: u64,
    progress: Progress,
    /// Not shown yet, of one stream.
    gathered: String,
    stream: Stream,
    shown: Option<Instant>,
    used: [bool; 2],
}

impl Output {
    pub(super) fn new(progress: Progress) -> Self {
        Self {
            head: String::new(),
            tail: String::new(),
            total: 0,
            progress,
            gathered: String::new(),
            stream: Stream::Stdout,
            shown: None,
            used: [false; 2],
        }
    }

    /// Takes a piece.
    pub(super) fn take(&mut self, err: bool, text: &str) {
        self.total += text.len() as u64;
        let room = HEAD.saturating_sub(self.head.len());
        // Once something went to the tail, all that follows does.
        let cut = if self.tail.is_empty() {
            text.floor_char_boundary(room)
        } else {
            0
        };
        let (head, tail) = text.split_at(cut);
        self.head.push_str(head);
        self.tail.push_str(tail);
        if self.tail.len() > 2 * TAIL {
            let from = self.tail.ceil_char_boundary(self.tail.len() - TAIL);
            self.tail.drain(..from);
        }
        if self.progress.is_watched() {
            self.show(err, text);
        }
    }

    fn show(&mut self, err: bool, text: &str) {
        let stream = if err { Stream::Stderr } else { Stream::Stdout };
        if stream != self.stream {
            self.flush();
            self.stream = stream;
        }
        self.used[usize::from(err)] = true;
        self.gathered.push_str(text);
        let pace = self.progress.pace();
        let early = self.shown.is_some_and(|at| at.elapsed() < pace.gather);
        if !early || self.gathered.len() >= pace.bytes {
            self.flush();
        }
    }

    /// When what is gathered must be shown; none where nothing is.
    pub(super) fn due(&self) -> Option<Instant> {
        let shown = self.shown.filter(|_| !self.gathered.is_empty())?;
        Some(shown + self.progress.pace().gather)
    }

    /// Shows what is gathered.
    pub(super) fn flush(&mut self) {
        let most = self.progress.pace().bytes.max(4);
        let mut rest = self.gathered.as_str();
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(rest.floor_char_boundary(most));
            self.progress.send(self.stream, piece);
            rest = left;
        }
        self.gathered.clear();
        self.shown = Some(Instant::now());
    }

    /// Ends the streams that were used.
    pub(super) fn close(&mut self) {
        self.flush();
        for (used, stream) in self.used.iter().zip([Stream::Stdout, Stream::Stderr]) {
            if *used {
                self.progress.close(stream);
            }
        }
    }

    /// Bytes that were printed.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The beginning and the end, and what lies between said.
    pub(super) fn into_text(self) -> String {
        let mut text = self.head;
        let from = self.tail.len().saturating_sub(TAIL);
        let tail = self.tail.split_at(self.tail.ceil_char_boundary(from)).1;
        let left_out = self.total - text.len() as u64 - tail.len() as u64;
        if left_out > 0 {
            let _ = write!(text, "\n… {left_out} bytes left out …\n");
        }
        text.push_str(tail);
        text
    }
}
