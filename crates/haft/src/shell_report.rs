//! `ShellReport`: what the shell of a client's command line held when the line had ended, for a client that gives it to its next line.

use std::fmt;

use parking_lot::Mutex;

/// What a shell reports of itself, as the tool that runs command lines defines it. It comes from within the command: a client judges it as
/// text that the command wrote.
#[derive(Default)]
pub struct ShellReport {
    bytes: Mutex<Option<Vec<u8>>>,
}

impl fmt::Debug for ShellReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShellReport").finish_non_exhaustive()
    }
}

impl ShellReport {
    /// Maximum length of a report, in bytes. What a shell writes beyond is dropped, and the report has no end then.
    pub const MAX_BYTES: usize = 512 << 10;

    /// Stores what the shell wrote.
    pub fn give(&self, bytes: Vec<u8>) {
        *self.bytes.lock() = Some(bytes);
    }

    /// Returns what the shell wrote, once; `None` if no shell ran.
    pub fn take(&self) -> Option<Vec<u8>> {
        self.bytes.lock().take()
    }
}
