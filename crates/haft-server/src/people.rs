//! `People`: those who come with tokens of their own, made by the operator or by an authorization server, and how a client that has none
//! learns where to get one.

use std::collections::BTreeSet;
use std::fmt;

use haft_app::access::{LiveTokens, PREFIX, Person};
use haft_app::app::App;
use haft_app::oauth::{TokenError, WELL_KNOWN};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

/// Why a token does not count.
#[derive(Debug)]
pub(crate) enum TurnedAway {
    /// Nothing knows it, and there is no authorization server to send its caller to.
    Unknown,
    /// Its caller is told where one is to be had, or what is wrong with this one.
    Challenged(Challenge),
    /// Its view is not in the settings.
    NoView(String),
}

/// Who comes with tokens of their own.
#[derive(Debug)]
pub(crate) struct People {
    app: App,
    tokens: LiveTokens,
    views: BTreeSet<String>,
}

impl People {
    /// Those whom the state folder and the settings of this application know.
    pub(crate) fn new(app: &App) -> Self {
        let tenant = app.principal().tenant.clone();
        Self {
            tokens: LiveTokens::new(&app.site().home, tenant),
            views: app.views().map(str::to_owned).collect(),
            app: app.clone(),
        }
    }

    /// Whose token this is.
    pub(crate) async fn find(&self, token: &str) -> Result<Person, TurnedAway> {
        let person = match (self.tokens.person(token), self.app.oauth()) {
            (Some(person), _) => person,
            (None, Some(oauth)) if !token.starts_with(PREFIX) => {
                let person = oauth.person(token).await;
                person.map_err(|error| TurnedAway::Challenged(self.refused(error)))?
            }
            (None, Some(_)) => {
                let unknown = TokenError::Invalid("it is none of this server's".to_owned());
                return Err(TurnedAway::Challenged(self.refused(unknown)));
            }
            (None, None) => return Err(TurnedAway::Unknown),
        };
        match &person.view {
            Some(view) if !self.views.contains(view) => Err(TurnedAway::NoView(view.clone())),
            _ => Ok(person),
        }
    }

    /// Whether anybody may read this: what tells clients of the authorization server.
    pub(crate) fn publishes(&self, path: &str) -> bool {
        let oauth = self.app.oauth();
        oauth.is_some_and(|oauth| path == WELL_KNOWN || path == oauth.metadata_path())
    }

    /// Where a client without a token is sent; none where there is no authorization server.
    pub(crate) fn challenge(&self) -> Option<Challenge> {
        self.app.oauth()?;
        Some(Challenge {
            message: "send `Authorization: Bearer TOKEN` with a token of the authorization server"
                .to_owned(),
            status: StatusCode::UNAUTHORIZED,
            header: self.header(None),
        })
    }

    fn refused(&self, error: TokenError) -> Challenge {
        tracing::debug!(%error, "an access token was refused");
        let (status, word) = match &error {
            TokenError::Invalid(_) => (StatusCode::UNAUTHORIZED, Some("invalid_token")),
            TokenError::Scope(_) => (StatusCode::FORBIDDEN, Some("insufficient_scope")),
            TokenError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, None),
        };
        // Which host could not be reached is for the operator, who finds it in the log.
        let message = match error {
            TokenError::Unavailable(_) => {
                "the access token cannot be checked now: try again in a moment".to_owned()
            }
            other => other.to_string(),
        };
        let header = word.and_then(|word| self.header(Some(word)));
        Challenge {
            message,
            status,
            header,
        }
    }

    /// `WWW-Authenticate` (RFC 6750, RFC 9728).
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

/// A refusal that says where a token is to be had.
#[derive(Debug)]
pub(crate) struct Challenge {
    message: String,
    status: StatusCode,
    header: Option<HeaderValue>,
}

impl Challenge {
    /// The status, and the word of the error.
    pub(crate) fn status(&self) -> (StatusCode, &'static str) {
        let word = match self.status {
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "unauthorized",
        };
        (self.status, word)
    }

    /// What stands in `WWW-Authenticate`.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        self.header.clone()
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What tells clients of the authorization server (RFC 9728); none where settings name none.
pub(crate) fn metadata(app: &App) -> Option<Value> {
    Some(app.oauth()?.metadata())
}
