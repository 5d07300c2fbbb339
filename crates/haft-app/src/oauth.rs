//! `ResourceServer`: access tokens of an OAuth 2.1 authorization server, checked here and mapped to views. A token says who calls and is
//! passed on to nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft::call::Principal;
use serde_json::{Value, json};

use crate::access::Person;
use crate::oauth::jwks::{KeyError, KeySet};
use crate::oauth::jwt::{Claims, Jwt};

pub(crate) mod jwks;
mod jwk;
mod jwt;

/// Where the metadata of a protected resource stands (RFC 9728).
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The word that maps a scope to all tools.
pub(crate) const ALL: &str = "*";
/// Longest subject.
const MAX_SUBJECT: usize = 255;

/// What settings say of it (`serve.oauth.*`).
#[derive(Debug, Clone)]
pub(crate) struct OAuthTerms {
    /// Who makes the tokens: as their `iss` says it.
    pub(crate) issuer: String,
    /// This server's own name: as their `aud` says it, the URL of its MCP endpoint.
    pub(crate) audience: String,
    /// Scopes, each with the view that it stands for; all tools where there is none.
    pub(crate) scopes: BTreeMap<String, Option<String>>,
    /// The tenant of those who come.
    pub(crate) tenant: Arc<str>,
}

/// Checks tokens.
#[derive(Debug)]
pub struct ResourceServer {
    terms: OAuthTerms,
    keys: KeySet,
}

/// Why a token does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is none that was made for this server, or it has expired.
    #[error("the access token is not valid: {0}")]
    Invalid(String),
    /// It is valid and has no scope that stands for tools.
    #[error("the access token does not reach: {0}")]
    Scope(String),
    /// It could not be checked.
    #[error("the access token cannot be checked now: {0}")]
    Unavailable(String),
}

impl ResourceServer {
    pub(crate) fn new(terms: OAuthTerms, keys: KeySet) -> Self {
        Self { terms, keys }
    }

    /// Who sends this token, and which view they have.
    ///
    /// # Errors
    /// [`TokenError`] where it is not valid for this server, has no scope that stands for tools, or cannot be checked.
    pub async fn person(&self, token: &str) -> Result<Person, TokenError> {
        let jwt = Jwt::parse(token).map_err(TokenError::Invalid)?;
        let key = self.keys.find(jwt.kid(), jwt.algorithm()).await;
        let key = key.map_err(|error| match error {
            KeyError::Unknown(what) => TokenError::Invalid(what),
            KeyError::Unavailable(what) => TokenError::Unavailable(what),
        })?;
        let claims = jwt.verified(&key).map_err(TokenError::Invalid)?;
        let now = seconds();
        claims
            .check(&self.terms.issuer, &self.terms.audience, now)
            .map_err(TokenError::Invalid)?;
        Ok(Person {
            principal: self.principal(&claims)?,
            view: self.view(&claims)?,
        })
    }

    /// Issuer and subject: of the operator's own tenant, so that the operator sees what is asked. No issuer has a `#`, so no two have
    /// the same name.
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

    /// The view of the token's scopes; none where they stand for all tools.
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

    /// The scopes that stand for tools, as a challenge names them.
    pub fn scopes(&self) -> String {
        let scopes: Vec<&str> = self.terms.scopes.keys().map(String::as_str).collect();
        scopes.join(" ")
    }

    /// What clients read to find the authorization server (RFC 9728).
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

    /// Where they read it: its path stands between the host and the path of the audience.
    pub fn metadata_url(&self) -> String {
        let (origin, path) = split(&self.terms.audience);
        format!("{origin}{WELL_KNOWN}{path}")
    }

    /// The path alone.
    pub fn metadata_path(&self) -> String {
        let (_, path) = split(&self.terms.audience);
        format!("{WELL_KNOWN}{path}")
    }

    /// Who makes the tokens.
    pub fn issuer(&self) -> &str {
        &self.terms.issuer
    }

    /// Whether the issuer's keys are there; asks for them where they were not read yet.
    ///
    /// # Errors
    /// Why there are none, as a sentence's end.
    pub async fn keys(&self) -> Result<usize, String> {
        self.keys.count().await
    }
}

/// A URL's origin, and its path without a slash at its end.
pub(crate) fn split(url: &str) -> (&str, &str) {
    let after = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(after..).unwrap_or_default();
    let at = rest.find('/').map_or(url.len(), |at| after + at);
    let (origin, path) = url.split_at(at);
    (origin, path.trim_end_matches('/'))
}

/// Now, in seconds since 1970; where the clock cannot be read, a time at which every token has ended.
fn seconds() -> i64 {
    i64::try_from(haft::clock::now() / 1_000_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
