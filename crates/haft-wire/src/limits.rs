//! `ReplyLimits`: how much of a provider's answer is read: everything is bounded.

/// Limits of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of a complete reply, streamed or not.
    pub reply: usize,
    /// Bytes of one event of a stream.
    pub event: usize,
    /// Tool calls per reply.
    pub calls: usize,
}

impl Default for ReplyLimits {
    /// 32 MiB per reply (images come as base64), 16 MiB per event, 512 calls.
    fn default() -> Self {
        Self {
            reply: 32 << 20,
            event: 16 << 20,
            calls: 512,
        }
    }
}
