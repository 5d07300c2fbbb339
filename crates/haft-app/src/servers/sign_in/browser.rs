//! `Browser`: sends the user to a page, and waits for their return on a port of this machine that listens for nothing else (RFC 8252, 7.3).

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use haft::future::BoxFuture;
use haft_mcp::client::oauth::Visit;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

/// How long the user may take.
const USER_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a request may take to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait after a connection could not be accepted.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Maximum number of simultaneous connections.
const MAX_CONNECTIONS: usize = 64;
/// The path that the page redirects to.
const REDIRECT_PATH: &str = "/callback";

/// The user's way to a page and back.
pub(crate) struct Browser {
    listener: TcpListener,
    port: u16,
    say: Box<ShowPage>,
}

/// Tells the user which page to open, and which authorization server it belongs to.
type ShowPage = dyn Fn(&str, &str) + Send + Sync;

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Browser")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Browser {
    /// Listens on a free port of this machine; `say` tells the user where to go.
    ///
    /// # Errors
    /// There is no free port.
    pub(crate) async fn new(say: impl Fn(&str, &str) + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            port,
            say: Box::new(say),
        })
    }

    /// Waits for the user's return with this state, and returns the query.
    async fn wait_for_redirect(&self, state: &str) -> io::Result<String> {
        // Browsers open connections that they do not use: an idle one must not block the others.
        let mut arrived = JoinSet::new();
        loop {
            tokio::select! {
                stream = self.listener.accept(), if arrived.len() < MAX_CONNECTIONS => {
                    let Ok((stream, _)) = stream else {
                        tokio::time::sleep(RETRY_AFTER).await;
                        continue;
                    };
                    let state = state.to_owned();
                    arrived.spawn(timeout(REQUEST_TIMEOUT, answer(stream, state)));
                }
                Some(answered) = arrived.join_next() => {
                    if let Ok(Ok(Ok(Some(query)))) = answered {
                        return Ok(query);
                    }
                }
            }
        }
    }
}

impl Visit for Browser {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{REDIRECT_PATH}", self.port)
    }

    fn visit<'a>(&'a self, page: Url, issuer: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let state = page.query_pairs().find(|(name, _)| name == "state");
            let state = state
                .map(|(_, state)| state.into_owned())
                .unwrap_or_default();
            (self.say)(page.as_str(), issuer);
            match timeout(USER_TIMEOUT, self.wait_for_redirect(&state)).await {
                Ok(query) => query.map_err(|e| format!("wait for the page's answer: {e}")),
                Err(_) => Err(format!(
                    "the sign-in was not completed within {} s",
                    USER_TIMEOUT.as_secs()
                )),
            }
        })
    }
}

/// Reads one request and answers it; returns its query if it is the expected one.
async fn answer(mut stream: TcpStream, state: String) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head);
    let query = query(head.lines().next().unwrap_or_default(), &state);
    let (status, text) = match &query {
        Some(_) => (
            "200 OK",
            "haft has received the answer. You can close this page.",
        ),
        None => ("404 Not Found", "There is nothing here."),
    };
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(query)
}

/// Returns the query in a request's first line, if the request is the redirect from the page.
fn query(line: &str, state: &str) -> Option<String> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let (path, query) = target.split_once('?')?;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let is_ours =
        path == REDIRECT_PATH && pairs.any(|(name, value)| name == "state" && value == state);
    is_ours.then(|| query.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_of_the_page_is_taken() {
        for (line, expect) in [
            (
                "GET /callback?code=a&state=s HTTP/1.1",
                Some("code=a&state=s"),
            ),
            (
                "GET /callback?error=denied&state=s HTTP/1.1",
                Some("error=denied&state=s"),
            ),
            ("GET /callback?code=a&state=other HTTP/1.1", None),
            ("GET /callback?code=a HTTP/1.1", None),
            ("GET /callback HTTP/1.1", None),
            ("GET /favicon.ico?state=s HTTP/1.1", None),
            ("POST /callback?code=a&state=s HTTP/1.1", None),
            ("", None),
        ] {
            assert_eq!(query(line, "s").as_deref(), expect, "{line}");
        }
    }

    #[tokio::test]
    async fn a_person_comes_back_after_strangers() {
        let browser = Browser::new(|_, _| {}).await.unwrap();
        let at = browser.redirect_uri();
        let page = Url::parse("https://login.example/?state=s").unwrap();
        let knock = async |path: &str| {
            let mut stream = TcpStream::connect(("127.0.0.1", browser.port))
                .await
                .unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            reply
        };
        let strangers = async {
            // An idle connection does not block the others.
            let silent = std::net::TcpStream::connect(("127.0.0.1", browser.port)).unwrap();
            silent.set_nonblocking(true).unwrap();
            assert!(
                knock("/callback?code=x&state=guess")
                    .await
                    .starts_with("HTTP/1.1 404")
            );
            let still_open = silent.peek(&mut [0]).unwrap_err();
            assert_eq!(still_open.kind(), io::ErrorKind::WouldBlock);
            assert!(
                knock("/callback?code=a&state=s")
                    .await
                    .starts_with("HTTP/1.1 200")
            );
        };
        let (query, ()) = tokio::join!(browser.visit(page, "https://login.example"), strangers);
        assert_eq!(query.unwrap(), "code=a&state=s");
    }
}
