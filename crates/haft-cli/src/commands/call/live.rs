//! A running tool's output on the terminal, as it comes: stdout to stdout, stderr to stderr.

use std::collections::HashMap;

use haft::call::CallId;
use haft::progress::{ProgressEvent, ProgressSink, Stream};
use parking_lot::Mutex;

use crate::screen::{DIM, Screen, styled, visible};

/// Shows what tools say while they run.
#[derive(Debug)]
pub(crate) struct Live {
    screen: Screen,
    /// Whether a command's output goes to the screen, too.
    output: bool,
    shown: Mutex<HashMap<CallId, Extent>>,
}

/// How much of one call's output is on the screen.
#[derive(Debug, Default, Clone, Copy)]
struct Extent {
    /// Bytes of each stream, up to the last one shown.
    upto: [u64; 2],
    /// A piece was left out: the terminal did not keep up.
    gap: bool,
}

impl Live {
    pub(crate) fn new(screen: Screen, output: bool) -> Self {
        Self {
            screen,
            output,
            shown: Mutex::default(),
        }
    }

    /// Whether all of a call's output was shown, so that it need not be printed again. `stdout` and `stderr` are what the call
    /// returned.
    pub(crate) fn has_shown(&self, call: &CallId, stdout: &str, stderr: &str) -> bool {
        let shown = self.shown.lock().get(call).copied();
        shown.is_some_and(|shown| {
            let covers = |nth: usize, text: &str| shown.upto[nth] >= text.len() as u64;
            !shown.gap && covers(0, stdout) && covers(1, stderr)
        })
    }

    fn piece(&self, event: &ProgressEvent, nth: usize) {
        let mut all = self.shown.lock();
        let shown = all.entry(event.call.clone()).or_default();
        shown.gap |= event.offset > shown.upto[nth];
        shown.upto[nth] = event.offset + event.text.len() as u64;
        drop(all);
        let text = visible::block(&event.text);
        if nth == 0 {
            // A reader that is gone ends the command by itself.
            let _ = self.screen.out(&text);
        } else {
            self.screen.err_text(&text);
        }
    }
}

impl ProgressSink for Live {
    fn progress(&self, event: ProgressEvent) {
        match event.stream {
            Stream::Stdout if self.output => self.piece(&event, 0),
            Stream::Stderr if self.output => self.piece(&event, 1),
            Stream::Info => {
                for line in event.text.lines() {
                    self.screen.say(&styled(DIM, &visible::line(line)));
                }
            }
            Stream::Stdout | Stream::Stderr => {}
        }
    }
}
