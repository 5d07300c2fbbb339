//! `Model`: answers a request; the loop knows nothing else about a provider.

use std::time::Duration;

use haft::future::BoxFuture;
use haft_wire::request::ToolChoice;
use haft_wire::{Declarations, Delta, Dialect, Message, Reply, Usage, WireError};
use serde_json::value::RawValue;

pub use haft_http::waits::Wait;

/// The next request to a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The instructions; may be empty.
    pub system: &'a str,
    /// The conversation so far, oldest message first.
    pub messages: &'a [Message],
    /// The tools, declared for the model's dialect.
    pub tools: &'a Declarations,
    /// Which of them the model may or must call.
    pub choice: &'a ToolChoice,
    /// Whether one turn may hold several calls.
    pub parallel: bool,
    /// Maximum number of tokens to write.
    pub max_tokens: Option<u32>,
    /// Additional members of the request's body, by name.
    pub extra: &'a [(String, Box<RawValue>)],
}

/// Events while a model answers, for a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// A piece of the reply.
    Delta(Delta),
    /// The cost of the reply so far, as reported by the provider. Used if no complete reply arrives.
    Usage(Usage),
    /// The request failed and will be sent again after a pause.
    Retry {
        /// How long it is.
        pause: Duration,
        /// Why the request failed.
        why: String,
        /// Whether pieces of a reply came before it failed; none of them counts.
        discards: bool,
    },
}

/// Receives the events while a model answers.
pub type EventSink<'a> = dyn FnMut(ModelEvent) + Send + 'a;

/// A model.
///
/// Dropping the future cancels the request. An implementation that shows nothing while it works only returns the reply.
pub trait Model: Send + Sync {
    /// Returns its name, for users and records: `anthropic:claude-sonnet-4-6`.
    fn name(&self) -> &str;

    /// Returns the dialect in which tools are declared to it.
    fn dialect(&self) -> Dialect;

    /// Returns its answer, and reports events to `watch` meanwhile.
    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        watch: &'a mut EventSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

impl<M: Model + ?Sized> Model for std::sync::Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn dialect(&self) -> Dialect {
        (**self).dialect()
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        watch: &'a mut EventSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        (**self).reply(request, watch)
    }
}

impl std::fmt::Debug for dyn Model + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({})", self.name())
    }
}

/// The reason why a model did not answer. No message contains a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The connection failed or broke.
    #[error("cannot reach the model at {place}: {why}")]
    Unreachable {
        /// Host and port.
        place: String,
        /// Why it failed or broke.
        why: String,
    },
    /// A wait took too long.
    #[error("the model at {place} did not answer in time: {} did not come within {} s", .wait.as_str(), .limit.as_secs_f64())]
    Timeout {
        /// Host and port.
        place: String,
        /// The wait that took too long.
        wait: Wait,
        /// How long it may take.
        limit: Duration,
    },
    /// The provider refused the request.
    #[error("the model at {place} answered with status {status}: {message}")]
    Status {
        /// Host and port.
        place: String,
        /// The HTTP status.
        status: u16,
        /// The provider's message, bounded.
        message: String,
        /// How long the provider wants the client to wait, if it says so.
        retry_after: Option<Duration>,
    },
    /// The answer cannot be read, or the request cannot be written.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The request cannot be sent because a setting is wrong.
    #[error("{0}")]
    Setting(String),
    /// An error of another implementation.
    #[error("{0}")]
    Other(String),
}
