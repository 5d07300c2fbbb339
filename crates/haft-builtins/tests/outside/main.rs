//! The tools of another program, as the policy judges them: no jail confines them.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose scene cannot be set has failed"
)]

mod given;
mod lines;
mod paths;
mod shells;
mod properties;
mod scene;
