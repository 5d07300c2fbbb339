//! Code mode: a script calls tools, in a jail, through the same executor as every other client.
//!
//! [`ChainTool`] is `tool_chain`: it takes an interpreter from an [`Engine`](engine::Engine), gives it the script, and runs each
//! call that the script makes as a nested call: admitted, cleared and recorded like any other. The two exchange frames (see
//! [`bridge`]); the host numbers the calls and enforces all limits. A journal keeps what the script read and the results of its
//! calls, so that an interrupted script can be resumed without running anything twice.

pub mod bridge;
pub mod engine;
pub mod python;
pub mod stub;
pub mod tool;
pub mod toolset;

mod files;
mod run;

pub use run::WorkspaceLookup;
pub use tool::{ChainTool, TOOL_CHAIN};

/// The Python runtime that runs a script: the module `haft_runtime`, with `warm()` and `main(fd, folder)`.
pub const RUNTIME: &str = concat!(
    include_str!("prelude/noise.py"),
    include_str!("prelude/wire.py"),
    include_str!("prelude/results.py"),
    include_str!("prelude/script.py"),
);
