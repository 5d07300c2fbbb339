//! The dialects of OpenAI: hand-written tables, pieces of any size, and recorded exchanges.
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
mod shaped_arguments;
mod shapes;
mod streamed;
mod written;
