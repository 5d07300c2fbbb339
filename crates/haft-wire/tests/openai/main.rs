//! The dialects of OpenAI: tables written by hand, pieces of any size, and exchanges that were recorded.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod alike;
mod declared;
mod read;
mod recorded;
mod requests;
mod streamed;
mod written;
