//! `Timeouts`: how long each wait of a request may take.

use std::time::Duration;

/// How long each wait of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection, encryption included.
    pub connect: Duration,
    /// For the first byte of the answer: a model may think before it.
    pub first_byte: Duration,
    /// For each next byte.
    pub next_byte: Duration,
    /// For the whole answer.
    pub whole: Duration,
    /// For what a provider says of why it refused, once its status has come: it is short, and what is missing of it is done without.
    pub refusal: Duration,
}

impl Default for Timeouts {
    /// 10 s, 300 s, 120 s, 1,800 s, 10 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            next_byte: Duration::from_secs(120),
            whole: Duration::from_secs(1800),
            refusal: Duration::from_secs(10),
        }
    }
}
