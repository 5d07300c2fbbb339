//! Checks of access: access tokens, and the authorization server from the settings.

use std::collections::BTreeSet;

use super::{HealthCheck, check};
use crate::access::AccessTokens;
use crate::app::App;

/// Returns a line about access tokens if there are any, and one about the authorization server if there is one.
pub(super) async fn checks(app: &App) -> Vec<HealthCheck> {
    tokens(app).into_iter().chain(oauth(app).await).collect()
}

fn tokens(app: &App) -> Option<HealthCheck> {
    let tokens = match AccessTokens::load(&app.site().home) {
        Ok(tokens) => tokens,
        Err(problem) => {
            let advice = problem.advice().unwrap_or_default().to_owned();
            return Some(check("access tokens", false, problem.to_string(), &advice));
        }
    };
    if tokens.all().is_empty() {
        return None;
    }
    let views: BTreeSet<&str> = app.views().collect();
    let lost = tokens.all().iter().filter_map(|token| {
        let view = token.view.as_deref()?;
        (!views.contains(view)).then(|| format!("{} (view {view})", token.name))
    });
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        let detail = format!("settings do not have the views of {}", lost.join(", "));
        let advice = "name the views in settings, or create the tokens again: haft token";
        return Some(check("access tokens", false, detail, advice));
    }
    let all = tokens.all().len();
    let expired = tokens.all().iter().filter(|token| token.has_expired());
    let detail = match expired.count() {
        0 => format!("{all} made"),
        expired => format!("{all} made, {expired} of them expired"),
    };
    Some(check("access tokens", true, detail, ""))
}

async fn oauth(app: &App) -> Option<HealthCheck> {
    let server = app.oauth()?;
    let issuer = server.issuer();
    Some(match server.keys().await {
        Ok(keys) => check("oauth", true, format!("{issuer} has {keys} keys"), ""),
        Err(error) => {
            let advice = "until its keys can be read, `haft serve` refuses its tokens";
            check("oauth", false, error, advice)
        }
    })
}
