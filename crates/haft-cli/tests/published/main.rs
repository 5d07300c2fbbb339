//! Bypasses that were published of other agents' tools in 2026, by class, tried on haft through every entry point that a class concerns.
//!
//! Each test is named by what must not happen and names the advisories of its class; `docs/security.md` lists them. Nobody approves
//! anything here, and the profile is the broadest one, so whatever happens was not asked about. A row that holds leaves the files of the
//! host as they were; no test trusts what haft says of itself.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops where it cannot go on, and a skipped one says so"
)]

mod control;
mod egress;
mod entries;
mod files;
mod language;
mod repository;
mod scene;
mod servers;
mod setup;
