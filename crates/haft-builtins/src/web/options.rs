//! `Web`: what the web tools work with.

use std::sync::Arc;

use crate::web::http::Http;
use crate::web::reader::PageReader;
use crate::web::redirects::RedirectRule;
use crate::web::search::SearchService;

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
