//! `Model`: what answers a request; the loop knows no more of a provider.

use std::time::Duration;

use haft::future::BoxFuture;
use haft_wire::request::Choice;
use haft_wire::{Declarations, Delta, Dialect, Message, Reply, Usage, WireError};
use serde_json::value::RawValue;

/// What a model is asked next.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The instructions; empty for none.
    pub system: &'a str,
    /// The history.
    pub messages: &'a [Message],
    /// The tools, declared for the model's dialect.
    pub tools: &'a Declarations,
    /// Which of them may or must be called.
    pub choice: &'a Choice,
    /// Whether one turn may hold several calls.
    pub parallel: bool,
    /// The most tokens to write.
    pub max_tokens: Option<u32>,
    /// Further members of the request's body, by name.
    pub extra: &'a [(String, Box<RawValue>)],
}

/// What happens while a model answers, for a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// A piece of the reply.
    Delta(Delta),
    /// What the provider says that the reply costs so far. It counts where no whole reply comes.
    Usage(Usage),
    /// The request failed and is sent again after a pause.
    Retry {
        /// The pause.
        pause: Duration,
        /// What failed.
        why: String,
    },
}

/// Hears what happens while a model answers.
pub type Watch<'a> = dyn FnMut(ModelEvent) + Send + 'a;

/// A model.
///
/// A future that is dropped ends the request. An implementation that shows nothing while it works gives the reply alone.
pub trait Model: Send + Sync {
    /// Its name, for people and records: `anthropic:claude-sonnet-4-6`.
    fn name(&self) -> &str;

    /// The dialect in which tools are declared to it.
    fn dialect(&self) -> Dialect;

    /// Its answer. What it shows on the way is told to `watch`.
    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        watch: &'a mut Watch<'_>,
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
        watch: &'a mut Watch<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        (**self).reply(request, watch)
    }
}

impl std::fmt::Debug for dyn Model + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({})", self.name())
    }
}

/// Which wait of a request was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// For the connection.
    Connect,
    /// For the first byte of the answer.
    FirstByte,
    /// For the next byte of the answer.
    NextByte,
    /// For the whole answer.
    Whole,
}

impl Wait {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "the connection",
            Self::FirstByte => "the first byte of the answer",
            Self::NextByte => "the next byte of the answer",
            Self::Whole => "the whole answer",
        }
    }
}

/// Why a model did not answer. No message holds a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No connection, or one that broke.
    #[error("cannot reach the model at {place}: {why}")]
    Unreachable {
        /// Host and port.
        place: String,
        /// What failed.
        why: String,
    },
    /// It took too long.
    #[error("the model at {place} did not answer in time: {} did not come within {} s", .wait.as_str(), .limit.as_secs_f64())]
    Timeout {
        /// Host and port.
        place: String,
        /// What was waited for.
        wait: Wait,
        /// The limit.
        limit: Duration,
    },
    /// It refused the request.
    #[error("the model at {place} answered with status {status}: {message}")]
    Status {
        /// Host and port.
        place: String,
        /// The HTTP status.
        status: u16,
        /// What it said, bounded.
        message: String,
        /// How long it wants to be left alone, where it says so.
        retry_after: Option<Duration>,
    },
    /// Its answer cannot be read, or the request cannot be written.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The request cannot be sent as it is: a setting is wrong.
    #[error("{0}")]
    Setting(String),
    /// Whatever an own implementation says.
    #[error("{0}")]
    Other(String),
}
