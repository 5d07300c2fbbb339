//! Revocation of tokens at their authorization server (RFC 7009).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::text::clip;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::Fetch;
use super::grants::OAuthGrant;
use super::metadata::checked;

/// Revokes the tokens, the refresh token first; returns false if the authorization server does not support it.
pub(super) async fn revoke(fetch: &dyn Fetch, grant: &OAuthGrant) -> Result<bool, String> {
    let Some(endpoint) = &grant.revocation_endpoint else {
        return Ok(false);
    };
    let endpoint = checked(endpoint)?;
    for (hint, token) in [
        ("refresh_token", &grant.refresh_token),
        ("access_token", &grant.access_token),
    ] {
        let Some(token) = token else { continue };
        let of = |twice| request(endpoint.as_str(), grant, twice, [hint, token]);
        let mut response = fetch.fetch(of(false)?).await?;
        if response.status() == StatusCode::BAD_REQUEST && !grant.client.in_body {
            // Servers on the Python SDK look for the secret in the body, regardless of the header.
            response = fetch.fetch(of(true)?).await?;
        }
        if !response.status().is_success() {
            return Err(format!(
                "{} answers HTTP {}",
                clip(endpoint.as_str(), 200),
                response.status().as_u16()
            ));
        }
    }
    Ok(true)
}

/// Returns the request for one token; `twice` also puts the secret in the body, in addition to the header.
fn request(
    endpoint: &str,
    grant: &OAuthGrant,
    twice: bool,
    [hint, token]: [&str; 2],
) -> Result<Request<Vec<u8>>, String> {
    let client = &grant.client;
    let mut body = Serializer::new(String::new());
    body.append_pair("token", token)
        .append_pair("token_type_hint", hint)
        .append_pair("client_id", &client.id);
    let mut request = Request::new(Vec::new());
    if client.in_body || twice {
        let secret = client.secret.as_deref().unwrap_or_default();
        body.append_pair("client_secret", secret);
    }
    match &client.secret {
        Some(secret) if !client.in_body => {
            // Each is form-encoded before they are joined (RFC 6749, 2.3.1).
            let written = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", written(&client.id), written(secret));
            let value = format!("Basic {}", STANDARD.encode(pair));
            let mut value = HeaderValue::try_from(value).map_err(|e| e.to_string())?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        _ => {}
    }
    *request.body_mut() = body.finish().into_bytes();
    *request.method_mut() = Method::POST;
    *request.uri_mut() = endpoint.parse().map_err(|e| format!("{endpoint}: {e}"))?;
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, form);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(ACCEPT, json);
    Ok(request)
}
