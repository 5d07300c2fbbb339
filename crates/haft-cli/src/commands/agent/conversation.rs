//! A conversation: reads a line, runs the agent, reads the next one; Ctrl-D ends it.

use std::time::Duration;

use super::{Step, Talk};
use crate::commands::Done;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, styled};

/// Lines that arrive within this time of each other are one prompt: they were pasted.
const PASTED: Duration = Duration::from_millis(30);

impl Talk<'_> {
    /// Runs prompts until the user ends the conversation.
    pub(super) async fn converse(&mut self) -> Done {
        let how = "a conversation with ";
        let end = "; Ctrl-C stops what runs, Ctrl-D ends it";
        let model = self.agent.model().to_owned();
        self.at
            .screen
            .say(&styled(DIM, &format!("{how}{model}{end}")));
        loop {
            let at = self.at;
            let line = tokio::select! {
                line = read(at) => line,
                _ = self.signals.next() => {
                    self.at.screen.err("");
                    return Ok(Exit::Interrupted);
                }
            };
            let Some(line) = line else {
                self.at.screen.err("");
                return Ok(Exit::Done);
            };
            if line.trim().is_empty() {
                continue;
            }
            let exit = self.step(Step::Prompt(line)).await?;
            if exit == Exit::Denied || self.agent.agent().is_open() {
                // The run has ended, or waits for a decision.
                return Ok(exit);
            }
        }
    }
}

/// Reads the user's next prompt; `None` at the end of the input.
async fn read(at: &Invocation) -> Option<String> {
    let mut reading = at.lines.read().await;
    let lines = reading.receiver();
    at.screen.err_text(&styled(BOLD, "> "));
    let mut text = lines.recv().await?;
    while let Ok(Some(more)) = tokio::time::timeout(PASTED, lines.recv()).await {
        text.push('\n');
        text.push_str(&more);
    }
    Some(text)
}
