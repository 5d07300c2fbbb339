//! `SignInFlow`: one sign-in: haft registers, a user consents on the authorization server's page, and a code becomes a token.

use haft::future::BoxFuture;
use haft::text::clip;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use oauth2::basic::{BasicClient, BasicTokenResponse};
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, PkceCodeChallenge, RedirectUrl,
    RefreshToken, RequestTokenError, Scope, StandardErrorResponse, TokenResponse, TokenUrl,
};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;
use url::form_urlencoded;

use super::grants::{ClientRegistration, OAuthGrant, now};
use super::metadata::{Discovery, checked};
use super::{Fetch, OAuthTerms, Visit};

/// Maximum length of a token.
const MAX_TOKEN: usize = 16 * 1024;

/// A sign-in and what it needs.
pub(super) struct SignInFlow<'a> {
    pub(super) fetch: &'a dyn Fetch,
    pub(super) terms: &'a OAuthTerms,
    pub(super) found: &'a Discovery,
    pub(super) visit: &'a dyn Visit,
}

/// What the redirect from the page contains.
#[derive(Debug, Default)]
struct RedirectParams {
    code: Option<String>,
    state: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
}

/// An authorization server's response to a registration.
#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl SignInFlow<'_> {
    /// Signs in, requesting these scopes.
    pub(super) async fn run(
        &self,
        before: Option<&OAuthGrant>,
        scopes: Vec<String>,
    ) -> Result<OAuthGrant, String> {
        let redirect_uri = self.visit.redirect_uri();
        let registered = self.ensure_registered(before, &redirect_uri).await?;
        let server = &self.found.server;
        let redirect = RedirectUrl::new(redirect_uri).map_err(|e| e.to_string())?;
        let page =
            AuthUrl::new(server.authorization_endpoint.clone()).map_err(|e| e.to_string())?;
        let client = client(&registered, &server.token_endpoint)?
            .set_auth_uri(page)
            .set_redirect_uri(redirect);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (page, state) = client
            .authorize_url(CsrfToken::new_random)
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(challenge)
            .add_extra_param("resource", self.found.resource.as_str())
            .url();
        let page = checked(page.as_str())?;
        let query = self.visit.visit(page, &server.issuer).await?;
        let code = self.code(&query, state.secret())?;
        let mut exchange = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(verifier)
            .add_extra_param("resource", self.found.resource.as_str());
        if let Some(id) = registered.id_beside_header() {
            exchange = exchange.add_extra_param("client_id", id);
        }
        let answer = exchange.request_async(&FlowClient(self.fetch)).await;
        let answer = answer.map_err(|e| refusal(&e))?;
        let grant = OAuthGrant {
            issuer: server.issuer.clone(),
            resource: self.found.resource.clone(),
            client: registered,
            token_endpoint: server.token_endpoint.clone(),
            revocation_endpoint: server.revocation_endpoint.clone(),
            access_token: None,
            refresh_token: None,
            expires: None,
            scopes,
        };
        with_token(grant, &answer)
    }

    /// Extracts the code from the query of the redirect.
    fn code(&self, query: &str, state: &str) -> Result<String, String> {
        let mut back = RedirectParams::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match name.as_ref() {
                "code" => &mut back.code,
                "state" => &mut back.state,
                "iss" => &mut back.issuer,
                "error" => &mut back.error,
                _ => continue,
            };
            if slot.is_some() {
                return Err(format!("the answer of the page holds {name} twice"));
            }
            *slot = Some(value.into_owned());
        }
        let answered = back.state.unwrap_or_default();
        if !bool::from(answered.as_bytes().ct_eq(state.as_bytes())) {
            return Err("the answer of the page belongs to another sign-in".to_owned());
        }
        let server = &self.found.server;
        match &back.issuer {
            Some(issuer) if *issuer != server.issuer => {
                return Err(format!(
                    "the answer is of {:?}, not of {:?}",
                    clip(issuer, 200),
                    server.issuer
                ));
            }
            None if server.authorization_response_iss_parameter_supported => {
                return Err(format!(
                    "the answer does not say that it is of {:?}",
                    server.issuer
                ));
            }
            _ => {}
        }
        if let Some(error) = back.error {
            return Err(format!(
                "the authorization server answers {:?}",
                clip(&error, 200)
            ));
        }
        back.code
            .ok_or_else(|| "the answer of the page holds no code".to_owned())
    }

    /// Returns haft's client registration; registers first if none is known.
    async fn ensure_registered(
        &self,
        before: Option<&OAuthGrant>,
        redirect_uri: &str,
    ) -> Result<ClientRegistration, String> {
        let server = &self.found.server;
        let known = |id: &str, secret: Option<String>, in_body| ClientRegistration {
            id: id.to_owned(),
            secret,
            in_body,
            redirect_uri: None,
        };
        let methods = &server.token_endpoint_auth_methods_supported;
        let offers = |method: &str| methods.iter().any(|offered| offered == method);
        let in_body = offers("client_secret_post") && !offers("client_secret_basic");
        match &self.terms.client_id {
            Some(id) if !id.starts_with("https://") => {
                return Ok(known(id, self.terms.client_secret.clone(), in_body));
            }
            Some(id) if server.client_id_metadata_document_supported => {
                return Ok(known(id, None, false));
            }
            _ => {}
        }
        let same = before.map(|grant| &grant.client);
        if let Some(same) = same.filter(|same| same.redirect_uri.as_deref() == Some(redirect_uri)) {
            return Ok(same.clone());
        }
        let Some(endpoint) = &server.registration_endpoint else {
            return Err(format!(
                "the authorization server {:?} does not accept unknown clients: register haft there, and set `oauth.client_id`",
                server.issuer
            ));
        };
        let method = match () {
            () if methods.is_empty() || offers("none") => "none",
            () if offers("client_secret_basic") => "client_secret_basic",
            () => "client_secret_post",
        };
        self.register(endpoint, redirect_uri, method).await
    }

    async fn register(
        &self,
        endpoint: &str,
        redirect_uri: &str,
        method: &str,
    ) -> Result<ClientRegistration, String> {
        let body = json!({
            "client_name": "haft",
            "application_type": "native",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
        });
        let mut request = Request::new(body.to_string().into_bytes());
        *request.method_mut() = Method::POST;
        let endpoint = checked(endpoint)?;
        *request.uri_mut() = endpoint
            .as_str()
            .parse()
            .map_err(|e| format!("{endpoint}: {e}"))?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json.clone());
        request.headers_mut().insert(ACCEPT, json);
        let response = self.fetch.fetch(request).await?;
        if !response.status().is_success() {
            return Err(format!(
                "the authorization server does not accept haft as a client: {endpoint} answers HTTP {}",
                response.status().as_u16()
            ));
        }
        let made: Registration = serde_json::from_slice(response.body())
            .map_err(|e| format!("what {endpoint} answers is not understood: {e}"))?;
        let longest = made.client_secret.as_deref().map_or(0, str::len);
        if made.client_id.len().max(longest) > MAX_TOKEN {
            return Err(format!(
                "what {endpoint} knows haft by is over {MAX_TOKEN} bytes"
            ));
        }
        let method = made.token_endpoint_auth_method.as_deref().unwrap_or(method);
        Ok(ClientRegistration {
            id: made.client_id,
            secret: made.client_secret.filter(|_| method != "none"),
            in_body: method == "client_secret_post",
            redirect_uri: Some(redirect_uri.to_owned()),
        })
    }
}

