//! Integration tests: the server over both transports, in both eras.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "helpers of tests may fail and may take what reads well"
)]

mod support;

mod approvals;
mod approvals_alone;
mod beside;
mod bridge;
mod client;
mod fidelity;
mod following;
mod client_asked;
mod client_levels;
mod client_sse;
mod client_streams;
mod http_access;
mod http_bounds;
mod http_legacy;
mod http_modern;
mod http_streams;
mod loose_servers;
mod offers;
mod older;
mod pages;
mod parked;
mod server_tasks;
mod skills;
mod stdio_bad;
mod stdio_flow;
mod tasks;
mod upstream;
