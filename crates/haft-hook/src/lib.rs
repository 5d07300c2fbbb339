//! What the hooks of coding agents say and what they want to hear, in one neutral shape.
//!
//! A coding agent runs a hook before its tools and after them: it writes an event to the hook's standard input and reads a verdict from
//! its standard output and exit code. Each agent does so in its own words. [`read()`] turns the bytes into an [`Event`], whose [`Action`]s
//! say what a call would do to the machine; [`reply()`] turns a [`Verdict`] into the [`Reply`] that the agent honours. Nothing here is
//! sent, run or judged.
//!
//! Three rules hold for every agent:
//!
//! - What is not known is [`Action::Other`], never [`Action::Note`]. A spelling that may count is judged beside those that may count, too.
//! - A reply never does more than its verdict says: where an agent cannot ask, or cannot change a call's input, the call is denied.
//! - Bytes that are no event are answered by [`refusal`], which denies with every agent that lets a hook deny at all.
//!
//! [`Agent::limits`] says what an agent lets a hook do and what it does when the hook fails; [`gaps`] says what its hooks do not see.
//!
//! ```
//! use haft_hook::{Action, Agent, Verdict, read, reply};
//!
//! let event = read(Agent::Gemini, br#"{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/w","tool_name":"run_shell_command","tool_input":{"command":"rm -rf /"}}"#)?;
//! let call = event.call().unwrap();
//! assert!(matches!(&call.actions[..], [Action::Command(command)] if command.line.as_deref() == Some("rm -rf /")));
//!
//! let verdict = Verdict::Deny { reason: "it removes everything".to_owned() };
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
pub mod setup;
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

pub use action::{Action, Change, Command};
pub use agent::Agent;
pub use agents::{gaps, registrations};
pub use decision::MAX_REASON;
pub use error::ReadError;
pub use event::{Call, Dialect, Event, Kind, Report, Status};
pub use limits::Limits;
pub use read::{MAX_EVENT, read};
pub use reply::{refusal, reply, rewritten};
pub use setup::Setup;
pub use verdict::{Reply, Verdict};
