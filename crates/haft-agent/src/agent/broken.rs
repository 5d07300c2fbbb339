//! `Broken`: what requests cost that came to no whole reply, as far as their provider said.

use haft_wire::Usage;

use crate::model::ModelEvent;

/// What was reported while a model was asked.
#[derive(Debug, Default)]
pub(super) struct Broken {
    /// By requests that failed and were sent again.
    before: Usage,
    /// By the request at hand.
    now: Usage,
}

impl Broken {
    /// Hears what happens.
    pub(super) fn hear(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Usage(usage) => self.now = *usage,
            ModelEvent::Retry { .. } => {
                self.before = sum(self.before, std::mem::take(&mut self.now));
            }
            ModelEvent::Delta(_) => {}
        }
    }

    /// What was spent beside a reply; a whole one says itself what it cost.
    pub(super) fn lost(self, is_whole: bool) -> Usage {
        if is_whole {
            return self.before;
        }
        sum(self.before, self.now)
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        cached: one.cached.saturating_add(other.cached),
        output: one.output.saturating_add(other.output),
        thinking: one.thinking.saturating_add(other.thinking),
    }
}
