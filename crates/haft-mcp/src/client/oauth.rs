//! `OAuth`: how haft signs in at a server that wants to know who asks (OAuth 2.1; MCP, basic/authorization).
//!
//! ```text
//! a refusal ── challenge.rs ──► metadata.rs ── whose server it is, and who lets in ──► flow.rs ── a person agrees ──► grants.rs
//! ```
//!
//! Nothing that a server says is believed: an authorization server must name itself as it was named, the address of its page is
//! looked at before a person sees it, and a token goes to the server for which it was given, and to no other.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use haft::future::BoxFuture;
use http::{Request, Response};
use tokio::time::Instant;
use url::Url;

use crate::client::error::ClientError;
use crate::client::http::{Authorize, Refusal};

mod challenge;
mod flow;
mod grants;
mod metadata;
mod revoke;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod sign_in_tests;

pub use grants::{Grant, Grants};

use challenge::Challenge;
use flow::Flow;
use metadata::Discovery;

/// Most scopes that are noted as missed, and the longest of them, in bytes.
const MOST_MISSED: usize = 32;
const LONGEST_SCOPE: usize = 256;

/// Requests to a person in the life of one connection.
const MOST_VISITS: usize = 3;
/// How long an authorization server is left alone that gave no other token.
const PAUSE: Duration = Duration::from_secs(30);

/// What settings say of signing in at a server.
#[derive(Clone, Default)]
pub struct OAuthTerms {
    /// The name by which the authorization server knows haft; an `https` URL is that of a client metadata document.
    pub client_id: Option<String>,
    /// The secret that belongs to it.
    pub client_secret: Option<String>,
    /// The only authorization server that haft signs in by, as it names itself; whichever the server names where there is none.
    pub issuer: Option<String>,
    /// What is asked for beside what the server wants.
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

/// Fetches what authorization servers say.
pub trait Fetch: Send + Sync {
    /// Sends a request and reads its answer, of a bounded size. Redirects of a POST are not followed.
    fn fetch(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>>;
}

/// Where grants are kept: those of one server and one principal.
pub trait Vault: Send + Sync {
    /// What is there now.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&self) -> Result<Grants, String>;

    /// Keeps these from now on.
    ///
    /// # Errors
    /// They cannot be kept.
    fn save(&self, grants: &Grants) -> Result<(), String>;

    /// A number that is another one once what is there was changed or forgotten, by whichever process. Looked at before each
    /// request.
    fn version(&self) -> u64;

    /// Holds what is there against other processes until what this returns is dropped: a token by which another one is had may
    /// count once, and who sends it again may lose all that it led to.
    ///
    /// # Errors
    /// It cannot be held, or another process holds it for long.
    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Any + Send>, String>>;
}

/// A person who can be sent to the page of an authorization server.
pub trait Visit: Send + Sync {
    /// Where the page sends the person back to.
    fn redirect_uri(&self) -> String;

    /// Sends the person to the page of the authorization server of this name; the query with which they come back.
    fn visit<'a>(&'a self, page: Url, issuer: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// Signs in at one server, for one principal.
pub struct OAuth {
    server: Url,
    terms: OAuthTerms,
    fetch: Arc<dyn Fetch>,
    vault: Arc<dyn Vault>,
    /// None where nobody can be asked now.
    visit: Option<Arc<dyn Visit>>,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    grants: Option<Grants>,
    /// The version of the vault that they are of.
    version: u64,
    visits: usize,
    /// When no other token was to be had, and for which.
    failed: Option<(Instant, Grant)>,
}

impl std::fmt::Debug for OAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuth")
            .field("server", &self.server.as_str())
            .finish_non_exhaustive()
    }
}

impl OAuth {
    /// Signs in at this server, by what is in the vault.
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

    /// The same with a person who can be asked.
    #[must_use]
    pub fn with_visit(mut self, visit: Arc<dyn Visit>) -> Self {
        self.visit = Some(visit);
        self
    }

    fn failed(why: String) -> ClientError {
        ClientError::SignIn(why)
    }

    /// Whether the person is still to be asked: who signs in means to, whatever is in the vault.
    fn is_first(&self, state: &State) -> bool {
        self.visit.is_some() && state.visits == 0
    }

    async fn current(&self, state: &mut State) -> Result<Option<String>, ClientError> {
        if self.is_first(state) {
            return Ok(None);
        }
        // Another process may have taken another token, or the user may have signed out.
        if state.grants.is_none() || state.version != self.vault.version() {
            self.load(state)?;
        }
        let Some(grant) = self.held(state) else {
            return Ok(None);
        };
        if !grant.is_old() {
            return Ok(grant.access_token);
        }
        // A token whose time is over may still be taken where there is no way to another one: the server decides.
        self.refresh(state, &grant).await;
        Ok(self.held(state).and_then(|grant| grant.access_token))
    }

