//! `AgentEvent`: the events of a run, for screens and programs.

use haft::{CallId, Outcome};
use haft_wire::{Delta, Usage};

use crate::budget::Spending;
use crate::end::RunResult;

mod line;

/// An event of a run, in order of occurrence. [`write_line`](Self::write_line) writes it as a line of JSON.
///
/// Live output of tools is not included: the session's own `ProgressSink` receives it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A piece of the model's reply.
    Delta(&'a Delta),
    /// The model's reply is complete: its text, empty if it only makes calls.
    Message {
        /// The text.
        text: &'a str,
    },
    /// The request to the model failed and will be sent again after a pause.
    Retry {
        /// The pause, in milliseconds.
        pause_ms: u64,
        /// Why the request failed.
        why: &'a str,
        /// Whether the pieces since the last message do not count.
        discards: bool,
    },
    /// A call is about to run, or was refused before it could.
    ToolCall {
        /// The id of the call, as in the record and in live output.
        id: &'a CallId,
        /// The tool's name.
        tool: &'a str,
        /// Its arguments, as the model wrote them.
        arguments: &'a str,
    },
    /// A call has its answer.
    ToolResult {
        /// The id of the call.
        id: &'a CallId,
        /// The tool's name.
        tool: &'a str,
        /// The outcome; `None` if nothing ran now.
        outcome: Option<&'a Outcome>,
        /// The text that the model reads.
        text: &'a str,
        /// Whether the call failed.
        is_error: bool,
    },
    /// A call waits for a decision, and the run will be suspended.
    Approval {
        /// The id of the call.
        id: &'a CallId,
        /// The tool's name.
        tool: &'a str,
        /// The id of the approval request.
        approval: &'a str,
    },
    /// Something the loop did besides calls: it suggested tools, moved old results away, or summarized older turns.
    Notice {
        /// What it did, in a few words.
        text: &'a str,
    },
    /// The cost of a reply.
    Usage {
        /// The model's name, such as `anthropic:claude-sonnet-4-6`.
        model: &'a str,
        /// The usage of this reply.
        usage: &'a Usage,
        /// The usage of the whole conversation.
        spent: &'a Spending,
    },
    /// The run has ended.
    Done(&'a RunResult),
}

/// Receives the events of a run. It must not block: the run waits for it.
pub trait Watcher: Send + Sync {
    /// Handles one event.
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
