//! The agent loop in an editor: the Agent Client Protocol (version 1) over two streams of lines, as `haft run --acp` serves it.
//!
//! ```text
//! editor ── lines ──► connection ──► session (one App, one run of the loop) ──► haft_agent::Agent ──► haft::Executor
//!    ▲                    ▲              │ updates: text, tool calls, diffs, plans
//!    └──── outbox ◄───────┴──────────────┤
//!          permission requests ◄─────────┘ editor: raced with the inbox, the first decision counts
//! ```
//!
//! Each session has its own [`App`](haft_app::app::App), built for the session's folder as `haft run` would build it there: the
//! same settings, the same folder trust, the same policy, inbox and record. Nothing here calls a tool.

mod blocks;
mod client;
mod connection;
mod kept;
mod limits;
mod options;
mod outbox;
mod permission;
mod protocol;
mod replay;
mod rpc;
mod session;
mod updates;

pub use connection::serve;
pub use options::AcpOptions;
