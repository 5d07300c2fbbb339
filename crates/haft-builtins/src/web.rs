//! The web: a guarded HTTP client, `fetch_url` and `web_search` on it.

pub mod http;
pub mod network;
pub mod target;
