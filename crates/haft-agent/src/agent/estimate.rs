//! Estimates the cost of a reply if its provider does not report it, so that budgets limit it, and marks it as an estimate.

use haft_wire::{Reply, Usage};

use crate::agent::{Agent, AgentError};
use crate::conversation::ConversationEntry;
use crate::event::AgentEvent;

/// The approximate number of bytes per token: four in English and in code, fewer elsewhere.
const BYTES_A_TOKEN: usize = 4;

impl Agent {
    /// Estimates what the provider did not report for a reply to the current history: counts of zero cannot be real.
    pub(super) fn estimate(&self, reply: &Reply) -> Usage {
        let mut estimate = Usage::default();
        if reply.usage.input == 0 {
            let tools = self.offer.now().json().len();
            estimate.input = tokens(self.system.len() + tools + self.history.bytes());
        }
        if reply.usage.output == 0 {
            let raw = reply.turn.raw.get().len();
            estimate.output = tokens(raw.max(reply.turn.text().len()));
        }
        estimate
    }

    /// Adds the estimate; reports it once per conversation.
    pub(super) fn count_estimate(&mut self, usage: Usage) -> Result<(), AgentError> {
        let is_first = self.history.spent.estimated == 0;
        self.note(ConversationEntry::Spent {
            usage,
            is_estimate: true,
        })?;
        if is_first {
            self.tell_watcher(AgentEvent::Notice {
                text: "the provider does not say how many tokens it read and wrote; they are estimated, at four bytes a token, and so is what they cost",
            });
        }
        Ok(())
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_A_TOKEN) as u64
}
