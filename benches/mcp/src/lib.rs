//! Load on MCP servers: processes that start and end with the measurement, and clients over HTTP and over pipes.

pub mod http;
pub mod pipe;
pub mod processor;
pub mod request;
pub mod server;

/// Returns the median, in microseconds.
pub fn median(mut nanoseconds: Vec<u64>) -> f64 {
    nanoseconds.sort_unstable();
    let middle = nanoseconds.get(nanoseconds.len() / 2).copied();
    middle.unwrap_or_default() as f64 / 1e3
}
