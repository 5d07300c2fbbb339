//! The web: a guarded HTTP client, `fetch_url` and `web_search` on it.

pub mod fetch;
pub mod http;
pub mod network;
pub mod reader;
pub(crate) mod redirects;
mod robots;
pub mod search;
pub mod target;

use std::fmt;
use std::sync::Arc;

use haft::permission::Verdict;
use haft::spec::ToolSpec;

use crate::web::http::Http;
use crate::web::reader::PageReader;
use crate::web::search::SearchService;

/// The bundle's name, and the category of its tools.
pub(crate) const WEB: &str = "web";

/// What the web tools work with.
#[derive(Debug, Clone)]
pub struct Web {
    /// Fetches what a model names; a guarded client.
    pub http: Http,
    /// `robots.txt` is respected.
    pub robots: bool,
    /// Reads HTML and PDF files; without one they are kept as artifacts.
    pub reader: Option<Arc<dyn PageReader>>,
    /// Rules on hosts that a redirect leads to; without one every public host is followed to.
    pub redirects: Option<Arc<dyn RedirectRule>>,
    /// Where `web_search` asks; without one there is no such tool.
    pub search: Option<SearchService>,
}

impl Default for Web {
    /// A guarded client that respects `robots.txt`, and nothing beside.
    fn default() -> Self {
        Self {
            http: Http::guarded(),
            robots: true,
            reader: None,
            redirects: None,
            search: None,
        }
    }
}

/// Rules on another host that a call cleared for one host is sent to.
pub trait RedirectRule: Send + Sync + fmt::Debug {
    /// The verdict on this tool's connection to the host of this URL.
    fn verdict(&self, tool: &ToolSpec, url: &str, host: &str) -> Verdict;
}
