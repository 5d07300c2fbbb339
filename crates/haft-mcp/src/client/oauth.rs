//! `OAuth`: how haft signs in to a server that requires it (OAuth 2.1; MCP, basic/authorization).
//!
//! ```text
//! a refusal ── challenge.rs ──► metadata.rs ── whose server it is, and who lets in ──► flow.rs ── a person agrees ──► grants.rs
//! ```
//!
//! haft trusts nothing that a server says: an authorization server must identify itself by the name it was given, the address of
//! its page is checked before a user sees it, and a token goes only to the server that it was issued for.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use haft::future::BoxFuture;
use http::{Request, Response};
use tokio::time::Instant;
use url::Url;

use crate::client::error::ClientError;
use crate::client::http::{AuthRefusal, Authorize};

mod challenge;
mod flow;
mod grants;
mod metadata;
mod revoke;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod sign_in_tests;

pub use grants::{OAuthGrant, OAuthGrants};

use challenge::Challenge;
use flow::SignInFlow;
use metadata::Discovery;

/// Maximum number of missing scopes to note, and the maximum length of each, in bytes.
const MAX_MISSED: usize = 32;
const MAX_SCOPE: usize = 256;

/// Maximum number of times that a user is asked per connection.
const MAX_VISITS: usize = 3;
/// Pause after an authorization server issued no new token.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);

/// The settings for signing in to a server.
#[derive(Clone, Default)]
pub struct OAuthTerms {
    /// haft's client id at the authorization server; an `https` URL refers to a client metadata document.
    pub client_id: Option<String>,
    /// The client secret.
    pub client_secret: Option<String>,
    /// The only authorization server that haft may use, by its own name; `None` allows any that the server names.
    pub issuer: Option<String>,
    /// Scopes to request in addition to those that the server wants.
    pub scopes: Vec<String>,
}

impl std::fmt::Debug for OAuthTerms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthTerms")
            .field("client_id", &self.client_id)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Fetches documents and tokens from authorization servers.
pub trait Fetch: Send + Sync {
    /// Sends a request and reads its response, up to a maximum size. Does not follow redirects of a POST.
    fn fetch(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>>;
}

/// Storage for the grants of one server and one principal.
pub trait Vault: Send + Sync {
    /// Returns the stored grants.
    ///
    /// # Errors
    /// The storage cannot be read.
    fn load(&self) -> Result<OAuthGrants, String>;

    /// Stores these grants.
    ///
    /// # Errors
    /// The grants cannot be stored.
    fn save(&self, grants: &OAuthGrants) -> Result<(), String>;

    /// Returns a number that changes when any process changes or removes the grants. Checked before each request.
    fn version(&self) -> u64;

    /// Locks the storage against other processes until the returned value is dropped: a refresh token may be valid only once, and
    /// reusing it may invalidate every token derived from it.
    ///
    /// # Errors
    /// The storage cannot be locked, or another process holds the lock for too long.
    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Any + Send>, String>>;
}

/// A user who can be sent to an authorization server's page.
pub trait Visit: Send + Sync {
    /// Returns the URL to which the page sends the user back.
    fn redirect_uri(&self) -> String;

    /// Sends the user to the page of the authorization server with this name; returns the query of the redirect back.
    fn visit<'a>(&'a self, page: Url, issuer: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// Signs in to one server, for one principal.
pub struct OAuth {
    server: Url,
    terms: OAuthTerms,
    fetch: Arc<dyn Fetch>,
    vault: Arc<dyn Vault>,
    /// `None` if no user can be asked now.
    visit: Option<Arc<dyn Visit>>,
    state: tokio::sync::Mutex<OAuthState>,
}

#[derive(Default)]
struct OAuthState {
    grants: Option<OAuthGrants>,
    /// The version of the vault that the grants were read from.
    version: u64,
    visits: usize,
    /// When a refresh last failed, and for which grant.
    failed: Option<(Instant, OAuthGrant)>,
}

impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth")
            .field("server", &self.server.as_str())
            .finish_non_exhaustive()
    }
}

impl OAuth {
    /// Signs in to this server with the grants in the vault.
    ///
    /// # Errors
    /// The address is not a URL.
    pub fn new(
        server: &str,
        terms: OAuthTerms,
        fetch: Arc<dyn Fetch>,
        vault: Arc<dyn Vault>,
    ) -> Result<Self, String> {
        Ok(Self {
            server: Url::parse(server).map_err(|e| e.to_string())?,
            terms,
            fetch,
            vault,
            visit: None,
            state: tokio::sync::Mutex::default(),
        })
    }

