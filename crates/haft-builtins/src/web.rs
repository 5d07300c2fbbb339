//! Web access: a guarded HTTP client, and `fetch_url` and `web_search`, which use it.

#[cfg(feature = "web")]
pub mod fetch;
pub mod http;
pub mod network;
#[cfg(feature = "web")]
pub mod reader;
#[cfg(feature = "web")]
pub(crate) mod redirects;
#[cfg(feature = "web")]
mod robots;
#[cfg(feature = "web")]
pub mod search;
pub mod target;
#[cfg(feature = "web")]
pub(crate) mod options;

pub use haft_http::upstream;
#[cfg(feature = "web")]
pub use options::WebOptions;

/// The name of the bundle, and the category of its tools.
#[cfg(feature = "web")]
pub(crate) const WEB: &str = "web";
