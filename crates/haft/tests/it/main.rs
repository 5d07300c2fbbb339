//! Integration tests of the library, through its public API.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod asking;
mod budgets;
mod callers;
mod embedding;
mod faulty;
mod intent;
mod filing;
mod guarded;
mod judged;
mod lifecycle;
mod macros;
mod nested;
mod pipeline;
mod readme;
mod refs;
mod reviewed;
mod seed_faults;
mod shaping;
mod skills;
mod slow_store;
mod spans;
mod provenance;
mod untrusted;
mod views;
mod waiting;
mod waiting_script;
