//! The events that coding agents send to their hooks and the answers that they read, in one form for all agents.
//!
//! A coding agent runs a hook before and after its tools: it writes an event to the hook's standard input and reads a verdict from the
//! hook's standard output and exit code. Each agent has its own format. [`read()`] turns the bytes into a [`HookEvent`], whose [`CallAction`]s say
//! what a call would do to the machine; [`reply()`] turns a [`HookVerdict`] into the [`HookReply`] that the agent honours. This crate sends
//! nothing, runs nothing and judges nothing.
//!
//! Three rules hold for every agent:
//!
//! - Whatever is unknown is [`CallAction::Other`], never [`CallAction::Note`]. If several spellings of a member may count, all of them are judged.
//! - A reply never allows more than its verdict: if an agent cannot ask, or cannot change a call's input, the call is denied.
//! - [`refusal`] answers bytes that are not an event. It denies the call with every agent that lets a hook deny at all.
//!
//! [`Agent::limits`] says what an agent lets a hook do and what it does if the hook fails; [`gaps`] says what its hooks do not see.
//!
//! ```
//! use haft_hook::{CallAction, Agent, HookVerdict, read, reply};
//!
//! let event = read(Agent::Gemini, br#"{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/w","tool_name":"run_shell_command","tool_input":{"command":"rm -rf /"}}"#)?;
//! let call = event.call().unwrap();
//! assert!(matches!(&call.actions[..], [CallAction::Command(command)] if command.line.as_deref() == Some("rm -rf /")));
//!
//! let verdict = HookVerdict::Deny { reason: "it removes everything".to_owned() };
//! assert_eq!(reply(&event, &verdict).stdout, r#"{"decision":"deny","reason":"it removes everything"}"#);
//! # Ok::<(), haft_hook::ReadError>(())
//! ```

pub mod action;
pub mod agent;
pub mod decision;
pub mod error;
pub mod event;
pub mod limits;
pub mod read;
pub mod reply;
pub mod verdict;
mod agents;
mod caller;
mod envelope;
mod input;
mod mcp;
mod patch;
mod shape;
mod stage;
mod tools;

pub use action::{AgentCommand, CallAction, EditKind};
pub use agent::Agent;
pub use agents::gaps;
pub use decision::MAX_REASON;
pub use error::ReadError;
pub use event::{CallReport, CallStatus, HookCall, HookEvent, HookEventKind, ReplyDialect};
pub use limits::AgentLimits;
pub use read::{MAX_EVENT, read};
pub use reply::{refusal, reply, rewrite_line};
pub use verdict::{HookReply, HookVerdict};
