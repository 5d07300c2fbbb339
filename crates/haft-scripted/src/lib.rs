//! A scripted model server: it listens on this machine, supports every dialect of tool calling, and answers according to a
//! scenario.
//!
//! It is for tests of programs that call models, and for trying them without a key. A [`Scenario`] is a list of turns; each gives what the
//! request must contain and what the model answers: text, thinking, calls, or a fault (a status, a broken stream, invalid UTF-8).
//! Requests are checked as the provider checks them, and an invalid one gets that provider's error.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_scripted::{Scenario, serve};
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     title = "A greeting"
//!     [[turns]]
//!     say = [{ text = "Hello." }]
//!     "#,
//! )?;
//! let server = serve(scenario).await?;
//! // Any client of OpenAI, Anthropic or Gemini, with this base URL and any key:
//! println!("{}", server.url());
//! # Ok(())
//! # }
//! ```

mod body;
mod chat;
mod compose;
mod conversation;
mod exchange;
mod expect;
mod faults;
mod fields;
mod gemini;
mod messages;
mod names;
mod random;
mod refusal;
mod responses;
mod schema;
mod server;
mod stage;
mod stream;

pub mod scenario;
pub mod scenarios;

pub use exchange::RecordedExchange;
pub use haft_wire::Dialect;
pub use scenario::{Scenario, ScenarioError};
pub use server::{ScenarioServer, serve};

/// The examples of the guide, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/scripted-models.md")]
struct Guide;
