//! `Grants`: what authorization servers gave haft for one server and one principal.

use std::collections::BTreeMap;

use haft::clock;
use serde::{Deserialize, Serialize};

/// How long before its end a token counts as old, in seconds.
const EARLY: i64 = 30;

/// What authorization servers gave, by the name of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    current: Option<String>,
    by_issuer: BTreeMap<String, Grant>,
    /// Scopes that the server missed while nobody could be asked: the next sign-in asks for them.
    #[serde(default)]
    pub(crate) missed: Vec<String>,
}

/// What one authorization server gave.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The authorization server, as it names itself.
    pub issuer: String,
    /// The server that the token is for.
    pub resource: String,
    pub(crate) client: Registered,
    pub(crate) token_endpoint: String,
    /// Where tokens are given back, where the authorization server takes them.
    #[serde(default)]
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) access_token: Option<String>,
    pub(crate) refresh_token: Option<String>,
    /// When the token ends, in seconds since 1970.
    pub(crate) expires: Option<i64>,
    /// What was asked for.
    pub scopes: Vec<String>,
}

/// As whom an authorization server knows haft.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registered {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    /// Whether the secret goes into the body of a request.
    pub(crate) in_body: bool,
    /// Where a page may send people back to; none where settings brought the name.
    pub(crate) redirect_uri: Option<String>,
}

impl Registered {
    /// The name, for a body beside which the secret goes in a header: some servers look for it there, too.
    pub(crate) fn id_beside_header(&self) -> Option<&str> {
        (self.secret.is_some() && !self.in_body).then_some(self.id.as_str())
    }
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl Grants {
    /// What holds now.
    pub fn current(&self) -> Option<&Grant> {
        self.by_issuer.get(self.current.as_deref()?)
    }

    /// All in it that nobody else may read: tokens, and the secrets by which haft is known.
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

    pub(crate) fn of(&self, issuer: &str) -> Option<&Grant> {
        self.by_issuer.get(issuer)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Grant> {
        self.by_issuer.values()
    }

    /// Takes a grant in, which holds from now on. It was asked for with all that was missed.
    pub(crate) fn put(&mut self, grant: Grant) {
        self.missed.retain(|scope| !grant.scopes.contains(scope));
        self.current = Some(grant.issuer.clone());
        self.by_issuer.insert(grant.issuer.clone(), grant);
    }
}

impl Grant {
    /// Whether its token ends soon, or has ended.
    pub(crate) fn is_old(&self) -> bool {
        self.expires.is_some_and(|end| end - EARLY <= now())
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    i64::try_from(clock::now() / 1_000_000_000).unwrap_or(i64::MAX)
}
