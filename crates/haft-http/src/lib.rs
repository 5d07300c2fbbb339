//! The HTTP/1.1 client under everything of haft that speaks HTTP: models, MCP servers, the web tools, buckets.
//!
//! ```text
//! ConnectionPool ── Dial ──► Direct: TCP and TLS     (feature `tls`)
//!      │                     or what the user supplies: checked addresses, the user's proxy (feature `proxy`)
//!      ▼
//!  HttpExchange ──► the head of an answer, its body in pieces or whole, within `Waits`; the connection, kept for the next request
//! ```
//!
//! It decides nothing: which hosts, addresses and redirects are allowed is up to the [`Dial`](dial::Dial) that its user supplies,
//! and what an answer means to its caller.

pub mod body;
pub mod connection;
pub mod connections;
pub mod dial;
#[cfg(feature = "tls")]
pub mod direct;
#[cfg(feature = "proxy")]
pub mod network;
#[cfg(feature = "proxy")]
pub mod stream;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "proxy")]
pub mod tunnel;
#[cfg(feature = "proxy")]
pub mod upstream;
pub mod waits;
