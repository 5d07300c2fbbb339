//! The tool runtime: the executor admits, clears, invokes, shapes and records every call.
//!
//! Turn functions into tools with [`tool`](macro@tool) and methods with [`tools`](macro@tools), or implement [`TypedTool`];
//! collect them in a [`ToolRegistry`]. An [`Executor`] runs every call under a [`Policy`], in a [`Session`] that holds one run's
//! limits, budget and principal. Calls that need approval go to an [`Approver`] (as a queue: [`approval::channel`]) and stay
//! pending in an inbox ([`WaitingCalls`](approval::inbox::WaitingCalls)). [`Outcome::to_model`] is what the model reads. `testing::Bench` (feature
//! `testing`) takes a tool through the whole path in three lines.
//!
//! ```
//! use haft::{Executor, Policy, Session, ToolCall, ToolRegistry, tool};
//!
//! /// Add two numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Session::new(ToolRegistry::new().with(add)?);
//! let executor = Executor::new(Policy::workspace());
//! let outcome = executor.execute(&session, ToolCall::new("add", r#"{"a":2,"b":3}"#)).await;
//! assert_eq!(outcome.to_model(), r#"{"result":5}"#);
//! # Ok(()) }
//! ```

pub mod bounds;
pub mod caller;
pub mod artifact;
pub mod result;
pub mod shape;
pub mod arguments;
pub mod approval;
pub mod progress;
pub mod provenance;
pub mod audit;
pub mod judgement;
pub mod input;
pub mod shell_report;
pub mod journal;
pub mod memory;
pub mod context;
pub mod tool;
pub mod toolset;
pub mod session;
pub mod executor;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod wait;

pub use approval::{ApprovalRequest, Approver, ApproverReply, AutoApprove, Decision};
pub use call::{CallId, Origin, Principal, RunId, ToolCall};
pub use context::CallContext;
pub use error::{Context, ErrorKind, Result, ToolError};
pub use executor::Executor;
#[doc(inline)]
pub use haft_files::{change, git_index, workspace};
pub use haft_json as json;
#[doc(inline)]
/// Turns a function into a tool. The function itself does not change: you can still call it, and test it without a registry.
///
/// The arguments become the input schema and the doc comment becomes the description. The return type becomes the output schema
/// if it implements `JsonSchema` and is always an object, a list, a number or a boolean. An argument of type `&CallContext`
/// receives the call's context. The function may be `async` or not, and may return a `Result` whose error is any
/// `std::error::Error`. Register it by its name:
///
/// ```
/// use haft::{ToolRegistry, tool};
///
/// /// Add two numbers.
/// #[tool]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// assert_eq!(add(2, 3), 5);
/// let tools = ToolRegistry::new().with(add)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A braced unit struct of the same name represents the tool where a type is needed: `add {}` is a `TypedTool`, and
/// `<add as TypedTool>::NAME` is its name.
///
/// Options: `name = "…"`, `title = "…"`, `category = "…"`, `risk = "safe" | "high" | "critical"`, `idempotent`, `concurrency_safe`,
/// `open_world` (strangers may write its results). Doc comments, `#[serde(…)]` and `#[schemars(…)]` on an argument apply to its property.
///
/// Anything that cannot be a tool is a compile error:
///
/// ```compile_fail
/// #[haft::tool] // no doc comment: nothing to tell the model
/// fn add(a: i64, b: i64) -> i64 { a + b }
/// ```
///
/// ```compile_fail
/// struct Handle; // cannot be read from JSON
///
/// /// Close a handle.
/// #[haft::tool]
/// fn close(handle: Handle) {}
/// ```
///
/// ```compile_fail
/// struct Plain;
/// haft::ToolRegistry::new().with(Plain); // neither a tool nor a function
/// ```
pub use haft_macros::tool;
#[doc(inline)]
/// Turns the methods of an `impl` block that carry `#[tool]` into tools that share the value as their state.
///
/// Methods take `&self`; otherwise the rules of [`tool`](macro@tool) apply. Methods without `#[tool]` do not change.
///
/// ```
/// use std::sync::Mutex;
/// use haft::{Context, ToolRegistry, tools};
///
/// struct Counter(Mutex<i64>);
///
/// #[tools]
/// impl Counter {
///     /// Count up.
///     #[tool(category = "numbers")]
///     fn count(&self, by: i64) -> haft::Result<i64> {
///         let mut now = self.0.lock().map_err(|e| e.to_string()).context("count up")?;
///         *now += by;
///         Ok(*now)
///     }
/// }
///
/// assert_eq!(Counter(Mutex::new(1)).count(2)?, 3);
/// let tools = ToolRegistry::new().with_tools(Counter(Mutex::new(0)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail
/// struct Db;
///
/// #[haft::tools]
/// impl Db {
///     /// Close the database.
///     #[tool]
///     fn close(self) {} // a call must leave the state in place: `&self`
/// }
/// ```
pub use haft_macros::tools;
#[doc(inline)]
pub use haft_policy as policy;
#[doc(inline)]
pub use haft_policy::{budget, untrusted};
#[doc(inline)]
pub use haft_skill as skill;
pub use haft_tokens as tokens;
#[doc(inline)]
pub use haft_types::{
    beneath, call, clock, error, file_lock, future, permission, plural, spec, text,
};
pub use permission::{Effect, PathClaim, Permission, Verdict};
pub use policy::{Policy, Profile};
pub use result::{Content, Outcome, Status, ToolResult};
pub use schemars::{self, JsonSchema};
pub use session::{RunLimits, Session};
pub use skill::Skill;
pub use skill::set::SkillSet;
pub use spec::{Exposure, Risk, ToolName, ToolSpec};
pub use tokio_util::sync::CancellationToken;
pub use tool::{Depth, Intent, Tool, TypedTool, tool_fn};
pub use toolset::Toolset;
pub use toolset::registry::ToolRegistry;
pub use toolset::view::ToolsetExt;

// `#[tool]` expands to `::haft::…` paths; this alias makes them resolve inside this crate.
extern crate self as haft;

/// Items of other crates that `#[tool]` expands to, at the versions this crate uses.
#[doc(hidden)]
pub mod macros {
    pub use inventory;
    pub use schemars;
    pub use serde;

    pub use crate::tool::{
        Fallible, OutputType, WithoutSchema, function_id, returned_result, returned_value,
    };
}

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles and runs the guide's library pages.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/write-a-tool.md")]
struct WriteATool;
