//! Signing in to external servers: where grants are stored, how authorization servers are reached, and how the user gets to their pages and
//! back.

use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft_builtins::web::http::{FetchLimits, Http, HttpReply};
use haft_mcp::client::oauth::{Fetch, OAuth, OAuthTerms};
use http::{Method, Request, Response};

mod browser;
mod grant_file;

pub(crate) use browser::Browser;
pub(crate) use grant_file::GrantFile;

/// Maximum size of an authorization server's response, in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;

/// How haft signs in to one server.
#[derive(Debug, Clone)]
pub(crate) struct SignIn {
    server: String,
    terms: OAuthTerms,
    reach: SignInHttp,
    pub(crate) file: Arc<GrantFile>,
}

/// How authorization servers are reached: those on the server's own host at any address, since the settings name that host; all others
/// only at public addresses, since the server names them.
#[derive(Debug, Clone)]
pub(crate) struct SignInHttp {
    named: Http,
    public: Http,
    host: String,
}

impl SignIn {
    pub(crate) fn new(server: &str, terms: OAuthTerms, reach: SignInHttp, file: GrantFile) -> Self {
        Self {
            server: server.to_owned(),
            terms,
            reach,
            file: Arc::new(file),
        }
    }

    /// Returns what authorizes requests with stored grants; with a browser, it can also ask the user.
    ///
    /// # Errors
    /// The server's address is invalid.
    pub(crate) fn oauth(&self, browser: Option<Arc<Browser>>) -> Result<OAuth, String> {
        let fetch = Arc::new(self.reach.clone());
        let vault = Arc::clone(&self.file);
        let oauth = OAuth::new(&self.server, self.terms.clone(), fetch, vault)?;
        Ok(match browser {
            Some(browser) => oauth.with_visit(browser),
            None => oauth,
        })
    }
}

impl SignInHttp {
    pub(crate) fn new(named: Http, public: Http, host: &str) -> Self {
        let limits = || FetchLimits {
            max_bytes: MAX_RESPONSE,
            ..FetchLimits::default()
        };
        Self {
            named: named.with_limits(limits()),
            public: public.with_limits(limits()),
            host: host.to_owned(),
        }
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<HttpReply, String> {
        let is_here = request.uri().host() == Some(&*self.host);
        let http = if is_here { &self.named } else { &self.public };
        let sent = if request.method() == Method::GET {
            let accept = ("accept", "application/json");
            http.get(&request.uri().to_string(), &[accept]).await
        } else {
            http.send(request.map(Bytes::from)).await
        };
        sent.map_err(|e| e.to_string())
    }
}

impl Fetch for SignInHttp {
    fn fetch(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>> {
        Box::pin(async move {
            let reply = self.send(request).await?;
            if reply.cut.is_some() {
                return Err(format!(
                    "what {} answers is over {MAX_RESPONSE} bytes",
                    reply.url
                ));
            }
            let mut response = Response::new(reply.body.to_vec());
            *response.status_mut() =
                http::StatusCode::from_u16(reply.status).map_err(|e| e.to_string())?;
            *response.headers_mut() = reply.headers;
            Ok(response)
        })
    }
}
