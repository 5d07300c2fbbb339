//! `People`: callers with tokens of their own, issued by the operator or an authorization server, and how a client without a
//! token learns where to get one.

use std::collections::BTreeSet;
use std::fmt;

use haft_app::access::{IdentifiedCaller, LiveTokens, PREFIX};
use haft_app::app::App;
use haft_app::oauth::{TokenError, WELL_KNOWN};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

/// Why a token is refused.
#[derive(Debug)]
pub(crate) enum TokenRefusal {
    /// It is unknown, and there is no authorization server to send its caller to.
    Unknown,
    /// Its caller is told where to get a token, or what is wrong with this one.
    Challenged(TokenChallenge),
    /// Its view is not in the settings.
    NoView(String),
}

/// Callers with tokens of their own.
#[derive(Debug)]
pub(crate) struct People {
    app: App,
    tokens: LiveTokens,
    views: BTreeSet<String>,
}

impl People {
    /// Loads those that the state folder and the settings of this application know.
    pub(crate) fn new(app: &App) -> Self {
        let tenant = app.principal().tenant.clone();
        Self {
            tokens: LiveTokens::new(&app.site().home, tenant),
            views: app.views().map(str::to_owned).collect(),
            app: app.clone(),
        }
    }

    /// Returns the owner of a token.
    pub(crate) async fn find(&self, token: &str) -> Result<IdentifiedCaller, TokenRefusal> {
        let person = match (self.tokens.person(token), self.app.oauth()) {
            (Some(person), _) => person,
            (None, Some(oauth)) if !token.starts_with(PREFIX) => {
                let person = oauth.person(token).await;
                person.map_err(|error| TokenRefusal::Challenged(self.refused(error)))?
            }
            (None, Some(_)) => {
                let unknown = TokenError::Invalid("this server did not issue it".to_owned());
                return Err(TokenRefusal::Challenged(self.refused(unknown)));
            }
            (None, None) => return Err(TokenRefusal::Unknown),
        };
        match &person.view {
            Some(view) if !self.views.contains(view) => Err(TokenRefusal::NoView(view.clone())),
            _ => Ok(person),
        }
    }

    /// Returns whether this path is public: the metadata that tells clients of the authorization server.
    pub(crate) fn is_public_path(&self, path: &str) -> bool {
        let oauth = self.app.oauth();
        oauth.is_some_and(|oauth| path == WELL_KNOWN || path == oauth.metadata_path())
    }

    /// Returns the challenge for a client without a token; `None` if there is no authorization server.
    pub(crate) fn challenge(&self) -> Option<TokenChallenge> {
        self.app.oauth()?;
        Some(TokenChallenge {
            message: "send `Authorization: Bearer TOKEN` with a token of the authorization server"
                .to_owned(),
            status: StatusCode::UNAUTHORIZED,
            header: self.header(None),
        })
    }

    fn refused(&self, error: TokenError) -> TokenChallenge {
        tracing::debug!(%error, "an access token was refused");
        let (status, word) = match &error {
            TokenError::Invalid(_) => (StatusCode::UNAUTHORIZED, Some("invalid_token")),
            TokenError::Scope(_) => (StatusCode::FORBIDDEN, Some("insufficient_scope")),
            TokenError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
        };
        // The name of the unreachable host is for the operator only, who finds it in the log.
        let message = match error {
            TokenError::Unavailable(_) => {
                "the access token cannot be checked now: try again in a moment".to_owned()
            }
            other => other.to_string(),
        };
        let header = word.and_then(|word| self.header(Some(word)));
        TokenChallenge {
            message,
            status,
            header,
        }
    }

    /// Returns the `WWW-Authenticate` header (RFC 6750, RFC 9728).
    fn header(&self, error: Option<&str>) -> Option<HeaderValue> {
        let oauth = self.app.oauth()?;
        let (place, scopes) = (oauth.metadata_url(), oauth.scopes());
        let mut text = format!("Bearer resource_metadata=\"{place}\", scope=\"{scopes}\"");
        if let Some(error) = error {
            text = format!("{text}, error=\"{error}\"");
        }
        HeaderValue::from_str(&text).ok()
    }
}

/// A refusal that says where to get a token.
#[derive(Debug)]
pub(crate) struct TokenChallenge {
    message: String,
    status: StatusCode,
    header: Option<HeaderValue>,
}

impl TokenChallenge {
    /// Returns the status and the kind of the error.
    pub(crate) fn status(&self) -> (StatusCode, &'static str) {
        let word = match self.status {
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "unauthorized",
        };
        (self.status, word)
    }

    /// Returns the value of `WWW-Authenticate`.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        self.header.clone()
    }
}

impl fmt::Display for TokenChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns the metadata that tells clients of the authorization server (RFC 9728); `None` if the settings name none.
pub(crate) fn metadata(app: &App) -> Option<Value> {
    Some(app.oauth()?.metadata())
}
