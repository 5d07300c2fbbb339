//! The console: pages for the people who decide, one-time login codes, and their sessions.
//!
//! ```text
//! haft serve ── login_link() ──► #login=CODE ── POST /api/v1/login ──► cookie + secret
//!     │                                                                    │
//!     └── gate: session(headers) ◄── both, on every request ───────────────┘
//! ```
//!
//! It knows nothing of calls, runs or approvals: its pages read those from the HTTP API, which another crate serves.

mod console;
mod cookie;
mod one_time;
mod pages;
mod routes;
mod secret;
mod sessions;

pub use crate::console::{About, Console, ConsoleError, Options};
pub use crate::one_time::{CODE_LIFE, OUTSTANDING, TICKET_LIFE};
pub use crate::sessions::{ConsoleSession, IDLE, SECRET_HEADER, SESSIONS};
