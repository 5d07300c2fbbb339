//! `OAuthGrants`: what authorization servers have issued to haft for one server and one principal.

use std::collections::BTreeMap;

use haft::clock;
use serde::{Deserialize, Serialize};

/// How long before its expiry a token counts as old, in seconds.
const EXPIRY_MARGIN: i64 = 30;

/// The grants, by authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthGrants {
    current: Option<String>,
    by_issuer: BTreeMap<String, OAuthGrant>,
    /// Scopes that were missing while no user could be asked: the next sign-in requests them.
    #[serde(default)]
    pub(crate) missed: Vec<String>,
}

/// A grant from one authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthGrant {
    /// The authorization server's name for itself.
    pub issuer: String,
    /// The server that the token is for.
    pub resource: String,
    pub(crate) client: ClientRegistration,
    pub(crate) token_endpoint: String,
    /// Where to revoke tokens, if the authorization server supports it.
    #[serde(default)]
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) access_token: Option<String>,
    pub(crate) refresh_token: Option<String>,
    /// The token's expiry, in seconds since 1970.
    pub(crate) expires: Option<i64>,
    /// The scopes that were requested.
    pub scopes: Vec<String>,
}

/// haft's registration at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientRegistration {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    /// Whether the secret goes in the body of a request.
    pub(crate) in_body: bool,
    /// The registered redirect URI; `None` if the client id came from the settings.
    pub(crate) redirect_uri: Option<String>,
}

impl ClientRegistration {
    /// Returns the client id to repeat in the body when the secret goes in a header: some servers expect it there as well.
    pub(crate) fn id_beside_header(&self) -> Option<&str> {
        (self.secret.is_some() && !self.in_body).then_some(self.id.as_str())
    }
}

impl std::fmt::Debug for OAuthGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthGrant")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl OAuthGrants {
    /// Returns the current grant.
    pub fn current(&self) -> Option<&OAuthGrant> {
        self.by_issuer.get(self.current.as_deref()?)
    }

    /// Returns all secrets in the grants: tokens and client secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let all = self.by_issuer.values().flat_map(|grant| {
            [
                grant.access_token.as_deref(),
                grant.refresh_token.as_deref(),
                grant.client.secret.as_deref(),
            ]
        });
        all.flatten()
    }

    pub(crate) fn of(&self, issuer: &str) -> Option<&OAuthGrant> {
        self.by_issuer.get(issuer)
    }

    /// Returns the grants of every authorization server, not only the current one.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OAuthGrant> {
        self.by_issuer.values()
    }

    /// Adds a grant and makes it the current one. Its request included all missing scopes.
    pub(crate) fn put(&mut self, grant: OAuthGrant) {
        self.missed.retain(|scope| !grant.scopes.contains(scope));
        self.current = Some(grant.issuer.clone());
        self.by_issuer.insert(grant.issuer.clone(), grant);
    }
}

impl OAuthGrant {
    /// Returns whether its token has expired or soon will.
    pub(crate) fn is_old(&self) -> bool {
        self.expires.is_some_and(|end| end - EXPIRY_MARGIN <= now())
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> i64 {
    i64::try_from(clock::now() / 1_000_000_000).unwrap_or(i64::MAX)
}
