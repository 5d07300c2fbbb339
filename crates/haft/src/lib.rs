//! Contracts and pipeline of the tool runtime: a call is admitted, cleared, invoked, shaped, recorded.

pub mod error;
pub mod spec;
pub mod permission;
pub mod clock;
pub mod call;
pub mod artifact;
pub mod workspace;
pub mod result;
pub mod json;
pub mod arguments;
pub mod policy;
pub mod audit;
