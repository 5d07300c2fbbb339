//! What is taken of a provider's answer: nothing is read without bound.

/// Bounds of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole reply, streamed or not.
    pub reply: usize,
    /// Bytes of one event of a stream.
    pub event: usize,
    /// Tool calls of one reply.
    pub calls: usize,
}

impl Default for Limits {
    /// 32 MiB a reply (pictures come as base64), 16 MiB an event, 512 calls.
    fn default() -> Self {
        Self {
            reply: 32 << 20,
            event: 16 << 20,
            calls: 512,
        }
    }
}
