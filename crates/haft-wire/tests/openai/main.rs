//! The dialects of OpenAI: tables written by hand, pieces of any size, and exchanges that were recorded.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops where it cannot go on, and says what it skips"
)]

mod alike;
mod declared;
mod read;
mod recorded;
mod requests;
mod streamed;
mod written;
