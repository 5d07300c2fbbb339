//! `UsageSoFar`: the cost of requests that produced no complete reply, as far as their provider reported it.

use haft_wire::Usage;

use crate::model::ModelEvent;

/// The usage reported while a model was asked.
#[derive(Debug, Default)]
pub(super) struct UsageSoFar {
    /// The usage of requests that failed and were sent again.
    before: Usage,
    /// The usage of the current request.
    now: Usage,
}

impl UsageSoFar {
    /// Takes an event of the model.
    pub(super) fn hear(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Usage(usage) => self.now = *usage,
            ModelEvent::Retry { .. } => {
                self.before = sum(self.before, std::mem::take(&mut self.now));
            }
            ModelEvent::Delta(_) => {}
        }
    }

    /// Returns the usage in addition to the reply's own; a complete reply reports its own cost.
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
