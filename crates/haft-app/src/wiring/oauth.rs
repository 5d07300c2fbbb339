//! `serve.oauth.*`: the authorization server whose access tokens are accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_builtins::web::http::Http;
use http::Uri;

use crate::config::{Settings, views};
use crate::nearest::nearest;
use crate::oauth::jwks::{IssuerHttp, KeyRefresh, KeySet, KeySource, limits};
use crate::oauth::{ALL, OAuthSettings, ResourceServer};
use crate::problem::Problem;
use crate::upstream::upstream;

/// Keys that are required if any key is set.
const REQUIRED_KEYS: [&str; 2] = ["serve.oauth.issuer", "serve.oauth.audience"];

/// Builds the resource server that the settings describe; `None` if they describe none.
pub(crate) fn resource_server(
    settings: &Settings,
    tenant: &Arc<str>,
) -> Result<Option<ResourceServer>, Problem> {
    let given = settings.iter().any(
        |(path, _)| matches!(path, [serve, oauth, ..] if serve == "serve" && oauth == "oauth"),
    );
    if !given {
        return Ok(None);
    }
    let [issuer, audience] = REQUIRED_KEYS.map(|key| {
        let text = settings.text(key).ok_or_else(|| {
            Problem::settings(format!("`serve.oauth` lacks `{key}`"))
                .advise("set serve.oauth.issuer, serve.oauth.audience and serve.oauth.scopes")
        })?;
        url(key, text)
    });
    let (issuer, audience) = (issuer?, audience?);
    let source = match settings.text("serve.oauth.jwks_url") {
        Some(text) => KeySource::Url(url("serve.oauth.jwks_url", text)?),
        None => KeySource::Issuer(issuer.clone()),
    };
    let proxy = upstream(settings)?;
    let reach = IssuerHttp {
        named: Http::trusted()
            .with_upstream(proxy.clone())
            .with_limits(limits()),
        public: Http::guarded().with_upstream(proxy).with_limits(limits()),
    };
    let terms = OAuthSettings {
        issuer,
        audience,
        scopes: scopes(settings)?,
        tenant: Arc::clone(tenant),
    };
    let keys = KeySet::new(reach, source, KeyRefresh::default());
    Ok(Some(ResourceServer::new(terms, keys)))
}

/// Checks that a URL is encrypted or local.
fn url(key: &str, text: &str) -> Result<String, Problem> {
    let wrong = |what: &str| {
        Problem::settings(format!("`{key}` is `{text}`: {what}"))
            .advise("write it as `https://HOST/PATH`, without `?` and `#`; `http` is only for 127.0.0.1 and localhost")
    };
    let parsed: Uri = text.parse().map_err(|_| wrong("it is not a URL"))?;
    let host = parsed.host().ok_or_else(|| wrong("it has no host"))?;
    let bare = host.trim_matches(['[', ']']);
    let address = bare.parse::<std::net::IpAddr>();
    let local = bare == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match parsed.scheme_str() {
        Some("https") => {}
        Some("http") if local => {}
        _ => return Err(wrong("it is not encrypted")),
    }
    if text.contains(['?', '#', '@']) {
        return Err(wrong("it has more than a host and a path"));
    }
    Ok(text.to_owned())
}

/// Reads the scopes, each with its view.
fn scopes(settings: &Settings) -> Result<BTreeMap<String, Option<String>>, Problem> {
    let entry = settings.entry(&["serve", "oauth", "scopes"]);
    let table = entry.and_then(|entry| entry.value.as_table());
    let views = views::names(settings)?;
    let mut scopes = BTreeMap::new();
    for (scope, view) in table.into_iter().flatten() {
        let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
        if scope.is_empty() || !scope.bytes().all(plain) {
            let what = format!("`serve.oauth.scopes` names `{scope}`, which cannot be a scope");
            return Err(Problem::settings(what).advise("a scope has no blanks and no quotes"));
        }
        let view = view.as_str().unwrap_or_default();
        if view != ALL && !views.contains(view) {
            let known: Vec<&str> = views.iter().map(String::as_str).collect();
            let what =
                format!("`serve.oauth.scopes` names the view `{view}`, which settings do not have");
            return Err(Problem::settings(what).advise(match nearest(view, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "name its tools: views.{view}.tools = [\"read_file\"]; `*` stands for all tools"
                ),
            }));
        }
        let view = (view != ALL).then(|| view.to_owned());
        scopes.insert(scope.clone(), view);
    }
    if scopes.is_empty() {
        let what = "`serve.oauth.scopes` is empty: no token would reach any tool";
        return Err(Problem::settings(what)
            .advise("map scopes to views: serve.oauth.scopes = { \"tools\" = \"*\" }"));
    }
    Ok(scopes)
}
