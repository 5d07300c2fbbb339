//! `SearchService`: the formats of search services, and how to read their responses.

use std::fmt;
use std::str::FromStr;

use dom_query::Document;
use haft::error::ToolError;
use haft_http::upstream::UpstreamProxy;
use serde_json::Value;
use thiserror::Error;
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::web::http::{FetchLimits, Http};
use crate::web::search::WebSearchHit;
use crate::web::target::WebUrl;

/// The endpoint of Brave's service.
const BRAVE: &str = "https://api.search.brave.com/res/v1/web/search";
/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 300;
/// Maximum length of a snippet, in characters.
const MAX_SNIPPET: usize = 1_000;
/// Maximum length of a result's URL, in bytes.
const MAX_URL: usize = 2_048;

/// A kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchProvider {
    /// Brave Search.
    Brave,
    /// An instance of `SearXNG` with its JSON format enabled.
    Searxng,
    /// Any service that responds to a GET with JSON.
    Json,
}

impl FromStr for SearchProvider {
    type Err = SearchError;

    fn from_str(word: &str) -> Result<Self, SearchError> {
        match word {
            "brave" => Ok(Self::Brave),
            "searxng" => Ok(Self::Searxng),
            "json" => Ok(Self::Json),
            other => Err(SearchError::Provider(other.to_owned())),
        }
    }
}

/// The settings of a service; absent ones take the provider's defaults.
#[derive(Clone, Default)]
pub struct SearchSettings {
    /// For Brave the endpoint, for `SearXNG` the instance, for JSON a URL with `{query}` and optionally `{limit}`.
    pub url: Option<String>,
    /// The key, sent as `X-Subscription-Token` to Brave and as `Authorization: Bearer` to the others.
    pub api_key: Option<String>,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
    /// A JSON pointer to the list of results.
    pub results: Option<String>,
    /// The member with a result's title.
    pub title: Option<String>,
    /// The member with a result's URL.
    pub link: Option<String>,
    /// The member with a result's snippet.
    pub snippet: Option<String>,
}

impl fmt::Debug for SearchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and the key are secrets.
        f.debug_struct("SearchSettings").finish_non_exhaustive()
    }
}

/// The reason why the settings of a service are not usable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The provider is unknown.
    #[error("unknown search provider {0:?}: use brave, searxng or json")]
    Provider(String),
    /// A setting that the provider needs is missing.
    #[error("the search provider needs {0}")]
    Missing(&'static str),
    /// The URL is refused.
    #[error("the search service's URL is refused: {0}")]
    Url(String),
}

/// A search service that is ready for queries.
#[derive(Debug, Clone)]
pub struct SearchService {
    http: Http,
    provider: SearchProvider,
    settings: SearchSettings,
    url: String,
}

impl SearchService {
    /// Creates a service from its settings.
    ///
    /// # Errors
    /// [`SearchError`] for an unknown provider, a missing setting, or a refused URL.
    pub fn new(provider: SearchProvider, settings: SearchSettings) -> Result<Self, SearchError> {
        let url = match (provider, &settings.url) {
            (_, Some(url)) => url.clone(),
            (SearchProvider::Brave, None) => BRAVE.to_owned(),
            (_, None) => return Err(SearchError::Missing("web.search.url")),
        };
        match provider {
            SearchProvider::Brave if settings.api_key.is_none() => {
                return Err(SearchError::Missing("web.search.api_key"));
            }
            SearchProvider::Json if !url.contains("{query}") => {
                return Err(SearchError::Missing("{query} in web.search.url"));
            }
            _ => {}
        }
        let http = Http::trusted().with_limits(FetchLimits {
            max_bytes: MAX_ANSWER,
            ..FetchLimits::default()
        });
        let service = Self {
            http,
            provider,
            settings,
            url,
        };
        let probe_url = service.request_url("x", 1)?;
        WebUrl::parse(&probe_url).map_err(|why| SearchError::Url(why.to_string()))?;
        Ok(service)
    }

    /// Sends queries through a proxy, if there is one.
    pub fn with_upstream(mut self, upstream: Option<UpstreamProxy>) -> Self {
        self.http = self.http.with_upstream(upstream);
        self
    }

    /// Returns the host of the service.
    pub fn host(&self) -> String {
        let request_url = self.request_url("x", 1).ok();
        let target = request_url.and_then(|url| WebUrl::parse(&url).ok());
        target.map_or_else(String::new, |target| target.host().to_owned())
    }

