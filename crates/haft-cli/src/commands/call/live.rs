//! Prints a running tool's output to the terminal as it arrives: stdout to stdout, stderr to stderr.

use std::collections::HashMap;

use haft::call::CallId;
use haft::progress::{ProgressEvent, ProgressSink, ProgressStream};
use haft::result::{PartMark, RenderedOutcome};
use parking_lot::Mutex;

use crate::screen::{DIM, Screen, styled, visible};

/// Shows what tools report while they run.
#[derive(Debug)]
pub(crate) struct LivePrinter {
    screen: Screen,
    /// Whether a command's output is also shown.
    output: bool,
    shown: Mutex<HashMap<CallId, ShownExtent>>,
}

/// How much of a call's output was shown.
#[derive(Debug, Default, Clone, Copy)]
struct ShownExtent {
    /// The offset of each stream up to which it was shown.
    upto: [u64; 2],
    /// Whether a piece was left out because the terminal did not keep up.
    gap: bool,
}

impl LivePrinter {
    pub(crate) fn new(screen: Screen, output: bool) -> Self {
        Self {
            screen,
            output,
            shown: Mutex::default(),
        }
    }

    /// Returns whether all output that the call returned was shown, so that it need not be printed again.
    pub(crate) fn has_shown(&self, call: &CallId, returned: &RenderedOutcome<'_>) -> bool {
        let shown = self.shown.lock().get(call).copied();
        shown.is_some_and(|shown| {
            let covers = |nth: usize, mark| {
                let mut texts = returned.texts(mark);
                texts.all(|text| shown.upto[nth] >= text.len() as u64)
            };
            !shown.gap && covers(0, PartMark::Stdout) && covers(1, PartMark::Stderr)
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
            // The screen notes what could not be written: the command ends with that.
            let _ = self.screen.out(&text);
        } else {
            self.screen.err_text(&text);
        }
    }
}

impl ProgressSink for LivePrinter {
    fn progress(&self, event: ProgressEvent) {
        match event.stream {
            ProgressStream::Stdout if self.output => self.piece(&event, 0),
            ProgressStream::Stderr if self.output => self.piece(&event, 1),
            ProgressStream::Info => {
                for line in event.text.lines() {
                    self.screen.say(&styled(DIM, &visible::line(line)));
                }
            }
            ProgressStream::Stdout | ProgressStream::Stderr => {}
        }
    }
}
