//! `ExposedPort`: a port of a run on the host's loopback, as it is listed.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// An exposed port, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExposedPort {
    /// The run whose server it leads to.
    pub run: String,
    /// The port in the run.
    pub port: u16,
    /// Where it is on the host.
    pub at: SocketAddr,
}
