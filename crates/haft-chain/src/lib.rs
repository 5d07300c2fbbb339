//! Code mode: a script calls tools, in a jail, through the same executor as everybody.
//!
//! [`ChainTool`] is `tool_chain`: it takes an interpreter from an [`Engine`](engine::Engine), gives it
//! the script, and runs each call that the script makes as a nested call of its own: admitted, cleared, recorded like
//! any other. The two talk by frames (see [`bridge`]); the host numbers calls and owns all limits. What the script reads
//! and what its calls came to is kept in a journal, so that an interrupted script is gone on with and nothing runs twice.

pub mod bridge;
pub mod engine;
pub mod python;
pub mod stub;
pub mod tool;
pub mod toolset;

mod files;
mod run;

pub use run::Folders;
pub use tool::{ChainTool, TOOL_CHAIN};

/// The Python runtime that a script finds: the module `haft_runtime`, with `warm()` and `main(fd, folder)`.
pub const RUNTIME: &str = concat!(
    include_str!("prelude/noise.py"),
    include_str!("prelude/wire.py"),
    include_str!("prelude/results.py"),
    include_str!("prelude/script.py"),
);
