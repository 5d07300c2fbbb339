//! The standard tools: files, search, commands, todo lists, artifacts.
//!
//! Tools and policy share one [`Workspace`](haft::workspace::Workspace): its root, its hidden paths and the rules on what a call may see.
//!
//! ```
//! use std::sync::Arc;
//!
//! use haft::policy::{Policy, Profile, RuleSet, RuleText};
//! use haft::toolset::registry::ToolRegistry;
//! use haft::workspace::Workspace;
//! use haft::{Executor, Session, ToolCall};
//! use haft_builtins::Builtins;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let folder = dir.path();
//! # for name in ["plain.txt", "prod.pem", "state"] {
//! #     std::fs::write(folder.join(name), "needle")?;
//! # }
//! let workspace = Workspace::open(folder)?.with_hidden(["state".into()]);
//! let rules = RuleSet {
//!     deny: vec![RuleText::new("Read(*.pem)")],
//!     ..RuleSet::default()
//! };
//! let policy = Policy::builder(Profile::Workspace).workspace(&workspace).rules(rules).build()?;
//! let tools = ToolRegistry::new();
//! tools.add_all(Builtins::new(workspace).tools()?.into_iter().map(|builtin| builtin.tool))?;
//!
//! let (executor, session) = (Executor::new(policy), Session::builder(Arc::new(tools)).build()?);
//! let found = executor.execute(&session, ToolCall::new("grep_files", r#"{"pattern": "needle"}"#)).await;
//! let found = found.data.ok_or("no matches")?;
//! assert!(found.get().contains("plain.txt"));
//! assert!(!found.get().contains("prod.pem") && !found.get().contains("state"));
//! # Ok(())
//! # }
//! ```

pub mod artifacts;
mod builtin;
mod builtins;
#[cfg(feature = "commands")]
pub mod command;
mod describe;
mod keywords;
pub mod lexical;
pub mod discover;
pub mod files;
#[cfg(feature = "images")]
pub mod image;
pub mod memory;
#[cfg(feature = "commands")]
pub mod gpg_agent;
#[cfg(feature = "commands")]
pub mod host_sockets;
#[cfg(feature = "commands")]
pub mod outside;
#[cfg(feature = "commands")]
mod own_socket;
#[cfg(feature = "commands")]
pub mod proxy;
#[cfg(feature = "commands")]
pub mod ssh_agent;
#[cfg(any(feature = "commands", feature = "images"))]
mod picture;
pub mod propose;
pub mod question;
pub mod search;
#[cfg(feature = "commands")]
pub mod services;
#[cfg(feature = "commands")]
mod signatures;
pub mod skills;
pub mod todo;
#[cfg(feature = "http")]
pub mod web;
mod work;

pub use builtin::Builtin;
pub use builtins::Builtins;
pub use describe::classes;