    fn request_url(&self, query: &str, limit: usize) -> Result<String, SearchError> {
        let to_error = |e: url::ParseError| SearchError::Url(e.to_string());
        let limit = limit.to_string();
        match self.provider {
            SearchProvider::Json => {
                let query: String = byte_serialize(query.as_bytes()).collect();
                let filled = self.url.replace("{limit}", &limit);
                Ok(filled.replace("{query}", &query))
            }
            SearchProvider::Brave => {
                let mut url = Url::parse(&self.url).map_err(to_error)?;
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("count", &limit);
                Ok(url.into())
            }
            SearchProvider::Searxng => {
                let mut url = Url::parse(&self.url).map_err(to_error)?;
                if !url.path().ends_with("/search") {
                    let path = format!("{}/search", url.path().trim_end_matches('/'));
                    url.set_path(&path);
                }
                url.query_pairs_mut()
                    .append_pair("q", query)
                    .append_pair("format", "json");
                Ok(url.into())
            }
        }
    }

    /// Sends a query and returns the results.
    pub(super) async fn search(
        &self,
        query: &str,
        limit: usize,
    ) -> Result<Vec<WebSearchHit>, ToolError> {
        let failed =
            |why: &dyn fmt::Display| ToolError::failed(format!("ask {}: {why}", self.host()));
        let url = self.request_url(query, limit).map_err(|e| failed(&e))?;
        let bearer;
        let mut headers = vec![("Accept", "application/json")];
        match (&self.settings.api_key, self.provider) {
            (Some(key), SearchProvider::Brave) => headers.push(("X-Subscription-Token", key)),
            (Some(key), _) => {
                bearer = format!("Bearer {key}");
                headers.push(("Authorization", &bearer));
            }
            (None, _) => {}
        }
        let own = self.settings.headers.iter();
        headers.extend(own.map(|(name, value)| (name.as_str(), value.as_str())));
        let reply = self
            .http
            .get(&url, &headers)
            .await
            .map_err(|e| failed(&e))?;
        if !reply.is_success() {
            let advice = "the search service is set by web.search in settings; its key may be wrong or used up";
            let why = format!("it answered with status {}", reply.status);
            return Err(failed(&why).for_operator(advice));
        }
        if let Some(cut) = reply.cut {
            return Err(failed(&format!("its answer is cut: {}", cut.as_str())));
        }
        let answer: Value = serde_json::from_slice(&reply.body).map_err(|_| {
            let advice = "SearXNG answers JSON where `search.formats` in its settings names it";
            failed(&"its answer is not JSON").for_operator(advice)
        })?;
        let advice = "`web.search.results` in settings names where its answer holds the hits";
        let hits = self.hits(&answer, limit);
        hits.map_err(|why| failed(&why).for_operator(advice))
    }

    fn hits(&self, answer: &Value, limit: usize) -> Result<Vec<WebSearchHit>, String> {
        let (results, title, link, snippet) = match self.provider {
            SearchProvider::Brave => ("/web/results", "title", "url", "description"),
            SearchProvider::Searxng => ("/results", "title", "url", "content"),
            SearchProvider::Json => ("/results", "title", "url", "snippet"),
        };
        let own = &self.settings;
        let pointer = own.results.as_deref().unwrap_or(results);
        let Some(list) = answer.pointer(pointer) else {
            // Brave omits the whole branch if it finds nothing.
            if self.provider == SearchProvider::Brave {
                return Ok(Vec::new());
            }
            return Err(format!("its answer has nothing at {pointer:?}"));
        };
        let list = list
            .as_array()
            .ok_or_else(|| format!("{pointer:?} of its answer is not a list"))?;
        let member = |hit: &Value, name: &str, most: usize| {
            let found = if name.starts_with('/') {
                hit.pointer(name)
            } else {
                hit.get(name)
            };
            plain(found.and_then(Value::as_str).unwrap_or_default(), most)
        };
        let [title, link, snippet] = [
            own.title.as_deref().unwrap_or(title),
            own.link.as_deref().unwrap_or(link),
            own.snippet.as_deref().unwrap_or(snippet),
        ];
        let url = |hit: &Value| {
            let url = if link.starts_with('/') {
                hit.pointer(link)
            } else {
                hit.get(link)
            };
            let url = url.and_then(Value::as_str).unwrap_or_default();
            (!url.is_empty() && url.len() <= MAX_URL && !url.contains(char::is_control))
                .then(|| url.to_owned())
        };
        let hits = list.iter().filter_map(|hit| {
            Some(WebSearchHit {
                url: url(hit)?,
                title: member(hit, title, MAX_TITLE),
                snippet: member(hit, snippet, MAX_SNIPPET),
            })
        });
        Ok(hits.take(limit).collect())
    }
}

/// Converts text to one line without markup, since services highlight the words they found.
fn plain(text: &str, most: usize) -> String {
    let text = &text[..text.floor_char_boundary(most * 8)];
    let read = if text.contains(['<', '&']) {
        Document::fragment(text).text().to_string()
    } else {
        text.to_owned()
    };
    let words: Vec<&str> = read.split_whitespace().collect();
    let line = words.join(" ");
    line.chars()
        .filter(|c| !c.is_control())
        .take(most)
        .collect()
}
