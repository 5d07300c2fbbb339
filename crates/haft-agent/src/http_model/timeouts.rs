//! `Timeouts`: how long each wait of a request may take.

use std::time::Duration;

/// How long each wait of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The connection, including TLS.
    pub connect: Duration,
    /// The first byte of the answer: a model may think before it.
    pub first_byte: Duration,
    /// Each following byte.
    pub next_byte: Duration,
    /// The whole answer.
    pub whole: Duration,
    /// The body of an error response, once its status has arrived: it is short, and any missing part can be done without.
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