/// Uses the refresh token to get a new token; `None` if there is no refresh token.
pub(super) async fn refresh(
    fetch: &dyn Fetch,
    grant: &OAuthGrant,
) -> Result<Option<OAuthGrant>, String> {
    let Some(token) = grant.refresh_token.clone() else {
        return Ok(None);
    };
    let (client, token) = (
        client(&grant.client, &grant.token_endpoint)?,
        RefreshToken::new(token),
    );
    let mut exchange = client
        .exchange_refresh_token(&token)
        .add_extra_param("resource", grant.resource.as_str());
    if let Some(id) = grant.client.id_beside_header() {
        exchange = exchange.add_extra_param("client_id", id);
    }
    let answer = exchange.request_async(&FlowClient(fetch)).await;
    let answer = answer.map_err(|e| refusal(&e))?;
    with_token(grant.clone(), &answer).map(Some)
}

type TokenClient =
    BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

fn client(registered: &ClientRegistration, token_endpoint: &str) -> Result<TokenClient, String> {
    checked(token_endpoint)?;
    let token_endpoint = TokenUrl::new(token_endpoint.to_owned()).map_err(|e| e.to_string())?;
    let how = if registered.in_body {
        AuthType::RequestBody
    } else {
        AuthType::BasicAuth
    };
    let client = BasicClient::new(ClientId::new(registered.id.clone()))
        .set_token_uri(token_endpoint)
        .set_auth_type(how);
    Ok(match &registered.secret {
        Some(secret) => client.set_client_secret(ClientSecret::new(secret.clone())),
        None => client,
    })
}

fn with_token(grant: OAuthGrant, answer: &BasicTokenResponse) -> Result<OAuthGrant, String> {
    let kind = answer.token_type().as_ref();
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(format!(
            "its token is of the kind {:?}, which haft does not use",
            clip(kind, 100)
        ));
    }
    let token = answer.access_token().secret();
    let renewal = answer.refresh_token().map(RefreshToken::secret);
    if [Some(token), renewal]
        .into_iter()
        .flatten()
        .any(|token| token.len() > MAX_TOKEN)
    {
        return Err(format!("its token is over {MAX_TOKEN} bytes"));
    }
    let lasts = answer
        .expires_in()
        .and_then(|lasts| i64::try_from(lasts.as_secs()).ok());
    Ok(OAuthGrant {
        access_token: Some(token.clone()),
        refresh_token: renewal.cloned().or(grant.refresh_token),
        expires: lasts.map(|seconds| now().saturating_add(seconds)),
        ..grant
    })
}

/// Carries the library's requests.
struct FlowClient<'f>(&'f dyn Fetch);

/// A failed fetch.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct FetchError(String);

impl<'c> AsyncHttpClient<'c> for FlowClient<'_> {
    type Error = FetchError;
    type Future = BoxFuture<'c, Result<HttpResponse, FetchError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move { self.0.fetch(request).await.map_err(FetchError) })
    }
}

type TokenFailure =
    RequestTokenError<FetchError, StandardErrorResponse<oauth2::basic::BasicErrorResponseType>>;

/// Says why there is no token; never quotes an unreadable response, which may contain a token.
fn refusal(error: &TokenFailure) -> String {
    match error {
        RequestTokenError::ServerResponse(said) => {
            let why = said.error_description().map_or("", String::as_str);
            let (error, why) = (said.error(), clip(why, 300));
            format!("the authorization server refuses ({error}) {why}")
        }
        RequestTokenError::Request(why) => {
            format!("the authorization server gives no token: {why}")
        }
        _ => "the authorization server's answer is not understood".to_owned(),
    }
}
