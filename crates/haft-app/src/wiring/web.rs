//! The web tools from settings: the client, `robots.txt`, a reader in the jail, the search service.

use std::sync::Arc;

use haft_builtins::web::WebOptions;
use haft_builtins::web::http::{FetchLimits, Http, HttpError};
use haft_builtins::web::reader::{JailedReader, PageReader};
use haft_builtins::web::search::{SearchError, SearchProvider, SearchService, SearchSettings};
use haft_sandbox::Sandbox;

use crate::config::Settings;
use crate::config::typed::{WEB_MAX_BYTES, WEB_ROBOTS};
use crate::own_program::own_program;
use crate::problem::Problem;
use crate::upstream::upstream;

/// Builds what the web tools work with.
pub(crate) fn web(settings: &Settings, sandbox: &Sandbox) -> Result<WebOptions, Problem> {
    let limits = FetchLimits {
        max_bytes: settings.get(WEB_MAX_BYTES),
        ..FetchLimits::default()
    };
    let upstream = upstream(settings)?;
    let mut http = Http::guarded()
        .with_limits(limits)
        .with_upstream(upstream.clone());
    if let Some(agent) = settings.text("web.user_agent") {
        let to_problem = |e: HttpError| Problem::settings(format!("`web.user_agent`: {e}"));
        http = http.with_user_agent(agent).map_err(to_problem)?;
    }
    // The reader of HTML and PDF files is this program, executed again in the jail.
    let reader = own_program().map(|program| {
        let reader = JailedReader::new(sandbox.clone(), program);
        Arc::new(reader) as Arc<dyn PageReader>
    });
    Ok(WebOptions {
        http,
        robots: settings.get(WEB_ROBOTS),
        reader,
        search: search(settings)?.map(|service| service.with_upstream(upstream)),
    })
}

/// Returns web tools that are only used for their names.
pub(crate) fn unwired() -> WebOptions {
    WebOptions {
        http: Http::guarded(),
        robots: true,
        reader: None,
        search: None,
    }
}

fn search(settings: &Settings) -> Result<Option<SearchService>, Problem> {
    let Some(provider) = settings.text("web.search.provider") else {
        return Ok(None);
    };
    let to_problem = |e: SearchError| {
        Problem::settings(e.to_string())
            .advise("`haft config explain web.search.url` says what each provider needs")
    };
    let provider: SearchProvider = provider.parse().map_err(to_problem)?;
    let text = |key: &str| {
        settings
            .text(&format!("web.search.{key}"))
            .map(str::to_owned)
    };
    let headers = settings.entry(&["web", "search", "headers"]);
    let headers = headers.and_then(|entry| entry.value.as_table());
    let header =
        |(name, value): (&String, &toml::Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let service = SearchService::new(
        provider,
        SearchSettings {
            url: text("url"),
            api_key: text("api_key"),
            headers: headers.into_iter().flatten().filter_map(header).collect(),
            results: text("results"),
            title: text("title"),
            link: text("link"),
            snippet: text("snippet"),
        },
    );
    service.map(Some).map_err(to_problem)
}
