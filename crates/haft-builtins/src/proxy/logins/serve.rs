//! Serves a host for which there is a credential, or where rules judge requests: haft is that host to the command, and the command to
//! that host.
//!
//! Each request is read whole as HTTP/1.1 and written anew, so that the header of the credential is in requests for this host alone, and
//! what was judged is what is sent. A redirect is the command's to follow: to another host it leaves without the header.

use std::convert::Infallible;
use std::io::{self, Cursor};
use std::sync::Arc;

use haft_http::connection::{self, Driver};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{
    ACCEPT_ENCODING, ALT_SVC, CONNECTION, COOKIE, HOST, HeaderValue, IF_RANGE, RANGE, SET_COOKIE,
};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, join, split};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::masked::{MaskedBody, mask_headers};
use super::{Credential, LoginForm, LoginSecret};
use crate::proxy::forward::{announce_chunks, remove_hop_headers};
use crate::proxy::login_use::LoginUse;
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::tunnel::HelloNames;
use crate::proxy::{
    CommandProxy, ConnectionAccess, ConnectionUse, MAX_HEAD, ProxyBody, RequestLine, STEP_TIMEOUT,
    refusal_of, same_host, strip_trailing_dot,
};
use crate::web::http::{HostConnection, OpenAddresses};
use crate::web::target::WebUrl;

/// Maximum size of a request's head here, and of an answer's, in bytes: programs send tokens and cookies of their own.
const MAX_REQUEST_HEAD: usize = MAX_HEAD * 4;

/// A command's connection to such a host, and what leads on from it.
#[derive(Debug, Default)]
struct HostLink {
    /// The connection to the host, once there is one.
    upstream: Option<HostConversation>,
    /// The access by which it was opened, if each request is judged.
    granted: Option<ConnectionAccess>,
    /// The value that goes into requests, once its use was approved.
    secret: Option<Arc<LoginSecret>>,
    /// The repository of git's that it is for.
    repository: Option<String>,
}

/// A connection over which requests go to a host.
type HostConversation = (SendRequest<ProxyBody>, Driver);

/// A request that came, and as it was or is to be judged.
struct JudgedRequest {
    line: Option<RequestLine>,
    head: Parts,
    body: Incoming,
}

/// Maximum size of a body that is kept until the host has said whether it wants to know who asks, in bytes.
const MAX_KEPT: u64 = 1 << 20;

/// A request that can still be sent.
struct LoginRequest {
    head: Parts,
    body: ProxyBody,
}

