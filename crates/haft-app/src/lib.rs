//! haft as a library: the application behind the command line and the server.
//!
//! ```text
//! Site (workspace, state folder, variables) ─► Settings ─► App ─► a run ─► calls
//!                                                           ├──► decide: decisions about requests
//!                                                           ├──► follow: decided requests whose client is gone
//!                                                           └──► view: runs, requests, tools, policy, health as data
//! ```
//!
//! An [`App`](app::App) is assembled from [`Settings`](config::Settings): policy, tools, sandbox, archive, stores, executor.
//! What a person or program sees of it comes from [`view`], the same for the command line, the HTTP API and the console.

pub mod app;
pub mod config;
pub mod decide;
pub mod environment;
pub mod feed;
pub mod follow;
pub mod follower;
pub mod home;
pub mod host;
pub mod nearest;
pub mod notices;
pub mod plain_file;
pub mod problem;
pub mod resume;
pub mod rules;
pub mod run;
pub mod site;
pub mod trust;
pub mod undo;
pub mod view;
pub mod webhook;

mod refusal;
mod repeat;
mod wiring;
