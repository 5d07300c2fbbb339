//! The machine's network as the web client sees it, and where haft itself listens on it.

use std::fmt;
use std::net::SocketAddr;

pub use haft_http::dial::BoxFuture;
pub use haft_http::network::{Network, System};

/// Knows where haft itself listens on this machine: the console and the HTTP API, through which requests are decided.
pub trait OwnListeners: Send + Sync + fmt::Debug {
    /// Returns true if a haft process of this user listens at this address.
    fn listen_at(&self, address: SocketAddr) -> bool;
}
