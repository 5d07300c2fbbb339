//! Contracts and pipeline of the tool runtime: a call is admitted, cleared, invoked, shaped, recorded.

pub mod future;
pub mod text;
pub mod error;
pub mod spec;
pub mod permission;
pub mod clock;
mod file_lock;
pub mod bounds;
pub mod call;
pub mod artifact;
pub mod workspace;
pub mod result;
pub mod skill;
pub mod json;
pub mod tokens;
pub mod shape;
pub mod arguments;
pub mod policy;
pub mod approval;
pub mod progress;
pub mod audit;
pub mod change;
pub mod journal;
pub mod memory;
pub mod context;
pub mod tool;
pub mod toolset;
pub mod session;
pub mod executor;
#[cfg(feature = "testing")]
pub mod testing;

pub use approval::{Answer, ApprovalRequest, Approver, AutoApprove, Decision};
pub use call::{CallId, Origin, Principal, RunId, ToolCall};
pub use context::CallContext;
pub use error::{ErrorKind, ToolError};
pub use executor::Executor;
pub use haft_macros::tool;
pub use permission::{Effect, PathClaim, Permission, Verdict};
pub use policy::{Policy, Profile};
pub use result::{Content, Outcome, Status, ToolResult};
pub use session::{Limits, Session};
pub use skill::Skill;
pub use skill::set::SkillSet;
pub use spec::{Exposure, Risk, ToolName, ToolSpec};
pub use tool::{Tool, TypedTool, tool_fn};
pub use toolset::Toolset;
pub use toolset::registry::ToolRegistry;
pub use toolset::view::View;

// `#[tool]` writes `::haft::…`; inside this crate that is this crate.
extern crate self as haft;

/// What `#[tool]` needs of other crates, at the versions this crate uses.
#[doc(hidden)]
pub mod macros {
    pub use inventory;
    pub use schemars;
    pub use serde;
}

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The guide's library pages, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/write-a-tool.md")]
struct WriteATool;
