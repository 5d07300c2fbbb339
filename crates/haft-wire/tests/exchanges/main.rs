//! Recorded exchanges with Anthropic, Gemini and Vertex AI: every reply is read, and haft writes the recorded requests.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it cannot go on; what was skipped is said aloud"
)]

mod anthropic;
mod gemini;
mod recorded;
