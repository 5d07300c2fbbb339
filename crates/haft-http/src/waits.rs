//! `Waits`: how long each wait of a request may take.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// A wait of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// For the connection, including TLS.
    Connect,
    /// For the first byte of the answer.
    FirstByte,
    /// For the next byte of the answer.
    NextByte,
    /// For the whole answer.
    Whole,
}

impl Wait {
    /// Returns its description in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "the connection",
            Self::FirstByte => "the first byte of the answer",
            Self::NextByte => "the next byte of the answer",
            Self::Whole => "the whole answer",
        }
    }
}

/// How long the waits of one request may take; `None` leaves the limit to the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// For the connection, including TLS.
    pub connect: Option<Duration>,
    /// For the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// For each following byte.
    pub next_byte: Option<Duration>,
    /// When the whole answer must be here.
    pub deadline: Option<Instant>,
}

impl Waits {
    /// Returns waits that end together.
    pub fn until(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..Self::default()
        }
    }

    /// Waits for a connection.
    pub(crate) async fn for_connection<T>(&self, step: impl Future<Output = T>) -> Result<T, Wait> {
        let end = self.connect.map(|limit| Instant::now() + limit);
        by(end, step).await.ok_or(Wait::Connect)
    }

    /// Waits for the head of an answer.
    pub(crate) async fn for_answer<T>(&self, step: impl Future<Output = T>) -> Result<T, Wait> {
        let own = self.first_byte.map(|limit| Instant::now() + limit);
        let end = earlier(own, self.deadline);
        by(end, step).await.ok_or(Wait::FirstByte)
    }

    /// Waits for the next piece of a body.
    pub(crate) async fn for_piece<T>(&self, step: impl Future<Output = T>) -> Result<T, Wait> {
        let own = self.next_byte.map(|limit| Instant::now() + limit);
        let end = earlier(own, self.deadline);
        let is_own = own.is_some() && (self.deadline.is_none() || own < self.deadline);
        let late = if is_own { Wait::NextByte } else { Wait::Whole };
        by(end, step).await.ok_or(late)
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Returns what a step gives, unless it takes longer.
async fn by<T>(end: Option<Instant>, step: impl Future<Output = T>) -> Option<T> {
    match end {
        Some(end) => timeout_at(end, step).await.ok(),
        None => Some(step.await),
    }
}
