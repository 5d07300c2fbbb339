//! The Model Context Protocol: haft's own wire layer, with a server and a client for both eras.
//!
//! ```text
//! bytes ── stdio.rs │ http.rs ──► wire.rs ──► job.rs ──► core.rs ──► run.rs ──► haft::Executor
//!          framing, sessions      envelope    what is    answers     one governed run,
//!                                             asked                  from the host's RunFactory
//! ```
//!
//! No SDK: arguments reach the executor byte for byte, and a bad message costs one error, never the connection.

pub mod client;
pub mod elicit;
pub mod era;
pub mod guard;
pub mod http;
pub mod intake;
pub mod offer;
pub mod opener;
pub mod server;
pub mod stdio;
pub mod upstream;

mod asked_address;
mod client_caller;
pub mod capabilities;
mod carrier;
mod core;
mod filter;
mod in_flight;
mod job;
mod limits;
mod listen;
mod offered;
mod outcome;
mod own;
mod owner;
mod page;
mod parked;
mod perform;
mod progress;
mod prompt;
mod replies;
mod required;
mod resource;
mod resource_entry;
mod run;
mod running;
mod seal;
mod skill;
mod tasks;
mod call_follow_up;
mod tool_list;
mod wire;
