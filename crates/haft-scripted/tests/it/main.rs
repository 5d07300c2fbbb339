//! The scripted server over HTTP, as a client of each provider sees it.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod client;
mod faults;
mod readers;
mod recorded;
mod refusals;
mod replies;
mod scenarios;
mod sdk;
mod wire;
