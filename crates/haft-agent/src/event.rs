//! `AgentEvent`: what happens in a run, for screens and programs.

use haft::{CallId, Outcome};
use haft_wire::{Delta, Usage};

use crate::budget::Spent;
use crate::end::Finished;

mod line;

/// What happens in a run, in the order in which it happens. [`write_line`](Self::write_line) makes a line of JSON of it.
///
/// Live output of tools is not among them: the session's own `ProgressSink` hears that.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A piece of the model's reply.
    Delta(&'a Delta),
    /// The model's reply is whole: its text, empty for one that makes calls alone.
    Message {
        /// The text.
        text: &'a str,
    },
    /// The request to the model failed and is sent again after a pause.
    Retry {
        /// The pause, in milliseconds.
        pause_ms: u64,
        /// What failed.
        why: &'a str,
    },
    /// A call is about to run, or is refused before it does.
    ToolCall {
        /// The call, as in the record and in live output.
        id: &'a CallId,
        /// The tool.
        tool: &'a str,
        /// Its arguments, as the model wrote them.
        arguments: &'a str,
    },
    /// A call has its answer.
    ToolResult {
        /// The call.
        id: &'a CallId,
        /// The tool.
        tool: &'a str,
        /// What came of it; none where nothing ran now.
        outcome: Option<&'a Outcome>,
        /// What the model reads.
        text: &'a str,
        /// Whether it failed.
        is_error: bool,
    },
    /// A call waits for a decision, and the run will end as suspended.
    Approval {
        /// The call.
        id: &'a CallId,
        /// The tool.
        tool: &'a str,
        /// The request that it waits for.
        approval: &'a str,
    },
    /// What the loop did beside calls: tools suggested, old results kept aside, older turns summed up.
    Notice {
        /// A sentence.
        text: &'a str,
    },
    /// What a reply cost.
    Usage {
        /// The model.
        model: &'a str,
        /// This reply.
        usage: &'a Usage,
        /// The whole conversation.
        spent: &'a Spent,
    },
    /// The run has ended.
    Done(&'a Finished),
}

/// Hears what happens in a run. It must not block: what it does, the run waits for.
pub trait Watcher: Send + Sync {
    /// Takes one event.
    fn event(&self, event: AgentEvent<'_>);
}

impl<F: Fn(AgentEvent<'_>) + Send + Sync> Watcher for F {
    fn event(&self, event: AgentEvent<'_>) {
        self(event);
    }
}

impl std::fmt::Debug for dyn Watcher + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}
