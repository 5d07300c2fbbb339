//! The server around an application: one listener with MCP, the HTTP API and the console.
//!
//! ```text
//! listen ─► gate (Host, Origin, token or console session) ─► /mcp        runs of MCP clients (opener)
//!                                                          ├► /api/v1     the API (api/), as JSON
//!                                                          └► /           the console (console/, ui/)
//! ```
//!
//! An embedding program can mount parts of it among its own routes: [`Mcp`] and [`approvals`], each behind an [`Access`].
//!
//! ```no_run
//! # use haft_app::{app::App, config::Settings, problem::Problem};
//! # async fn example(app: App, settings: Settings) -> Result<(), Problem> {
//! use haft_server::server::{ServeOptions, serve};
//!
//! let options = ServeOptions::default();
//! let stop = std::future::pending::<()>();
//! serve(&app, &settings, &options, stop, |ready| {
//!     println!("listening on {}", ready.url);
//!     Ok(())
//! })
//! .await?;
//! # Ok(()) }
//! ```

pub mod mount;
pub mod server;

mod api;
mod attach;
mod bounds;
mod caller;
mod console;
mod gate;
mod listen;
mod opener;
mod people;
mod query;
mod reach;
mod reply;
mod same_user;
mod tabs;
mod token_watch;
mod tokens;

pub use haft_mcp::guard::{HostGuard, same_token};
pub use haft_mcp::http::{Access, TokenOwner};
pub use mount::{Mcp, approvals};

/// The guide's page on embedding, compiled and run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embed.md")]
struct Embed;
