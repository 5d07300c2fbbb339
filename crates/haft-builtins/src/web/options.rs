//! `WebOptions`: the configuration of the web tools.

use std::sync::Arc;

use crate::web::http::Http;
use crate::web::reader::PageReader;
use crate::web::search::SearchService;

/// The configuration of the web tools.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// The guarded client for URLs that a model names.
    pub http: Http,
    /// True to respect `robots.txt`.
    pub robots: bool,
    /// Reads HTML and PDF files; without one they are only stored as artifacts.
    pub reader: Option<Arc<dyn PageReader>>,
    /// The service that `web_search` uses; without one the tool does not exist.
    pub search: Option<SearchService>,
}

impl Default for WebOptions {
    /// Returns a guarded client that respects `robots.txt`, and nothing else.
    fn default() -> Self {
        Self {
            http: Http::guarded(),
            robots: true,
            reader: None,
            search: None,
        }
    }
}
