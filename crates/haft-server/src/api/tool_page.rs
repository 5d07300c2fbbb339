//! A tool's own page for the console's frame: limited in time, and served so that it can reach nothing but the user's eyes.

use std::time::Duration;

use axum::extract::{Extension, Path};
use axum::response::Response;
use haft::error::{ErrorKind, ToolError};
use haft::toolset::Toolset;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use crate::api::state::{Api, ApiState, failed};
use crate::caller::ApiCaller;
use crate::reply;

/// Time limit for a tool to provide its page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the page may do: run its script and show the images that it contains. It has no origin, so it has no cookies or storage,
/// and it can reach no address.
const PAGE_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// The header in which a browser says how it is about to use a resource.
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// DNS lookups would leave the machine as well.
const DNS_PREFETCH_CONTROL: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

/// Reports whether there is a page to show, or why not.
pub(crate) async fn about(
    state: ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(name): Path<String>,
) -> Response {
    match read(&state, caller, &name).await {
        Ok((uri, page)) => reply::document(&json!({"uri": uri, "bytes": page.len()})),
        Err(response) => response,
    }
}

/// Serves the page for a frame only: in a tab of its own, it could navigate anywhere and take what it knows with it.
pub(crate) async fn page(
    state: ApiState,
    Extension(caller): Extension<ApiCaller>,
    Path(name): Path<String>,
    asked: HeaderMap,
) -> Response {
    if asked.get(FETCH_DEST).is_some_and(|place| place != "iframe") {
        let why = "a tool's page is shown only in the console's frame";
        return reply::error(StatusCode::FORBIDDEN, "forbidden", why);
    }
    let (_, page) = match read(&state, caller, &name).await {
        Ok(read) => read,
        Err(response) => return response,
    };
    let mut response = reply::typed(StatusCode::OK, "text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(PAGE_POLICY),
    );
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(DNS_PREFETCH_CONTROL, HeaderValue::from_static("off"));
    response
}

/// Reads a tool's page and its address.
async fn read(api: &Api, caller: ApiCaller, name: &str) -> Result<(String, String), Response> {
    if caller != ApiCaller::Operator {
        let why = "tools show their pages to the operator";
        return Err(reply::error(StatusCode::FORBIDDEN, "forbidden", why));
    }
    let snapshot = api.app.tools().snapshot();
    let Some(entry) = snapshot.entry(name).cloned() else {
        return Err(reply::not_found("no such tool"));
    };
    let uri = entry.spec().ui.as_ref().map(|ui| ui.resource_uri.clone());
    // A tool that panics or hangs affects nothing else.
    let mut reading = tokio::spawn(async move { entry.page().await });
    let page = match tokio::time::timeout(PAGE_TIMEOUT, &mut reading).await {
        Ok(Ok(page)) => page.map_err(|error| refused(&error))?,
        Ok(Err(_)) => return Err(failed("the tool failed while it provided its page")),
        Err(_) => {
            reading.abort();
            let late = ToolError::new(
                ErrorKind::Timeout,
                "the tool did not provide its page within 10 s",
            );
            return Err(refused(&late));
        }
    };
    let page = api.app.redactor().redact(&page).into_owned();
    Ok((uri.unwrap_or_default(), page))
}

fn refused(error: &ToolError) -> Response {
    let status = match error.kind() {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    reply::error(status, error.kind().as_str(), error.message())
}
