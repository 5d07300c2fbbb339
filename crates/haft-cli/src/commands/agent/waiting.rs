//! A line that shows what haft is waiting for; it is redrawn repeatedly and removed before anything else is printed.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use crate::screen::{self, visible};

/// How long nothing has to happen before the line is drawn.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The frames of its animation.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The waiting line.
#[derive(Debug)]
pub(super) struct WaitingLine {
    since: Instant,
    frame: usize,
    is_drawn: bool,
}

impl WaitingLine {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            frame: 0,
            is_drawn: false,
        }
    }

    /// Removes it from the screen and restarts the wait.
    pub(super) fn clear(&mut self) {
        self.since = Instant::now();
        if std::mem::take(&mut self.is_drawn) {
            write("\r\x1b[2K");
        }
    }

    /// Draws it if nothing has happened for a while.
    pub(super) fn draw(&mut self, what: &str) {
        let waited = self.since.elapsed();
        if waited < PATIENCE {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        self.is_drawn = true;
        let seconds = waited.as_secs();
        let room = screen::columns().saturating_sub(12);
        let what = visible::clipped(&visible::line(what), room);
        write(&format!(
            "\r\x1b[2K\x1b[2m{} {what} {seconds} s\x1b[0m",
            FRAMES[self.frame]
        ));
    }
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    // If stderr is closed, there is nowhere to draw.
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}