    /// What holds now, by the authorization server that settings name.
    fn held(&self, state: &State) -> Option<Grant> {
        let grant = state.grants.as_ref()?.current()?;
        let issuer = self.terms.issuer.as_deref();
        let is_meant = issuer.is_none_or(|issuer| issuer == grant.issuer);
        is_meant.then(|| grant.clone())
    }

    /// Takes another token for one that is over; whether there is one. Where another process was first, it is that one's.
    async fn refresh(&self, state: &mut State, grant: &Grant) -> bool {
        let paused = |(when, of): &(Instant, Grant)| of == grant && when.elapsed() < PAUSE;
        if state.failed.as_ref().is_some_and(paused) {
            return false;
        }
        match self.renewed(state, grant).await {
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

    async fn renewed(&self, state: &mut State, grant: &Grant) -> Result<bool, String> {
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
                let kept = self.keep(state, fresh);
                kept.map(|()| true).map_err(|error| error.to_string())
            }
            None => Ok(false),
        }
    }

    fn keep(&self, state: &mut State, grant: Grant) -> Result<(), ClientError> {
        let mut grants = state.grants.take().unwrap_or_default();
        grants.put(grant);
        let saved = self.vault.save(&grants);
        state.grants = Some(grants);
        state.version = self.vault.version();
        saved.map_err(Self::failed)
    }

    fn load(&self, state: &mut State) -> Result<(), ClientError> {
        // What changes while it is read is read again.
        state.version = self.vault.version();
        state.grants = Some(self.vault.load().map_err(Self::failed)?);
        Ok(())
    }

    async fn another(&self, refusal: &Refusal) -> Result<bool, ClientError> {
        let mut state = self.state.lock().await;
        let state = &mut *state;
        let refused = refusal.token.as_deref();
        let is_other = |grant: &Option<Grant>| {
            let token = grant
                .as_ref()
                .and_then(|grant| grant.access_token.as_deref());
            token.is_some() && token != refused
        };
        // Another request was refused first, and has seen to it.
        if is_other(&self.held(state)) {
            return Ok(true);
        }
        let is_first = self.is_first(state);
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

    /// Notes the scopes that the server misses: the next sign-in asks for them.
    async fn note_missed(
        &self,
        state: &mut State,
        challenge: &Challenge,
    ) -> Result<(), ClientError> {
        let _held = self.vault.hold().await.map_err(Self::failed)?;
        self.load(state)?;
        let grants = state.grants.get_or_insert_default();
        let scopes = challenge.scope.as_deref().unwrap_or_default();
        let before = grants.missed.len();
        for scope in scopes.split(' ').filter(|scope| !scope.is_empty()) {
            let is_new = !grants.missed.iter().any(|missed| missed == scope);
            if is_new && scope.len() <= LONGEST_SCOPE && grants.missed.len() < MOST_MISSED {
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

    /// Gives the tokens back to the authorization servers that take them; whether one of them did.
    ///
    /// # Errors
    /// What is in the vault cannot be read, or an authorization server did not take a token.
    pub async fn revoke(&self) -> Result<bool, String> {
        let grants = self.vault.load()?;
        let mut is_revoked = false;
        for grant in grants.all() {
            is_revoked |= revoke::revoke(&*self.fetch, grant).await?;
        }
        Ok(is_revoked)
    }

    /// Asks a person; whether there is another token now.
    async fn ask(
        &self,
        state: &mut State,
        challenge: &Challenge,
        visit: &dyn Visit,
    ) -> Result<bool, ClientError> {
        if state.visits >= MOST_VISITS {
            return Ok(false);
        }
        let issuer = self.terms.issuer.as_deref();
        let found = Discovery::of(&*self.fetch, &self.server, challenge, issuer).await;
        let found = found.map_err(Self::failed)?;
        let grants = state.grants.get_or_insert_default();
        let before = grants.of(&found.server.issuer).cloned();
        let mut wanted = found.scopes(&self.terms, challenge, before.as_ref());
        if !grants.missed.is_empty() {
            // With what it has already, or that would be missed next.
            let held = before.iter().flat_map(|grant| &grant.scopes);
            let more: Vec<String> = grants.missed.iter().chain(held).cloned().collect();
            let more = more.into_iter().filter(|scope| !wanted.contains(scope));
            let more: BTreeSet<String> = more.collect();
            wanted.extend(more);
        }
        let has_all = |grant: &Grant| {
            grant.access_token.is_some() && wanted.iter().all(|scope| grant.scopes.contains(scope))
        };
        let wants_more = challenge.error.as_deref() == Some("insufficient_scope");
        // What it wants was asked for already: asking again changes nothing.
        if wants_more && before.as_ref().is_some_and(has_all) {
            return Ok(false);
        }
        state.visits += 1;
        let flow = Flow {
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

    fn refused<'a>(&'a self, refusal: &'a Refusal) -> BoxFuture<'a, Result<bool, ClientError>> {
        Box::pin(self.another(refusal))
    }
}
