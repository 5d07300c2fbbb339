//! haft as a library: the application behind the command line and the server.
//!
//! A program creates a [`Haft`] and makes calls in runs: under a policy, recorded, within limits, with approvals where needed.
//!
//! ```
//! use haft::{Decision, Policy, Principal, Profile, Status, ToolCall, tool};
//! use haft_app::Haft;
//!
//! /// Close an account.
//! #[tool(risk = "high")]
//! fn close(account: String) -> String {
//!     format!("closed {account}")
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (approver, mut requests) = haft::approval::channel(8);
//! tokio::spawn(async move {
//!     while let Some(pending) = requests.next().await {
//!         pending.decide(Decision::approve("ann", "chat"));
//!     }
//! });
//! let policy = Policy::builder(Profile::Workspace).deny("close(account:root)");
//! let haft = Haft::builder().tool(close).policy(policy).approver(approver).build()?;
//!
//! let run = haft.run(Principal::local("ann")).await?;
//! let close = |account: &str| ToolCall::new("close", format!(r#"{{"account":"{account}"}}"#));
//! let outcomes = run.call_all(vec![close("bob"), close("root")]).await;
//! assert_eq!(outcomes[0].to_model(), "closed bob");
//! assert_eq!(outcomes[1].status, Status::Denied);
//! run.finish().await?;
//! haft.shut_down().await;
//! # Ok(()) }
//! ```
//!
//! The command line uses the same application and creates it from settings:
//!
//! ```text
//! Site (workspace, state folder, variables) ─► Settings ─► App ─► a run ─► calls
//!                                                           ├──► decide: decisions about requests
//!                                                           ├──► follow: decided requests whose client is gone
//!                                                           └──► view: runs, requests, tools, policy, health as data
//! ```
//!
//! An [`App`](app::App) is assembled from [`Settings`](config::Settings): policy, tools, sandbox, archive, stores, executor. [`view`] turns
//! its state into data, the same for the command line, the HTTP API and the console.

pub mod access;
pub mod agent;
pub mod app;
pub mod argument;
pub mod changeable;
pub mod config;
pub mod coverage;
pub mod decide;
pub mod embed;
pub mod environment_part;
pub mod exec;
pub mod fact;
pub mod disk;
pub mod dry_run;
pub mod feed;
pub mod others;
pub mod remember;
pub mod follow;
pub mod follower;
pub mod home;
pub mod hook;
pub mod host;
pub mod imports;
pub mod listening;
pub mod notices;
pub mod oauth;
pub mod policy_diff;
pub mod project;
pub mod provenance;
pub mod record_log;
pub mod reload;
pub mod requests;
pub mod resume;
pub mod rules;
pub mod run;
pub mod server_check;
pub mod servers;
pub mod running;
pub mod site;
pub mod trust;
pub mod undo;
pub mod view;
pub mod webhook;

mod change_texts;
mod conversation_file;
mod desktop;
mod metrics;
mod model_client;
pub mod own_program;
mod policy_in_force;
mod refusal;
mod repeat;
mod serving;
mod session_group;
mod upstream;
mod wiring;

pub use haft_setup::{clients, environment, hook_settings, nearest, plain_file, problem};

pub use embed::{Haft, HaftBuilder, Standard, enter, main};
pub use host::PendingCallMode;
pub use problem::Problem;

/// The guide's page on embedding agents, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/from-rust.md")]
struct FromRust;
