//! Tool discovery: also finds skills, and uses embeddings if the settings name a service.

use std::sync::Arc;

use haft::skill::set::SkillSet;
use haft_builtins::discover::DiscoverOptions;
use haft_builtins::discover::embeddings::HttpEmbedder;
use haft_builtins::discover::meaning::Embedder;
use haft_builtins::web::http::Http;
use haft_builtins::web::target::WebUrl;

use crate::config::Settings;
use crate::problem::Problem;
use crate::upstream::upstream;

/// Reads the options from `search.*`, for these skills.
pub(crate) fn options(
    settings: &Settings,
    skills: &Arc<SkillSet>,
) -> Result<DiscoverOptions, Problem> {
    Ok(DiscoverOptions {
        skills: Some(Arc::clone(skills)),
        embedder: embedder(settings)?,
    })
}

fn embedder(settings: &Settings) -> Result<Option<Arc<dyn Embedder>>, Problem> {
    let Some(url) = settings.text("search.embeddings.url") else {
        return Ok(None);
    };
    // The base URL of the API is accepted in place of the URL of its embeddings.
    let url = match url.trim_end_matches('/') {
        base if base.ends_with("/v1") => format!("{base}/embeddings"),
        whole => whole.to_owned(),
    };
    let target = WebUrl::parse(&url);
    target.map_err(|e| Problem::settings(format!("`search.embeddings.url`: {e}")))?;
    let Some(model) = settings.text("search.embeddings.model") else {
        let problem = Problem::settings("`search.embeddings.url` needs `search.embeddings.model`");
        return Err(problem.advise("name the model that the service has"));
    };
    let http = Http::trusted().with_upstream(upstream(settings)?);
    let mut embedder = HttpEmbedder::new(http, url, model);
    if let Some(key) = settings.text("search.embeddings.api_key") {
        embedder = embedder.with_api_key(key);
    }
    Ok(Some(Arc::new(embedder)))
}
