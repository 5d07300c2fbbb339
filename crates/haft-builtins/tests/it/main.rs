//! The standard tools through a real executor, over a real folder.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test whose scene cannot be set has failed; what was skipped is said aloud"
)]

mod bad_input;
mod commands;
mod files;
mod guards;
mod scene;
mod search;