    /// Sets a user who can be asked.
    #[must_use]
    pub fn with_visit(mut self, visit: Arc<dyn Visit>) -> Self {
        self.visit = Some(visit);
        self
    }

    fn failed(why: String) -> ClientError {
        ClientError::SignIn(why)
    }

    /// Returns whether the user is yet to be asked: a sign-in asks at least once, whatever is in the vault.
    fn must_ask_user(&self, state: &OAuthState) -> bool {
        self.visit.is_some() && state.visits == 0
    }

    async fn current(&self, state: &mut OAuthState) -> Result<Option<String>, ClientError> {
        if self.must_ask_user(state) {
            return Ok(None);
        }
        // Another process may have obtained another token, or the user may have signed out.
        if state.grants.is_none() || state.version != self.vault.version() {
            self.load(state)?;
        }
        let Some(grant) = self.held(state) else {
            return Ok(None);
        };
        if !grant.is_old() {
            return Ok(grant.access_token);
        }
        // If no new token is available, an expired one may still be accepted: the server decides.
        self.refresh(state, &grant).await;
        Ok(self.held(state).and_then(|grant| grant.access_token))
    }

    /// Returns the current grant, if it is from the authorization server in the settings.
    fn held(&self, state: &OAuthState) -> Option<OAuthGrant> {
        let grant = state.grants.as_ref()?.current()?;
        let issuer = self.terms.issuer.as_deref();
        let is_meant = issuer.is_none_or(|issuer| issuer == grant.issuer);
        is_meant.then(|| grant.clone())
    }

    /// Replaces an expired token; returns whether there is one. If another process was first, uses that process's token.
    async fn refresh(&self, state: &mut OAuthState, grant: &OAuthGrant) -> bool {
        let paused =
            |(when, of): &(Instant, OAuthGrant)| of == grant && when.elapsed() < FAILURE_PAUSE;
        if state.failed.as_ref().is_some_and(paused) {
            return false;
        }
        match self.renew(state, grant).await {
            Ok(true) => {
                state.failed = None;
                true
            }
            came => {
                let why = came.err().unwrap_or_default();
                tracing::debug!(%why, "a token was not renewed");
                state.failed = Some((Instant::now(), grant.clone()));
                false
            }
        }
    }

    async fn renew(&self, state: &mut OAuthState, grant: &OAuthGrant) -> Result<bool, String> {
        let _held = self.vault.hold().await?;
        self.load(state).map_err(|error| error.to_string())?;
        let Some(now) = self.held(state) else {
            return Ok(false);
        };
        if now.access_token != grant.access_token && !now.is_old() {
            return Ok(true);
        }
        match flow::refresh(&*self.fetch, &now).await? {
            Some(fresh) => {
                let stored = self.keep(state, fresh);
                stored.map(|()| true).map_err(|error| error.to_string())
            }
            None => Ok(false),
        }
    }

    fn keep(&self, state: &mut OAuthState, grant: OAuthGrant) -> Result<(), ClientError> {
        let mut grants = state.grants.take().unwrap_or_default();
        grants.put(grant);
        let saved = self.vault.save(&grants);
        state.grants = Some(grants);
        state.version = self.vault.version();
        saved.map_err(Self::failed)
    }

    fn load(&self, state: &mut OAuthState) -> Result<(), ClientError> {
        // Read the version first: changes made while loading cause another load.
        state.version = self.vault.version();
        state.grants = Some(self.vault.load().map_err(Self::failed)?);
        Ok(())
    }