impl CommandProxy {
    /// Is the host to a client that begins TLS, until it disconnects.
    pub(in crate::proxy) async fn serve_as_host<S>(
        &self,
        mut client: S,
        target: WebUrl,
        names: HelloNames,
    ) -> Result<(), ConnectionRefusal>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Some(hello) = names.read_hello(&mut client, Vec::new()).await? else {
            return Ok(());
        };
        self.read_roots();
        let host = strip_trailing_dot(target.host()).to_owned();
        let purpose = self.purpose(&target);
        let authority = self.logins.logins.authority();
        let server = authority.and_then(|authority| authority.server(&host));
        let server = server.map_err(|why| ConnectionRefusal::Login {
            host: host.clone(),
            why: format!("no certificate can be made: {why}"),
        })?;
        let (read, write) = split(client);
        let client = join(Cursor::new(hello).chain(read), write);
        let accepted = timeout(STEP_TIMEOUT, TlsAcceptor::from(server).accept(client)).await;
        let client = match accepted {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return no_handshake(&host, &purpose, &error),
            Err(_) => {
                let late = "it did not go on in time";
                return Err(ConnectionRefusal::distrust(&host, &purpose, late));
            }
        };
        let (way, link) = (self.clone(), Arc::new(Mutex::new(HostLink::default())));
        let service = service_fn(move |request| {
            let (way, target, link) = (way.clone(), target.clone(), Arc::clone(&link));
            async move {
                let mut link = link.lock().await;
                let done = way.request_as_host(request, &target, &mut link).await;
                Ok::<_, Infallible>(way.reply(done))
            }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(MAX_REQUEST_HEAD)
            .serve_connection(TokioIo::new(client), service);
        match served.await {
            Err(error) if error.is_parse() => Err(ConnectionRefusal::Tunnel {
                host,
                why: format!("it carries no HTTP/1.1 that haft can read ({error})"),
            }),
            // A client that takes no certificate but one that it knows may only say so after the handshake.
            Err(error) => match std::error::Error::source(&error) {
                Some(why) if is_distrust(why) => Err(ConnectionRefusal::distrust(
                    &host,
                    &purpose,
                    &why.to_string(),
                )),
                _ => Ok(()),
            },
            Ok(()) => Ok(()),
        }
    }

    /// Returns why haft is this host to the command, for what it is told if it does not accept that.
    fn purpose(&self, target: &WebUrl) -> String {
        match self.judge.rule_on_requests(target) {
            Some(rule) => format!("to judge each request (the rule {rule})"),
            None => "to put a credential in (network.credentials)".to_owned(),
        }
    }

    /// Has the root certificates read while the client's own handshake goes on, if this process has not read them yet.
    fn read_roots(&self) {
        let http = self.http.clone();
        tokio::spawn(async move {
            // Without them, the connection to the host says so.
            let _ = http.roots().await;
        });
    }

    /// Has a request judged if those at the host are, and sends it on, with the credential if it needs one.
    async fn request_as_host(
        &self,
        mut request: Request<Incoming>,
        target: &WebUrl,
        link: &mut HostLink,
    ) -> Result<Response<ProxyBody>, ConnectionRefusal> {
        check(&request, target)?;
        let line = self.judged_line(&mut request, target)?;
        let (head, body) = request.into_parts();
        let judged = JudgedRequest { line, head, body };
        if let Some(credential) = self.logins.logins.of(target) {
            return self
                .request_with_login(judged, credential, target, link)
                .await;
        }
        let JudgedRequest { line, head, body } = judged;
        self.clear(line.as_ref(), None, target, link).await?;
        let body = body.boxed_unsync();
        let answer = self.send(LoginRequest { head, body }, target, link).await?;
        Ok(pass_on(answer, None))
    }

    /// Has a request judged, with the login that it uses, and sees to a connection that its verdict allows. Without a request, the
    /// connection is judged when it is made.
    async fn clear(
        &self,
        line: Option<&RequestLine>,
        login: Option<&LoginUse>,
        target: &WebUrl,
        link: &mut HostLink,
    ) -> Result<(), ConnectionRefusal> {
        let Some(line) = line else {
            // The rules have changed: what was opened for requests that were judged is for these alone.
            if link.granted.take().is_some() {
                link.upstream = None;
            }
            return Ok(());
        };
        let used = ConnectionUse {
            login,
            request: Some(line),
        };
        let is_open = match &mut link.upstream {
            Some((sender, _)) => sender.ready().await.is_ok(),
            None => false,
        };
        let opened = link.granted.clone().filter(|_| is_open);
        let Some(opened) = opened else {
            link.upstream = None;
            let (reached, granted) = self.reach_granted(target, used).await?;
            link.upstream = Some(self.start(reached, target).await?);
            link.granted = Some(granted);
            return Ok(());
        };
        let leads_to = match &opened {
            ConnectionAccess::Private(OpenAddresses::These(shown))
                if target.address().is_none() =>
            {
                shown.clone()
            }
            _ => Vec::new(),
        };
        let granted = self.judge_connection(target, &leads_to, used).await?;
        if granted != opened {
            link.upstream = Some(self.connect_granted(target, &granted).await?);
            link.granted = Some(granted);
        }
        Ok(())
    }

    /// Sends a request on, with the credential if it needs it.
    async fn request_with_login(
        &self,
        request: JudgedRequest,
        credential: &Credential,
        target: &WebUrl,
        link: &mut HostLink,
    ) -> Result<Response<ProxyBody>, ConnectionRefusal> {
        let JudgedRequest { line, head, body } = request;
        let path = head.uri.to_string();
        let repository = credential.repository(&path).map(str::to_owned);
        if link.repository != repository {
            (link.secret, link.repository) = (None, repository);
        }
        let waits = matches!(credential.form, LoginForm::Git)
            && !pushes(&path)
            && !self.logins.is_needed(credential);
        let login = (link.secret.is_none() && !waits).then(|| credential.login_use());
        self.clear(line.as_ref(), login.as_ref(), target, link)
            .await?;
        match login {
            Some(_) if line.is_some() => {
                link.secret = Some(self.logins.secret(credential, &path).await?);
            }
            Some(_) => self.log_in(credential, &path, target, link).await?,
            None => {}
        }
        let (body, kept) = match link.secret {
            Some(_) => (body.boxed_unsync(), None),
            None => keep(body).await?,
        };
        let again = kept.map(|body| LoginRequest {
            head: head.clone(),
            body,
        });
        let answer = self.send(LoginRequest { head, body }, target, link).await?;
        let wants_login = link.secret.is_none() && answer.status() == StatusCode::UNAUTHORIZED;
        let answer = match again.filter(|_| wants_login) {
            Some(request) => {
                // What the server said about the request without a login stays unread.
                link.upstream = None;
                drop(answer);
                self.log_in(credential, &path, target, link).await?;
                self.send(request, target, link).await?
            }
            None if wants_login => {
                self.logins.need(credential, &path);
                self.refusals.note(&ConnectionRefusal::Login {
                    host: credential.host.clone(),
                    why: format!("it wants to know who asks; a body over {MAX_KEPT} bytes is not sent twice, so make the request again"),
                });
                answer
            }
            None => answer,
        };
        if link.secret.is_some() && answer.status() == StatusCode::UNAUTHORIZED {
            self.refusals.note(&ConnectionRefusal::Login {
                host: credential.host.clone(),
                why: format!(
                    "the host does not accept network.credentials.{}",
                    credential.name
                ),
            });
        }
        Ok(pass_on(answer, link.secret.as_ref()))
    }

    /// Has the use of the credential judged, and asks its program for the value.
    async fn log_in(
        &self,
        credential: &Credential,
        path: &str,
        target: &WebUrl,
        link: &mut HostLink,
    ) -> Result<(), ConnectionRefusal> {
        let login = credential.login_use();
        let used = ConnectionUse {
            login: Some(&login),
            request: None,
        };
        if link.granted.is_some() {
            // The request itself was judged.
            self.judge_login(target, &login).await?;
        } else if link.upstream.is_none() {
            link.upstream = Some(self.open(target, used).await?);
        } else {
            self.judge_connection(target, &[], used).await?;
        }
        link.secret = Some(self.logins.secret(credential, path).await?);
        Ok(())
    }

    async fn judge_login(
        &self,
        target: &WebUrl,
        login: &LoginUse,
    ) -> Result<(), ConnectionRefusal> {
        // As for a connection.
        let _held = self.moved.hold();
        self.judge.judge_login(target, login).await
    }

    /// Connects to the host if this use of it is allowed.
    async fn open(
        &self,
        target: &WebUrl,
        used: ConnectionUse<'_>,
    ) -> Result<HostConversation, ConnectionRefusal> {
        let reached = self.reach(target, used).await?;
        self.start(reached, target).await
    }

    /// Connects to the host as was granted before.
    async fn connect_granted(
        &self,
        target: &WebUrl,
        granted: &ConnectionAccess,
    ) -> Result<HostConversation, ConnectionRefusal> {
        let reached = self.connect_as(target, granted).await;
        let host = strip_trailing_dot(target.host());
        let reached = reached.map_err(|error| refusal_of(host, &error))?;
        self.start(reached, target).await
    }

    /// Begins TLS with the host, which must prove its name.
    async fn start(
        &self,
        reached: HostConnection,
        target: &WebUrl,
    ) -> Result<HostConversation, ConnectionRefusal> {
        let host = strip_trailing_dot(target.host());
        let secured = timeout(STEP_TIMEOUT, self.http.secure(reached, target)).await;
        let late = |_| ConnectionRefusal::Unreachable(format!("{host} did not answer in time"));
        let secured = secured
            .map_err(late)?
            .map_err(|error| refusal_of(host, &error))?;
        let mut limited = Builder::new();
        limited.max_buf_size(MAX_REQUEST_HEAD);
        let started = connection::start(&limited, secured).await;
        started.map_err(|error| ConnectionRefusal::Unreachable(format!("{host}: {error}")))
    }

    /// Connects again, to a host that closed the connection on which it was reached.
    async fn open_again(
        &self,
        target: &WebUrl,
        link: &HostLink,
    ) -> Result<HostConversation, ConnectionRefusal> {
        if let Some(granted) = &link.granted {
            return self.connect_granted(target, granted).await;
        }
        let login = link
            .secret
            .as_ref()
            .and_then(|_| self.logins.logins.of(target));
        let login = login.map(Credential::login_use);
        let used = ConnectionUse {
            login: login.as_ref(),
            request: None,
        };
        self.open(target, used).await
    }

    /// Sends a request on the connection that there is, or on a new one if the host has closed it before it took the request.
    async fn send(
        &self,
        request: LoginRequest,
        target: &WebUrl,
        link: &mut HostLink,
    ) -> Result<Response<Incoming>, ConnectionRefusal> {
        let mut request = prepare(request, target, link.secret.as_deref())?;
        if link.granted.is_some() && request.body().size_hint().exact() != Some(0) {
            // A server that does not read the body would take it for the next request, which was not judged.
            let close = HeaderValue::from_static("close");
            request.headers_mut().insert(CONNECTION, close);
        }
        loop {
            let mut is_new = false;
            let ready = match &mut link.upstream {
                Some((sender, _)) => sender.ready().await.is_ok(),
                None => false,
            };
            if !ready {
                link.upstream = None;
                link.upstream = Some(self.open_again(target, link).await?);
                is_new = true;
            }
            let Some((sender, _)) = &mut link.upstream else {
                return Err(ConnectionRefusal::Malformed("there is no connection"));
            };
            let mut failed = match sender.try_send_request(request).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            link.upstream = None;
            let Some(unsent) = failed.take_message().filter(|_| !is_new) else {
                let host = strip_trailing_dot(target.host());
                let why = format!("{host}: {}", failed.error());
                return Err(ConnectionRefusal::Unreachable(why));
            };
            request = unsent;
        }
    }
}

/// Returns why a client's TLS did not begin; nothing if it went away.
fn no_handshake(host: &str, purpose: &str, error: &io::Error) -> Result<(), ConnectionRefusal> {
    let distrust = || {
        Err(ConnectionRefusal::distrust(
            host,
            purpose,
            &error.to_string(),
        ))
    };
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        // Many close without a word on a certificate that they do not take.
        io::ErrorKind::UnexpectedEof => distrust(),
        _ if is_distrust(error) => distrust(),
        _ => Err(ConnectionRefusal::Tunnel {
            host: host.to_owned(),
            why: format!(
                "haft ends TLS for it {purpose} and speaks TLS 1.2, 1.3 and HTTP/1.1: {error}"
            ),
        }),
    }
}

