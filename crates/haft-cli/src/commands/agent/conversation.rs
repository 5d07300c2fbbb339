//! A conversation: reads a line, runs the agent, reads the next one; Ctrl-D ends it.

use std::time::Duration;

use super::{AgentConversation, ConversationInput};
use crate::commands::ExitResult;
use crate::commands::signals::Signals;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, styled};

/// Lines that arrive within this time of each other are one prompt: they were pasted.
const PASTED: Duration = Duration::from_millis(30);

/// Tells the user that a conversation begins.
pub(super) fn introduce(at: &Invocation, model: Option<&str>) {
    let with = model.map_or_else(String::new, |model| format!(" with {model}"));
    let says = format!("a conversation{with}; Ctrl-C stops what runs, Ctrl-D ends it");
    at.screen.say(&styled(DIM, &says));
}

impl AgentConversation<'_> {
    /// Runs prompts, from this one on, until the user ends the conversation.
    pub(super) async fn converse(&mut self, first: Option<String>) -> ExitResult {
        let mut first = first;
        loop {
            let line = match first.take() {
                Some(first) => first,
                None => match read(self.at, &mut self.signals).await {
                    Ok(line) => line,
                    Err(exit) => return Ok(exit),
                },
            };
            let exit = self.step(ConversationInput::Prompt(line)).await?;
            if exit == Exit::Denied || self.agent.agent().is_open() {
                // The run has ended, or waits for a decision.
                return Ok(exit);
            }
        }
    }
}

/// Reads the user's next prompt; returns how the command ends if there is none.
pub(super) async fn read(at: &Invocation, signals: &mut Signals) -> Result<String, Exit> {
    loop {
        let line = tokio::select! {
            line = lines(at) => line.ok_or(Exit::Done),
            _ = signals.next() => Err(Exit::Interrupted),
        };
        match line {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => return Ok(line),
            Err(exit) => {
                at.screen.err("");
                return Err(exit);
            }
        }
    }
}

/// Reads the lines that the user typed or pasted at once; `None` at the end of the input.
async fn lines(at: &Invocation) -> Option<String> {
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