    async fn sign_in_again(&self, refusal: &AuthRefusal) -> Result<bool, ClientError> {
        let mut state = self.state.lock().await;
        let state = &mut *state;
        let refused = refusal.token.as_deref();
        let is_other = |grant: &Option<OAuthGrant>| {
            let token = grant
                .as_ref()
                .and_then(|grant| grant.access_token.as_deref());
            token.is_some() && token != refused
        };
        // Another request was refused first and has already handled it.
        if is_other(&self.held(state)) {
            return Ok(true);
        }
        let is_first = self.must_ask_user(state);
        self.load(state)?;
        let held = self.held(state);
        if is_other(&held) && !is_first {
            return Ok(true);
        }
        let challenge = Challenge::read(&refusal.challenge);
        let wants_more = challenge.error.as_deref() == Some("insufficient_scope");
        if refusal.status == 403 && !wants_more {
            return Ok(false);
        }
        if let Some(grant) = held.filter(|_| !wants_more && !is_first)
            && self.refresh(state, &grant).await
        {
            return Ok(true);
        }
        let Some(visit) = &self.visit else {
            if wants_more {
                self.note_missed(state, &challenge).await?;
            }
            return Ok(false);
        };
        self.ask(state, &challenge, &**visit).await
    }

    /// Notes the scopes that the server finds missing: the next sign-in requests them.
    async fn note_missed(
        &self,
        state: &mut OAuthState,
        challenge: &Challenge,
    ) -> Result<(), ClientError> {
        let _held = self.vault.hold().await.map_err(Self::failed)?;
        self.load(state)?;
        let grants = state.grants.get_or_insert_default();
        let scopes = challenge.scope.as_deref().unwrap_or_default();
        let before = grants.missed.len();
        for scope in scopes.split(' ').filter(|scope| !scope.is_empty()) {
            let is_new = !grants.missed.iter().any(|missed| missed == scope);
            if is_new && scope.len() <= MAX_SCOPE && grants.missed.len() < MAX_MISSED {
                grants.missed.push(scope.to_owned());
            }
        }
        if grants.missed.len() == before {
            return Ok(());
        }
        let saved = self.vault.save(grants);
        state.version = self.vault.version();
        saved.map_err(Self::failed)
    }

    /// Revokes the tokens at the authorization servers that support it; returns whether any did.
    ///
    /// # Errors
    /// The vault cannot be read, or an authorization server refused to revoke a token.
    pub async fn revoke(&self) -> Result<bool, String> {
        let grants = self.vault.load()?;
        let mut is_revoked = false;
        for grant in grants.all() {
            is_revoked |= revoke::revoke(&*self.fetch, grant).await?;
        }
        Ok(is_revoked)
    }

    /// Asks the user; returns whether there is a new token.
    async fn ask(
        &self,
        state: &mut OAuthState,
        challenge: &Challenge,
        visit: &dyn Visit,
    ) -> Result<bool, ClientError> {
        if state.visits >= MAX_VISITS {
            return Ok(false);
        }
        let issuer = self.terms.issuer.as_deref();
        let found = Discovery::of(&*self.fetch, &self.server, challenge, issuer).await;
        let found = found.map_err(Self::failed)?;
        let grants = state.grants.get_or_insert_default();
        let before = grants.of(&found.server.issuer).cloned();
        let mut wanted = found.scopes(&self.terms, challenge, before.as_ref());
        if !grants.missed.is_empty() {
            // Together with the scopes it already has, which would otherwise be missing next.
            let held = before.iter().flat_map(|grant| &grant.scopes);
            let more: Vec<String> = grants.missed.iter().chain(held).cloned().collect();
            let more = more.into_iter().filter(|scope| !wanted.contains(scope));
            let more: BTreeSet<String> = more.collect();
            wanted.extend(more);
        }
        let has_all = |grant: &OAuthGrant| {
            grant.access_token.is_some() && wanted.iter().all(|scope| grant.scopes.contains(scope))
        };
        let wants_more = challenge.error.as_deref() == Some("insufficient_scope");
        // What it wants was already requested, so asking again would change nothing.
        if wants_more && before.as_ref().is_some_and(has_all) {
            return Ok(false);
        }
        state.visits += 1;
        let flow = SignInFlow {
            fetch: &*self.fetch,
            terms: &self.terms,
            found: &found,
            visit,
        };
        let grant = flow.run(before.as_ref(), wanted).await;
        self.keep(state, grant.map_err(Self::failed)?)?;
        Ok(true)
    }
}

impl Authorize for OAuth {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, ClientError>> {
        Box::pin(async move {
            let mut state = self.state.lock().await;
            self.current(&mut state).await
        })
    }

    fn refused<'a>(&'a self, refusal: &'a AuthRefusal) -> BoxFuture<'a, Result<bool, ClientError>> {
        Box::pin(self.sign_in_again(refusal))
    }
}