/// Whether a client has said that it does not take the certificate.
fn is_distrust(error: &(dyn std::error::Error + 'static)) -> bool {
    let by_name = |alert: &AlertDescription| {
        use AlertDescription as Alert;
        matches!(
            alert,
            Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied
        )
    };
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    let found = error
        .downcast_ref::<rustls::Error>()
        .or_else(|| wrapped?.downcast_ref::<rustls::Error>());
    matches!(found, Some(rustls::Error::AlertReceived(alert)) if by_name(alert))
}

/// Returns a body as it can be sent, and the same once more if it is short enough to be kept.
async fn keep(body: Incoming) -> Result<(ProxyBody, Option<ProxyBody>), ConnectionRefusal> {
    if body.size_hint().upper().is_none_or(|size| size > MAX_KEPT) {
        return Ok((body.boxed_unsync(), None));
    }
    let read = body.collect().await;
    let read = read.map_err(|_| ConnectionRefusal::Malformed("its body ended too soon"))?;
    let bytes = read.to_bytes();
    let whole = || {
        Full::new(bytes.clone())
            .map_err(|never| match never {})
            .boxed_unsync()
    };
    Ok((whole(), Some(whole())))
}

/// Refuses what is no request for the host itself.
fn check(request: &Request<Incoming>, target: &WebUrl) -> Result<(), ConnectionRefusal> {
    let refuse = |why| Err(ConnectionRefusal::Malformed(why));
    if request.method() == Method::CONNECT || request.uri().authority().is_some() {
        return refuse("a request to a host names a path: only the proxy takes a whole URL");
    }
    if request.method() == Method::TRACE {
        // The answer would show the credential (RFC 9110 §9.3.8).
        return refuse("TRACE is not sent on");
    }
    same_host(request, target, request.version() == Version::HTTP_11)
}

/// Whether a request is of `git push`, which no server takes from a stranger: the user is asked about the connection and the login at once.
fn pushes(path: &str) -> bool {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    path.ends_with("/git-receive-pack")
        || query
            .split('&')
            .any(|pair| pair == "service=git-receive-pack")
}

/// Writes the request as it goes to the host.
fn prepare(
    request: LoginRequest,
    target: &WebUrl,
    secret: Option<&LoginSecret>,
) -> Result<Request<ProxyBody>, ConnectionRefusal> {
    let LoginRequest { mut head, body } = request;
    let headers = &mut head.headers;
    remove_hop_headers(headers);
    headers.remove(CONNECTION);
    announce_chunks(headers, &body);
    let host = HeaderValue::try_from(target.authority());
    let host =
        host.map_err(|_| ConnectionRefusal::Malformed("the host is not valid in a header"))?;
    headers.insert(HOST, host);
    if let Some(secret) = secret {
        secret.put_into(headers);
        // What is packed, or a part that the command chose, cannot be searched for the value. A session that the command took along would keep
        // the login.
        for name in [RANGE, IF_RANGE, COOKIE] {
            headers.remove(name);
        }
        // Without a word about it a server may pack what it likes (RFC 9110 §12.5.3).
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(path) = head.uri.path_and_query().cloned() {
        head.uri = Uri::from(path);
    }
    head.version = Version::HTTP_11;
    Ok(Request::from_parts(head, body))
}

/// Returns an answer as the command gets it.
fn pass_on(answer: Response<Incoming>, secret: Option<&Arc<LoginSecret>>) -> Response<ProxyBody> {
    let (mut head, body) = answer.into_parts();
    remove_hop_headers(&mut head.headers);
    // Another protocol would not lead here.
    head.headers.remove(ALT_SVC);
    let body = body.boxed_unsync();
    let Some(secret) = secret else {
        return Response::from_parts(head, body);
    };
    // The words beside the status are the server's, too.
    head.extensions.clear();
    // A cookie would be a login that the command can take along.
    head.headers.remove(SET_COOKIE);
    mask_headers(&mut head.headers, secret);
    let body = MaskedBody::new(body, Arc::clone(secret));
    Response::from_parts(head, body.boxed_unsync())
}

#[cfg(test)]
mod tests {
    use super::pushes;

    #[test]
    fn a_push_is_known_by_its_service() {
        for (path, expect) in [
            ("/a.git/info/refs?service=git-receive-pack", true),
            ("/a.git/git-receive-pack", true),
            ("/a.git/info/refs?service=git-upload-pack", false),
            ("/a.git/git-upload-pack", false),
            ("/git-receive-pack/a", false),
        ] {
            assert_eq!(pushes(path), expect, "{path}");
        }
    }
}
