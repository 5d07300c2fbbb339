//! `Courier`: sends requests to one HTTP server, with haft's credentials.

use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft::text::clip;
use haft_http::connections::{ConnectionPool, HttpExchange};
use haft_http::dial::Dial;
use haft_http::waits::Waits;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::Full;

use crate::client::endpoint::Endpoint;
use crate::client::error::ClientError;
use crate::client::speech;

/// Maximum size of a refusal's body to read.
pub(crate) const MAX_REFUSAL_BODY: usize = 64 * 1024;
/// Maximum number of idle connections to keep.
const MAX_IDLE: usize = 32;
/// How often a refused request is retried with other credentials.
const MAX_RETRIES: usize = 3;

/// Provides credentials for a server that requires them.
pub trait Authorize: Send + Sync {
    /// Returns the token for the next request, if there is one.
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, ClientError>>;

    /// Handles the refusal of what [`token`](Self::token) returned; returns whether there is another token to try now.
    fn refused<'a>(&'a self, refusal: &'a AuthRefusal) -> BoxFuture<'a, Result<bool, ClientError>>;
}

/// A server's refusal of a request.
#[derive(Debug, Clone)]
pub struct AuthRefusal {
    /// 401 or 403.
    pub status: u16,
    /// Its `WWW-Authenticate` header, truncated.
    pub challenge: String,
    /// The token that it refused, if one was sent.
    pub token: Option<String>,
}

impl AuthRefusal {
    fn of(status: StatusCode, headers: &HeaderMap, token: Option<String>) -> Option<Self> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let challenge = headers.get(WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|value| value.to_str().ok());
        Some(Self {
            status: status.as_u16(),
            challenge: clip(challenge.unwrap_or_default(), 2000).into_owned(),
            token,
        })
    }
}

/// Sends requests to one server.
pub(crate) struct Courier {
    pub(crate) endpoint: Endpoint,
    connections: ConnectionPool,
    authorize: Option<Arc<dyn Authorize>>,
}

impl Courier {
    pub(crate) fn new(
        endpoint: Endpoint,
        dial: Box<dyn Dial>,
        authorize: Option<Arc<dyn Authorize>>,
    ) -> Self {
        Self {
            connections: ConnectionPool::new(endpoint.destination(), Arc::from(dial), MAX_IDLE),
            endpoint,
            authorize,
        }
    }

    /// Sends a request; retries with another token if the server refuses the first.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<HttpExchange, ClientError> {
        let Some(authorize) = &self.authorize else {
            return Ok(self.connections.send(request, &Waits::default()).await?);
        };
        let mut tries = 0;
        loop {
            let mut attempt = request.clone();
            let token = authorize.token().await?;
            if let Some(token) = &token {
                let value = HeaderValue::from_str(&format!("Bearer {token}"));
                let mut value = value.map_err(|_| {
                    ClientError::Malformed("its token is not valid in a header".into())
                })?;
                value.set_sensitive(true);
                attempt.headers_mut().insert(AUTHORIZATION, value);
            }
            let exchange = self.connections.send(attempt, &Waits::default()).await?;
            let response = &exchange.response;
            let Some(refusal) = AuthRefusal::of(response.status(), response.headers(), token)
            else {
                return Ok(exchange);
            };
            tries += 1;
            if tries > MAX_RETRIES || !authorize.refused(&refusal).await? {
                return Ok(exchange);
            }
        }
    }

    /// Returns the response if it is successful; an error if it is a refusal.
    pub(crate) async fn check_status(
        &self,
        exchange: HttpExchange,
    ) -> Result<HttpExchange, ClientError> {
        let status = exchange.response.status();
        if status.is_success() {
            return Ok(exchange);
        }
        if let Some(refusal) = AuthRefusal::of(status, exchange.response.headers(), None) {
            return Err(ClientError::Unauthorized {
                status: refusal.status,
                challenge: clip(&refusal.challenge, 500).into_owned(),
            });
        }
        let body = whole(exchange, MAX_REFUSAL_BODY).await.unwrap_or_default();
        // In the stateless era, a protocol error comes with its own HTTP status.
        if let Err(error @ ClientError::Refused { .. }) = speech::result(&body) {
            return Err(error);
        }
        let text = String::from_utf8_lossy(&body);
        Err(ClientError::Http {
            status: status.as_u16(),
            body: clip(&text, 300).into_owned(),
        })
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.connections.close();
    }
}

/// Reads a whole body, and keeps its connection.
pub(crate) async fn whole(
    mut exchange: HttpExchange,
    longest: usize,
) -> Result<Bytes, ClientError> {
    let whole = exchange.whole(longest, &Waits::default()).await?;
    exchange.keep().await;
    Ok(whole)
}
