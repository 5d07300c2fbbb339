//! The Model Context Protocol: our own wire layer and the server side of both eras.
//!
//! ```text
//! bytes ── stdio.rs │ http.rs ──► wire.rs ──► job.rs ──► server.rs ──► Host ──► haft::Executor
//!          framing, sessions      envelope    what is    answers       one governed run
//!                                             asked
//! ```
//!
//! No SDK: arguments reach the executor byte for byte, and a bad message costs one error, never the connection.

pub mod era;
pub mod guard;
pub mod host;
pub mod http;
pub mod server;
pub mod stdio;

mod in_flight;
mod job;
mod listen;
mod outcome;
mod resource;
mod run;
mod tool_list;
mod wire;
