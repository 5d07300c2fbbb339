//! Tokens renewed, shared by processes and removed, with an authorization server that detects a repeated renewal.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use haft::future::BoxFuture;
use http::{Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::{Authorize as _, Fetch, OAuth, OAuthGrants, OAuthTerms, Vault};

/// An authorization server that accepts each refresh token once.
#[derive(Default)]
struct Server {
    used: Mutex<BTreeSet<String>>,
    asked: Mutex<usize>,
    is_down: bool,
}

impl Fetch for Server {
    fn fetch(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>> {
        Box::pin(async move {
            *self.asked.lock() += 1;
            // Give other tasks a turn meanwhile.
            tokio::task::yield_now().await;
            let form = url::form_urlencoded::parse(request.body());
            let renewal = form.into_owned().find(|(name, _)| name == "refresh_token");
            let renewal = renewal.unwrap().1;
            let number: u32 = renewal.strip_prefix("renewal-").unwrap().parse().unwrap();
            let is_first = self.used.lock().insert(renewal);
            let (status, body) = if is_first && !self.is_down {
                let number = number + 1;
                let token = json!({"access_token": format!("token-{number}"), "token_type": "bearer",
                    "refresh_token": format!("renewal-{number}"), "expires_in": 3600});
                (StatusCode::OK, token)
            } else {
                (StatusCode::BAD_REQUEST, json!({"error": "invalid_grant"}))
            };
            let mut response = Response::new(body.to_string().into_bytes());
            *response.status_mut() = status;
            Ok(response)
        })
    }
}

/// The storage that several processes share.
#[derive(Default)]
struct Shared {
    kept: Mutex<(u64, OAuthGrants)>,
    held: Arc<tokio::sync::Mutex<()>>,
}

impl Vault for Shared {
    fn load(&self) -> Result<OAuthGrants, String> {
        Ok(self.kept.lock().1.clone())
    }

    fn save(&self, grants: &OAuthGrants) -> Result<(), String> {
        let mut kept = self.kept.lock();
        *kept = (kept.0 + 1, grants.clone());
        Ok(())
    }

    fn version(&self) -> u64 {
        self.kept.lock().0
    }

    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Any + Send>, String>> {
        Box::pin(async {
            let held: OwnedMutexGuard<()> = Arc::clone(&self.held).lock_owned().await;
            Ok(Box::new(held) as Box<dyn Any + Send>)
        })
    }
}

/// Returns a vault that contains the first token, which has expired.
fn vault() -> Arc<Shared> {
    let grants = json!({"current": "https://login.example", "by_issuer": {"https://login.example": {
        "issuer": "https://login.example", "resource": "https://a.example/mcp",
        "client": {"id": "haft", "secret": null, "in_body": false, "redirect_uri": null},
        "token_endpoint": "https://login.example/token", "access_token": "token-1",
        "refresh_token": "renewal-1", "expires": 1, "scopes": []}}});
    let shared = Shared::default();
    shared
        .save(&serde_json::from_value(grants).unwrap())
        .unwrap();
    Arc::new(shared)
}

fn oauth(server: &Arc<Server>, vault: &Arc<Shared>, terms: OAuthTerms) -> OAuth {
    let (fetch, vault) = (Arc::clone(server), Arc::clone(vault));
    OAuth::new("https://a.example/mcp", terms, fetch, vault).unwrap()
}

#[tokio::test]
async fn processes_that_renew_the_same_token_do_so_once() {
    let (server, vault) = (Arc::<Server>::default(), vault());
    let processes: Vec<OAuth> = (0..4)
        .map(|_| oauth(&server, &vault, OAuthTerms::default()))
        .collect();
    let [a, b, c, d] = processes.as_slice() else {
        unreachable!()
    };
    let (a, b, c, d) = tokio::join!(a.token(), b.token(), c.token(), d.token());
    for token in [a, b, c, d] {
        assert_eq!(token.unwrap().as_deref(), Some("token-2"));
    }
    assert_eq!(*server.asked.lock(), 1);
}

#[tokio::test]
async fn a_token_that_was_forgotten_is_used_no_more_by_those_who_had_it() {
    let (server, vault) = (Arc::<Server>::default(), vault());
    let oauth = oauth(&server, &vault, OAuthTerms::default());
    assert_eq!(oauth.token().await.unwrap().as_deref(), Some("token-2"));
    vault.save(&OAuthGrants::default()).unwrap();
    assert_eq!(oauth.token().await.unwrap(), None);
    assert_eq!(vault.load().unwrap(), OAuthGrants::default());
}

#[tokio::test(start_paused = true)]
async fn an_authorization_server_that_gives_no_token_is_not_asked_by_every_request() {
    let server = Arc::new(Server {
        is_down: true,
        ..Server::default()
    });
    let vault = vault();
    let oauth = oauth(&server, &vault, OAuthTerms::default());
    for _ in 0..20 {
        // The server decides whether it still accepts the old token.
        assert_eq!(oauth.token().await.unwrap().as_deref(), Some("token-1"));
    }
    assert_eq!(*server.asked.lock(), 1);
    tokio::time::advance(super::FAILURE_PAUSE).await;
    oauth.token().await.unwrap();
    assert_eq!(*server.asked.lock(), 2);
}

#[tokio::test]
async fn what_another_authorization_server_gave_is_not_used_where_settings_name_one() {
    for (issuer, expect) in [
        ("https://login.example", Some("token-2")),
        ("https://other.example", None),
    ] {
        let terms = OAuthTerms {
            issuer: Some(issuer.to_owned()),
            ..OAuthTerms::default()
        };
        let oauth = oauth(&Arc::default(), &vault(), terms);
        assert_eq!(oauth.token().await.unwrap().as_deref(), expect, "{issuer}");
    }
}
