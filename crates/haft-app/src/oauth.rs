//! `ResourceServer`: validates access tokens of an OAuth 2.1 authorization server and maps them to views. A token only identifies the
//! caller; haft never passes it on.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft::call::Principal;
use serde_json::{Value, json};

use crate::access::IdentifiedCaller;
use crate::oauth::jwks::{KeyError, KeySet};
use crate::oauth::jwt::{Claims, Jwt};

pub(crate) mod jwks;
mod jwk;
mod jwt;

/// The path of the metadata of a protected resource (RFC 9728).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The word that maps a scope to all tools.
pub(crate) const ALL: &str = "*";
/// Maximum length of a subject, in bytes.
const MAX_SUBJECT: usize = 255;

/// The settings (`serve.oauth.*`).
#[derive(Debug, Clone)]
pub(crate) struct OAuthSettings {
    /// The issuer of the tokens, as in their `iss`.
    pub(crate) issuer: String,
    /// This server's own name, as in their `aud`: the URL of its MCP endpoint.
    pub(crate) audience: String,
    /// The scopes, each with its view; `None` for all tools.
    pub(crate) scopes: BTreeMap<String, Option<String>>,
    /// The tenant of the callers.
    pub(crate) tenant: Arc<str>,
}

/// Validates access tokens.
#[derive(Debug)]
pub struct ResourceServer {
    terms: OAuthSettings,
    keys: KeySet,
}

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It was not issued for this server, or it has expired.
    #[error("the access token is not valid: {0}")]
    Invalid(String),
    /// It is valid, but none of its scopes maps to tools.
    #[error("the access token does not reach: {0}")]
    Scope(String),
    /// It could not be validated.
    #[error("the access token cannot be checked now: {0}")]
    Unavailable(String),
}

impl ResourceServer {
    pub(crate) fn new(terms: OAuthSettings, keys: KeySet) -> Self {
        Self { terms, keys }
    }

    /// Returns the caller that this token identifies, with its view.
    ///
    /// # Errors
    /// [`TokenError`] if the token is not valid for this server, none of its scopes maps to tools, or it cannot be validated.
    pub async fn person(&self, token: &str) -> Result<IdentifiedCaller, TokenError> {
        let jwt = Jwt::parse(token).map_err(TokenError::Invalid)?;
        let key = self.keys.find(jwt.kid(), jwt.algorithm()).await;
        let key = key.map_err(|error| match error {
            KeyError::Unknown(what) => TokenError::Invalid(what),
            KeyError::Unavailable(what) => TokenError::Unavailable(what),
        })?;
        let claims = jwt.verify(&key).map_err(TokenError::Invalid)?;
        let now = seconds();
        claims
            .check(&self.terms.issuer, &self.terms.audience, now)
            .map_err(TokenError::Invalid)?;
        Ok(IdentifiedCaller {
            principal: self.principal(&claims)?,
            view: self.view(&claims)?,
        })
    }

    /// Returns the principal, named by issuer and subject, in the operator's own tenant, so that the operator sees its approval requests.
    /// No issuer contains a `#`, so no two principals have the same name.
    fn principal(&self, claims: &Claims) -> Result<Principal, TokenError> {
        let subject = claims.subject();
        let sound = !subject.is_empty()
            && subject.len() <= MAX_SUBJECT
            && !subject.chars().any(char::is_control);
        if !sound {
            let what = format!("its subject is not 1 to {MAX_SUBJECT} plain characters");
            return Err(TokenError::Invalid(what));
        }
        let named = format!("{}#{subject}", self.terms.issuer);
        Ok(Principal::new(Arc::clone(&self.terms.tenant), named))
    }

    /// Returns the view of the token's scopes; `None` if they map to all tools.
    fn view(&self, claims: &Claims) -> Result<Option<String>, TokenError> {
        let mut views: Vec<&Option<String>> = claims
            .scopes()
            .filter_map(|scope| self.terms.scopes.get(scope))
            .collect();
        views.sort();
        views.dedup();
        match views.as_slice() {
            [] => Err(TokenError::Scope(format!(
                "it has none of the scopes {}",
                self.scopes()
            ))),
            [None, ..] => Ok(None),
            [view] => Ok((*view).clone()),
            several => {
                let names: Vec<&str> = several.iter().filter_map(|v| v.as_deref()).collect();
                let names = names.join(", ");
                let what =
                    format!("its scopes are of several views ({names}): ask for those of one");
                Err(TokenError::Scope(what))
            }
        }
    }

    /// Returns the scopes that map to tools, as a challenge names them.
    pub fn scopes(&self) -> String {
        let scopes: Vec<&str> = self.terms.scopes.keys().map(String::as_str).collect();
        scopes.join(" ")
    }

    /// Returns the metadata from which clients find the authorization server (RFC 9728).
    pub fn metadata(&self) -> Value {
        let scopes: Vec<&String> = self.terms.scopes.keys().collect();
        json!({
            "resource": self.terms.audience,
            "authorization_servers": [self.terms.issuer],
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
            "resource_name": "haft",
        })
    }

    /// Returns the URL of the metadata: its path goes between the host and the path of the audience.
    pub fn metadata_url(&self) -> String {
        let (origin, path) = split(&self.terms.audience);
        format!("{origin}{WELL_KNOWN}{path}")
    }

    /// Returns only the path of that URL.
    pub fn metadata_path(&self) -> String {
        let (_, path) = split(&self.terms.audience);
        format!("{WELL_KNOWN}{path}")
    }

    /// Returns the issuer of the tokens.
    pub fn issuer(&self) -> &str {
        &self.terms.issuer
    }

    /// Returns the number of keys of the issuer; fetches them if they were not read yet.
    ///
    /// # Errors
    /// Why there are none, as the end of a sentence.
    pub async fn keys(&self) -> Result<usize, String> {
        match self.keys.count().await? {
            0 => Err("it has no key that checks signatures".to_owned()),
            count => Ok(count),
        }
    }
}

/// Splits a URL into its origin and its path, without a trailing slash.
pub(crate) fn split(url: &str) -> (&str, &str) {
    let after = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(after..).unwrap_or_default();
    let at = rest.find('/').map_or(url.len(), |at| after + at);
    let (origin, path) = url.split_at(at);
    (origin, path.trim_end_matches('/'))
}

/// Returns the current time in seconds since 1970; if the clock cannot be read, a time at which every token has expired.
fn seconds() -> i64 {
    i64::try_from(haft::clock::now() / 1_000_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
