//! `Terminal`: asks the user at the prompt; the deciding fact comes first, Enter alone means no.

use std::io::{self, BufRead};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haft::approval::{ApprovalId, ApprovalRequest, Approver, ApproverReply};
use haft::future::BoxFuture;
use tokio::sync::mpsc;

use crate::screen::{DIM, Screen, styled};
use crate::terminal::typed::TypedLines;
use haft_app::host::ApproverParts;

pub(crate) mod changes;
pub(crate) mod choice;
pub(crate) mod fact;
mod keep;
pub(crate) mod prompt;
mod questions;
pub(crate) mod typed;

use choice::PromptKind;
use prompt::{ApprovalPrompt, UserReply};

/// The origin of its decisions.
const FROM: &str = "terminal";

/// Maximum number of lines that the user may have typed ahead. More are dropped: left in the terminal, they would be read once the next
/// request is on the screen, and answer it.
const TYPED_AHEAD: usize = 64;

/// The user at this terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    prompt: ApprovalPrompt,
    /// The typed lines: one request reads them at a time.
    lines: TypedLines,
    /// The number of requests waiting for this terminal, including the one on the screen.
    waiting: AtomicUsize,
}

impl Terminal {
    /// Creates a prompt on stdin and stderr, which must be terminals.
    pub(crate) fn new(screen: Screen, parts: ApproverParts, lines: TypedLines) -> Self {
        let prompt = ApprovalPrompt {
            screen,
            place: PromptKind::Prompt,
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

    async fn put(&self, request: &ApprovalRequest) -> ApproverReply {
        let _waits = WaitCounter::begin(&self.waiting);
        let mut lines = self.lines.for_a_prompt().await;
        // The prompt disappears when the request is decided elsewhere.
        let _gone = SettledNotice(self.prompt.screen, &request.id);
        let waiting = self.waiting.load(Ordering::Relaxed);
        if waiting > 1 {
            let count = format!("1 of {waiting} that are pending here");
            self.prompt.screen.err(&styled(DIM, &count));
        }
        match self.prompt.put(request, lines.receiver()).await {
            UserReply::Answer(answer) => answer,
            // This prompt offers no other requests.
            UserReply::Go(_) => ApproverReply::Nobody,
        }
    }
}

/// Counts a waiting request until it is dropped.
struct WaitCounter<'a>(&'a AtomicUsize);

impl<'a> WaitCounter<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for WaitCounter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(self.put(request))
    }
}

/// Says with `--verbose` that the request is settled, once its prompt ends: answered here, or removed because it was
/// decided elsewhere.
struct SettledNotice<'a>(Screen, &'a ApprovalId);

impl Drop for SettledNotice<'_> {
    fn drop(&mut self) {
        self.0.detail(&format!("approval {} is settled", self.1));
    }
}

/// Reads lines from stdin as they arrive. The thread ends with the process: a read cannot be cancelled.
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
