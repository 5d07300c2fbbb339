//! `Terminal`: asks the person at the prompt; the deciding fact first, Enter alone means no.

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haft::approval::{Answer, ApprovalId, ApprovalRequest, Approver};
use haft::future::BoxFuture;
use tokio::sync::mpsc;

use crate::screen::{DIM, Screen, styled};
use crate::terminal::typed::TypedLines;
use haft_app::host::ApproverParts;

pub(crate) mod choice;
pub(crate) mod fact;
mod keep;
pub(crate) mod prompt;
mod questions;
pub(crate) mod typed;

use choice::Place;
use prompt::{Prompt, Reply};

/// From where its decisions come.
const FROM: &str = "terminal";

/// Lines that a person may have typed ahead. More are dropped: left in the terminal, they would be read once the next
/// request is on the screen, and answer it.
const TYPED_AHEAD: usize = 64;

/// The person at this terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    prompt: Prompt,
    /// One request at a time.
    lines: TypedLines,
    /// Requests that wait for this terminal, the one on the screen among them.
    waiting: AtomicUsize,
}

impl Terminal {
    /// A prompt on stdin and stderr, which must be terminals.
    pub(crate) fn new(screen: Screen, parts: ApproverParts, lines: TypedLines) -> Self {
        let prompt = Prompt {
            screen,
            place: Place::Prompt,
            by: format!("{}@terminal", parts.principal.subject).into(),
            from: FROM,
            rules: parts.rules,
            redactor: parts.redactor,
        };
        Self {
            prompt,
            lines,
            waiting: AtomicUsize::new(0),
        }
    }

    async fn put(&self, request: &ApprovalRequest) -> Answer {
        let _waits = Waits::begin(&self.waiting);
        let mut lines = self.lines.for_a_prompt().await;
        // The prompt goes when the request is decided elsewhere.
        let _gone = Gone(self.prompt.screen, &request.id);
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting > 1 {
            let count = format!("1 of {waiting} that are pending here");
            self.prompt.screen.err(&styled(DIM, &count));
        }
        match self.prompt.put(request, lines.receiver()).await {
            Reply::Answer(answer) => answer,
            // There is nowhere to go from the prompt.
            Reply::Go(_) => Answer::Nobody,
        }
    }
}

/// Counts a request that waits, for as long as it does.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(self.put(request))
    }
}

/// Says, when the prompt is taken away before it was answered, that nobody waits for its answer.
struct Gone<'a>(Screen, &'a ApprovalId);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.detail(&format!("approval {} is settled", self.1));
    }
}

/// Lines of stdin as they come. The thread ends with the process: a read cannot be taken back.
pub(crate) fn read_lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(TYPED_AHEAD);
    let reader = thread::Builder::new().name("haft-prompt".into());
    let started = reader.spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if let Err(mpsc::error::TrySendError::Closed(_)) = send.try_send(line) {
                return;
            }
        }
    });
    if started.is_err() {
        tracing::error!("start the prompt's thread");
    }
    receive
}

#[cfg(test)]
mod tests;
