//! `Terminal`: asks the user at the prompt; the deciding fact comes first, Enter alone means no.

use std::sync::atomic::{AtomicUsize, Ordering};

use haft::approval::{ApprovalId, ApprovalRequest, Approver, ApproverReply};
use haft::future::BoxFuture;

use crate::screen::{DIM, Screen, styled};
use crate::terminal::typed::TypedLines;
use haft_app::host::ApproverParts;

pub(crate) mod changes;
pub(crate) mod choice;
pub(crate) mod fact;
mod keep;
pub(crate) mod prompt;
mod questions;
pub(crate) mod stdin;
pub(crate) mod typed;

use choice::PromptKind;
use prompt::{ApprovalPrompt, UserReply};

/// The origin of its decisions.
const FROM: &str = "terminal";

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
        if self.lines.router().is_by_bytes() {
            // A command has this terminal: whatever is typed is for that.
            return ApproverReply::Nobody;
        }
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

#[cfg(test)]
mod tests;
