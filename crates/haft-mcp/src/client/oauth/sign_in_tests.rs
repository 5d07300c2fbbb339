//! Sign-ins with an authorization server that needs no network.

use std::any::Any;
use std::sync::Arc;

use haft::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;
use url::Url;

use super::{Fetch, OAuth, OAuthGrants, OAuthTerms, Vault, Visit};
use crate::client::http::{AuthRefusal, Authorize};

const SERVER: &str = "https://tickets.example/mcp";

/// An authorization server that records its requests, and a user who agrees to everything.
#[derive(Debug, Default)]
struct Desk {
    pages: Mutex<Vec<Url>>,
    forms: Mutex<Vec<String>>,
    /// The status of a response to a revocation.
    status: Mutex<u16>,
    grants: Mutex<OAuthGrants>,
}

impl Fetch for Desk {
    fn fetch(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>> {
        let path = request.uri().path().to_owned();
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let (status, text) = match &*path {
            "/.well-known/oauth-protected-resource/mcp" => (
                200,
                r#"{"resource":"https://tickets.example/mcp","authorization_servers":["https://login.example"],"scopes_supported":["read"]}"#,
            ),
            "/.well-known/oauth-authorization-server" => (
                200,
                r#"{"issuer":"https://login.example","authorization_endpoint":"https://login.example/authorize","token_endpoint":"https://login.example/token","revocation_endpoint":"https://login.example/revoke","code_challenge_methods_supported":["S256"]}"#,
            ),
            "/token" => (
                200,
                r#"{"access_token":"at","refresh_token":"rt","token_type":"Bearer","expires_in":3600}"#,
            ),
            "/revoke" => (*self.status.lock(), ""),
            _ => (404, ""),
        };
        if path == "/revoke" {
            let basic = request.headers().get("authorization");
            let basic = basic.map_or("", |value| value.to_str().unwrap());
            self.forms.lock().push(format!("{basic} {body}"));
        }
        let mut response = Response::new(text.as_bytes().to_vec());
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        Box::pin(std::future::ready(Ok(response)))
    }
}

impl Vault for Desk {
    fn load(&self) -> Result<OAuthGrants, String> {
        Ok(self.grants.lock().clone())
    }

    fn save(&self, grants: &OAuthGrants) -> Result<(), String> {
        *self.grants.lock() = grants.clone();
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }

    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Any + Send>, String>> {
        Box::pin(std::future::ready(Ok(Box::new(()) as Box<dyn Any + Send>)))
    }
}

impl Visit for Desk {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:1/back".to_owned()
    }

    fn visit<'a>(&'a self, page: Url, _: &'a str) -> BoxFuture<'a, Result<String, String>> {
        let state = page.query_pairs().find(|(name, _)| name == "state");
        let query = format!("code=c&state={}", state.unwrap().1);
        self.pages.lock().push(page);
        Box::pin(std::future::ready(Ok(query)))
    }
}

fn oauth(desk: &Arc<Desk>, asks: bool) -> OAuth {
    let terms = OAuthTerms {
        client_id: Some("haft at:example".into()),
        client_secret: Some("s/1".into()),
        issuer: Some("https://login.example".into()),
        ..OAuthTerms::default()
    };
    let oauth = OAuth::new(SERVER, terms, Arc::clone(desk) as _, Arc::clone(desk) as _).unwrap();
    if asks {
        oauth.with_visit(Arc::clone(desk) as _)
    } else {
        oauth
    }
}

fn refusal(status: u16, challenge: &str, token: Option<&str>) -> AuthRefusal {
    AuthRefusal {
        status,
        challenge: challenge.to_owned(),
        token: token.map(str::to_owned),
    }
}

/// Returns the scopes of the page that the user was sent to last.
fn scopes(desk: &Desk) -> Vec<String> {
    let pages = desk.pages.lock();
    let mut query = pages.last().unwrap().query_pairs();
    let scope = query.find(|(name, _)| name == "scope").unwrap().1;
    let mut scopes: Vec<String> = scope.split(' ').map(str::to_owned).collect();
    scopes.sort();
    scopes
}

#[tokio::test]
async fn scopes_that_were_missed_while_nobody_could_be_asked_are_asked_for_at_the_next_sign_in() {
    let desk = Arc::new(Desk::default());
    let signed_in = oauth(&desk, true)
        .refused(&refusal(401, "Bearer", None))
        .await;
    assert!(signed_in.unwrap());
    assert_eq!(scopes(&desk), ["read"]);

    let serving = oauth(&desk, false);
    assert_eq!(serving.token().await.unwrap().as_deref(), Some("at"));
    let more = r#"Bearer error="insufficient_scope", scope="write admin""#;
    for _ in 0..2 {
        let let_in = serving.refused(&refusal(403, more, Some("at"))).await;
        assert!(!let_in.unwrap());
    }
    assert_eq!(desk.grants.lock().missed, ["write", "admin"]);
    let many: Vec<String> = (0..100).map(|nth| format!("s{nth}")).collect();
    let many = format!(
        r#"Bearer error="insufficient_scope", scope="{}""#,
        many.join(" ")
    );
    // A 401 does not say that scopes are missing either.
    let none = r#"Bearer error="invalid_token", scope="other""#;
    for challenge in [(401, none), (403, none)] {
        let other = refusal(challenge.0, challenge.1, Some("x"));
        oauth(&desk, false).refused(&other).await.unwrap();
    }
    assert_eq!(desk.grants.lock().missed.len(), 2);

    let signed_in = oauth(&desk, true)
        .refused(&refusal(401, "Bearer", None))
        .await;
    assert!(signed_in.unwrap());
    assert_eq!(scopes(&desk), ["admin", "read", "write"]);
    assert!(desk.grants.lock().missed.is_empty());

    let bounded = oauth(&desk, false);
    bounded.token().await.unwrap();
    bounded
        .refused(&refusal(403, &many, Some("at")))
        .await
        .unwrap();
    assert_eq!(desk.grants.lock().missed.len(), 32);
}

#[tokio::test]
async fn tokens_are_given_back_the_one_that_makes_others_first() {
    let desk = Arc::new(Desk::default());
    assert!(
        !oauth(&desk, false).revoke().await.unwrap(),
        "there are none"
    );
    let signed_in = oauth(&desk, true)
        .refused(&refusal(401, "Bearer", None))
        .await;
    assert!(signed_in.unwrap());
    *desk.status.lock() = 503;
    let why = oauth(&desk, false).revoke().await.unwrap_err();
    assert!(why.contains("HTTP 503"), "{why}");
    *desk.status.lock() = 400;
    oauth(&desk, false).revoke().await.unwrap_err();
    let last = desk.forms.lock().pop().unwrap();
    assert!(last.ends_with("&client_secret=s%2F1"), "{last}");
    desk.forms.lock().clear();
    *desk.status.lock() = 200;
    assert!(oauth(&desk, false).revoke().await.unwrap());
    // `haft+at%3Aexample:s%2F1`
    let basic = "Basic aGFmdCthdCUzQWV4YW1wbGU6cyUyRjE=";
    assert_eq!(
        *desk.forms.lock(),
        [
            format!("{basic} token=rt&token_type_hint=refresh_token&client_id=haft+at%3Aexample"),
            format!("{basic} token=at&token_type_hint=access_token&client_id=haft+at%3Aexample"),
        ]
    );
}
