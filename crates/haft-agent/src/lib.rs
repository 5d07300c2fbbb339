//! The agent loop: asks a model, runs its calls through an executor, sends back their results, until it answers.
//!
//! An [`Agent`] holds a [`Model`] (or [`HttpModel`], a client of the four dialects), a `haft::Executor`, a `haft::Session` and the
//! [`Conversation`] that records the history. Nothing here runs a tool itself: every call goes through the executor and is judged,
//! approved and recorded like any other.
//!
//! ```
//! use haft::{Executor, Policy, Session, ToolRegistry, tool};
//! use haft_agent::{Agent, RunEnd, testing::ScriptedModel};
//!
//! /// Add two numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new()
//!     .calls([("c1", "add", r#"{"a":2,"b":3}"#)])
//!     .says("It is 5.");
//! let session = Session::new(ToolRegistry::new().with(add)?);
//! let mut agent = Agent::new(model, Executor::new(Policy::workspace()), session);
//! let finished = agent.run("What is 2 + 3?").await?;
//! assert!(matches!(finished.end, RunEnd::Done));
//! assert_eq!(finished.text, "It is 5.");
//! # Ok(()) }
//! ```

pub mod model;
pub mod provider;
pub mod http_model;
pub mod conversation;
pub mod event;
pub mod budget;
pub mod control;
pub mod options;
pub mod testing;
mod history;
mod repeats;
pub mod provided;
pub mod suggest;
mod answers;
mod skills;
mod next;
mod standing;
mod compress;
mod offer;
pub mod review;
mod spend_more;
mod agent;
mod end;

pub use agent::{Agent, AgentError};
pub use budget::{Budget, Prices, Spending};
pub use control::Control;
pub use conversation::{Conversation, ConversationEntry};
pub use end::{ExceededBudget, RunEnd, RunResult, WaitingCall};
pub use event::{AgentEvent, Watcher};
pub use http_model::{HttpModel, HttpSettings};
pub use model::{Model, ModelError, ModelEvent, ModelRequest};
pub use offer::declarations;
pub use options::AgentOptions;
pub use provided::ProviderTool;
pub use provider::{ModelName, Provider};
pub use spend_more::spend_more;
pub use standing::{closed_by_denial, has_open_calls, over, owes_reply};
