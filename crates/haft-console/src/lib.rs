//! The console: pages for the people who decide, one-time login codes, and the sessions behind their cookies.
//!
//! ```text
//! haft serve ── login_link() ──► #login=CODE ── POST /api/v1/login ──► cookie + secret header
//!     │                                                                        │
//!     └── gate: session(headers) ◄─────────────────────────────────────────────┘
//! ```
//!
//! It knows nothing of calls, runs or approvals: its pages read those from the HTTP API, which another crate serves.

mod code;
mod console;
mod cookie;
mod pages;
mod routes;
mod secret;
mod sessions;

pub use crate::code::{CODE_LIFE, CODES, WRONG_PER_MINUTE};
pub use crate::console::{About, Console, ConsoleError, Options};
pub use crate::sessions::{ConsoleSession, IDLE, SECRET_HEADER, SESSIONS};
