//! `Budget`: how much the meanings of one change set may read, show and take.

use std::time::{Duration, Instant};

/// Maximum number of bytes of files that all meanings of a change set show.
const MAX_SHOWN: usize = 512 << 10;
/// Maximum number of files that all meanings of a change set show.
const MAX_FILES: usize = 300;
/// Maximum number of bytes that are read of files: the largest lockfile that is understood, before and after, and some more.
const MAX_READ: usize = 48 << 20;

/// What is left for reading and showing.
#[derive(Debug)]
pub(super) struct Budget {
    ends: Instant,
    shown: usize,
    files: usize,
    read: usize,
}

impl Budget {
    /// Creates the budget of one change set, which ends after `time`.
    pub(super) fn new(time: Duration) -> Self {
        Self {
            ends: Instant::now() + time,
            shown: MAX_SHOWN,
            files: MAX_FILES,
            read: MAX_READ,
        }
    }

    /// Returns true if the time is over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// Takes the room for reading this many bytes; false if there is none.
    pub(super) fn may_read(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.read && !self.is_over();
        if fits {
            self.read -= bytes;
        }
        fits
    }

    /// Takes the room for showing one file of this many bytes; false if there is none.
    pub(super) fn may_show(&mut self, bytes: usize) -> bool {
        let fits = self.files > 0 && bytes <= self.shown;
        if fits {
            self.files -= 1;
            self.shown -= bytes;
        }
        fits
    }

    /// Returns true if no file can be shown any more.
    pub(super) fn is_full(&self) -> bool {
        self.files == 0
    }
}
