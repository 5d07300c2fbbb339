//! `Proxy`: the only way out of a jail's network, to the hosts of a list, with checks at every connection.
//!
//! It is an HTTP/1.1 proxy: `CONNECT` for TLS, absolute URLs for plain HTTP, one request per connection. It resolves names itself,
//! requires all addresses to be public, and connects to one of exactly these. A tunnel must begin with a TLS hello for the same
//! name. It refuses everything that it cannot read, compare or check.
//!
//! Programs that know no proxy connect by themselves, and arrive here too: they find an address for every name
//! (`names`), which says which host is meant. Both ways lead through `reach`.

mod allow;
mod beginning;
pub(crate) mod counted;
mod direct;
mod forward;
mod hello;
mod judge;
mod login_use;
pub mod logins;
mod names;
mod ports;
mod questions;
mod refusal;
mod request_line;
mod tunnel;
mod upgrade;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use haft_http::upstream::UpstreamProxy;
use haft_sandbox::{NAMES_PORT, OUTLET_ADDRESS, Outlet, ServeFuture};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;

pub use allow::{AllowError, AllowList};
pub(crate) use judge::{ConnectionAccess, ConnectionJudge, ConnectionUse};
pub(crate) use login_use::LoginUse;
pub(crate) use names::NameTable;
pub(crate) use ports::taken_ports;
pub(crate) use refusal::{ConnectionRefusal, Refusals};
pub(crate) use request_line::RequestLine;

use crate::proxy::counted::{CountedStream, ServedCount, Traffic, idle, keep_alive};
use crate::proxy::logins::{CommandLogins, Logins};
use crate::proxy::tunnel::{HelloNames, Tunnel};
use crate::proxy::upgrade::{PassedUpgrades, UpgradeSlot, UpgradedWay};
use crate::web::http::{HostConnection, Http, HttpError};
use crate::web::network::{Network, OwnListeners};
use crate::web::target::WebUrl;

/// Maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Maximum time for a request's head, for a lookup with its connection, or for a TLS hello.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that a connection may be idle in both directions before it leads to a host. Afterwards it lasts as long as the command
/// unless the command needs its place for another (a database's pool, ssh, a page that answers late).
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

type ProxyBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// A proxy to the hosts of a list. Clones share the list and the client.
#[derive(Debug, Clone)]
pub struct Proxy {
    allowed: Arc<AllowList>,
    http: Http,
    logins: Logins,
}

impl Proxy {
    /// Creates a proxy to these hosts that uses this machine's network.
    pub fn new(allowed: AllowList) -> Self {
        Self {
            allowed: Arc::new(allowed),
            http: Http::guarded(),
            logins: Logins::default(),
        }
    }

    /// Sets another network.
    pub fn with_network(mut self, network: Arc<dyn Network>) -> Self {
        self.http = self.http.with_network(network);
        self
    }

    /// Connects through an upstream proxy, if there is one.
    pub fn with_upstream(mut self, upstream: Option<UpstreamProxy>) -> Self {
        self.http = self.http.with_upstream(upstream);
        self
    }

    /// Sets the credentials that haft puts into requests for their hosts.
    pub fn with_logins(mut self, logins: Logins) -> Self {
        self.logins = logins;
        self
    }

    /// Trusts these certificates instead of the system's, where haft itself speaks TLS with a host.
    pub fn with_roots(mut self, roots: Vec<CertificateDer<'static>>) -> Self {
        self.http = self.http.with_roots(roots);
        self
    }

    /// Returns the credentials.
    pub(crate) fn logins(&self) -> &Logins {
        &self.logins
    }

    /// Refuses connections to ports that haft itself listens on.
    pub fn without_own_listeners(mut self, own: Arc<dyn OwnListeners>) -> Self {
        self.http = self.http.without_own(own);
        self
    }

    /// Returns the private addresses that a host resolves to, so that the user can be asked about them.
    pub(crate) async fn private_addresses(
        &self,
        target: &WebUrl,
    ) -> Result<Vec<IpAddr>, ConnectionRefusal> {
        let found = self.http.private_addresses(target).await;
        found.map_err(|error| refusal_of(strip_trailing_dot(target.host()), &error))
    }

    /// Returns the number of hosts on the list.
    pub fn hosts(&self) -> usize {
        self.allowed.len()
    }

    /// Returns the hosts on the list, as written in settings.
    pub(crate) fn allowed(&self) -> String {
        self.allowed.to_string()
    }

    /// Returns the list.
    pub(crate) fn list(&self) -> Arc<AllowList> {
        Arc::clone(&self.allowed)
    }

    /// Returns an outlet that serves the connections of one command, about each of which `judge` decides: those to the proxy, and those
    /// to every address at these ports.
    pub(crate) fn outlet_judged_by(
        &self,
        judge: Arc<dyn ConnectionJudge>,
        ports: Vec<u16>,
    ) -> CommandOutlet {
        let way = CommandProxy {
            http: self.http.clone(),
            judge,
            refusals: Arc::default(),
            names: Arc::default(),
            ports: ports.into(),
            logins: Arc::new(CommandLogins::new(self.logins.clone())),
            moved: Traffic::default(),
            served: ServedCount::default(),
        };
        CommandOutlet {
            refusals: Arc::clone(&way.refusals),
            names: Arc::clone(&way.names),
            ports: Arc::clone(&way.ports),
            outlet: Arc::new(way),
        }
    }
}

/// The way out of one command, with the records of its use.
#[derive(Debug)]
pub(crate) struct CommandOutlet {
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) refusals: Arc<Refusals>,
    /// The names that the command asked for.
    pub(crate) names: Arc<NameTable>,
    /// The ports at which connections to every address are taken.
    pub(crate) ports: Arc<[u16]>,
}

/// The proxy as one command uses it.
#[derive(Debug, Clone)]
struct CommandProxy {
    http: Http,
    judge: Arc<dyn ConnectionJudge>,
    refusals: Arc<Refusals>,
    names: Arc<NameTable>,
    ports: Arc<[u16]>,
    logins: Arc<CommandLogins>,
    /// Counts what passes on this connection.
    moved: Traffic,
    /// Counts the connections.
    served: ServedCount,
}

impl Outlet for CommandProxy {
    fn serve(&self, connection: TcpStream) -> ServeFuture {
        let moved = Traffic::default();
        let way = Self {
            moved: moved.clone(),
            ..self.clone()
        };
        let at = connection.local_addr();
        let connection = CountedStream::new(connection, moved.clone());
        let place = way.served.enter();
        Box::pin(async move {
            let _place = place;
            let served = async {
                match at {
                    Ok(at) if at == OUTLET_ADDRESS => way.answer(connection).await,
                    Ok(at) if at.port() == NAMES_PORT => {
                        questions::serve(connection, &way.names).await;
                    }
                    Ok(at) => way.serve_direct(connection, at).await,
                    // It is closed already.
                    Err(_) => {}
                }
            };
            tokio::select! {
                () = served => {}
                () = idle(&moved, IDLE_TIMEOUT, || way.served.is_full()) => way.note_idle(&moved),
            }
        })
    }

    fn ports(&self) -> Vec<u16> {
        self.ports.to_vec()
    }

    fn answer_name(&self, question: &[u8]) -> Option<Vec<u8>> {
        questions::answer(question, &self.names)
    }
}

impl CommandProxy {
    /// Records that a quiet connection was ended.
    fn note_idle(&self, moved: &Traffic) {
        if let Some(place) = moved.reached() {
            self.refusals.note(&ConnectionRefusal::Idle {
                place: place.to_owned(),
            });
        }
    }

    /// Serves one request, and the tunnel that it may open.
    async fn answer(&self, connection: CountedStream) {
        let opened: Mutex<Option<OpenedWay>> = Mutex::default();
        let opened = Arc::new(opened);
        let (way, slot) = (self.clone(), Arc::clone(&opened));
        let service = service_fn(move |request| {
            let (way, slot) = (way.clone(), Arc::clone(&slot));
            async move { Ok::<_, Infallible>(way.request(request, &slot).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(STEP_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .keep_alive(false)
            .serve_connection(TokioIo::new(connection), service)
            .with_upgrades();
        // A client that disconnects, or that does not speak HTTP, ends its connection.
        let _ = served.await;
        let opened = opened.lock().take();
        let ended = match opened {
            Some(OpenedWay::Tunnel(tunnel)) => tunnel.run().await,
            Some(OpenedWay::Host(client, target)) => self.answer_as(client, target).await,
            Some(OpenedWay::Upgraded(way)) => {
                way.run().await;
                Ok(())
            }
            None => Ok(()),
        };
        if let Err(refusal) = ended {
            self.refusals.note(&refusal);
        }
    }

    /// Is the host of a tunnel itself.
    async fn answer_as(&self, client: OnUpgrade, target: WebUrl) -> Result<(), ConnectionRefusal> {
        // A client that disconnected needs no response.
        let Ok(Ok(client)) = tokio::time::timeout(STEP_TIMEOUT, client).await else {
            return Ok(());
        };
        let names = HelloNames::required(&target);
        self.serve_as_host(TokioIo::new(client), target, names)
            .await
    }

    async fn request(
        &self,
        request: Request<Incoming>,
        slot: &Mutex<Option<OpenedWay>>,
    ) -> Response<ProxyBody> {
        let done = if request.method() == Method::CONNECT {
            self.connect(request, slot).await
        } else {
            self.plain(request, slot).await
        };
        self.reply(done)
    }

    /// Records a refusal and makes the response that says it.
    fn reply(&self, done: Result<Response<ProxyBody>, ConnectionRefusal>) -> Response<ProxyBody> {
        done.unwrap_or_else(|refusal| {
            self.refusals.note(&refusal);
            text_response(refusal.status(), &refusal.to_string())
        })
    }

    /// Parses the URL of a request to the proxy. An address that stands for a name here is none of a host elsewhere.
    fn read(&self, url: &str) -> Result<WebUrl, ConnectionRefusal> {
        let target = WebUrl::parse(url);
        let target = target.map_err(|why| ConnectionRefusal::Unclear(why.to_string()))?;
        match target.address().and_then(|at| self.names.name_of(at)) {
            Some(name) => Err(ConnectionRefusal::StandsFor {
                place: format!("{}:{}", target.host(), target.port()),
                name,
            }),
            None => Ok(target),
        }
    }

    /// Handles `CONNECT`. The tunnel opens after the response is sent.
    async fn connect(
        &self,
        request: Request<Incoming>,
        slot: &Mutex<Option<OpenedWay>>,
    ) -> Result<Response<ProxyBody>, ConnectionRefusal> {
        let uri = request.uri();
        let authority = match uri.authority() {
            Some(authority) if uri.scheme().is_none() => authority.as_str(),
            _ => return Err(ConnectionRefusal::Malformed("CONNECT takes host:port")),
        };
        if uri.port_u16().is_none() {
            return Err(ConnectionRefusal::Malformed("CONNECT takes host:port"));
        }
        let target = self.read(&format!("https://{authority}/"))?;
        same_host(&request, &target, false)?;
        let opened = if self.is_host(&target) {
            // Whether haft connects to the host is decided with the first request.
            OpenedWay::Host(hyper::upgrade::on(request), target)
        } else {
            let upstream = self.reach(&target, ConnectionUse::default()).await?;
            let client = hyper::upgrade::on(request);
            OpenedWay::Tunnel(Tunnel::new(client, upstream.stream, &target))
        };
        *slot.lock() = Some(opened);
        Ok(Response::new(empty()))
    }

    /// Whether haft is this host to the command, to put a credential in or to judge each request.
    fn is_host(&self, target: &WebUrl) -> bool {
        self.logins.logins.of(target).is_some() || self.judge.rule_on_requests(target).is_some()
    }

    /// Returns the request as it is judged, if those at the host are judged one by one.
    fn judged_line(
        &self,
        request: &mut Request<Incoming>,
        target: &WebUrl,
    ) -> Result<Option<RequestLine>, ConnectionRefusal> {
        let rule = self.judge.rule_on_requests(target);
        rule.map(|rule| RequestLine::of(request, target, &rule))
            .transpose()
    }

    /// Handles a request for an absolute `http` URL.
    async fn plain(
        &self,
        mut request: Request<Incoming>,
        slot: &Mutex<Option<OpenedWay>>,
    ) -> Result<Response<ProxyBody>, ConnectionRefusal> {
        let uri = request.uri();
        match uri.scheme_str() {
            Some("http") => {}
            Some(_) => {
                return Err(ConnectionRefusal::Malformed(
                    "only http is proxied by URL, https by CONNECT",
                ));
            }
            None => {
                return Err(ConnectionRefusal::Malformed(
                    "this is a proxy: ask it for a whole URL",
                ));
            }
        }
        let target = self.read(&uri.to_string())?;
        same_host(&request, &target, request.version() == Version::HTTP_11)?;
        let line = self.judged_line(&mut request, &target)?;
        let used = ConnectionUse {
            login: None,
            request: line.as_ref(),
        };
        let upstream = self.reach(&target, used).await?;
        let upgrades = UpgradeSlot::new(PassedUpgrades::NotHttp);
        let answer = forward::forward(request, upstream, &target, &upgrades).await;
        if let Some(way) = upgrades.take() {
            *slot.lock() = Some(OpenedWay::Upgraded(way));
        }
        answer
    }

    /// Connects to a host if this use of it is allowed, at an address that was checked.
    async fn reach(
        &self,
        target: &WebUrl,
        used: ConnectionUse<'_>,
    ) -> Result<HostConnection, ConnectionRefusal> {
        let (reached, _) = self.reach_granted(target, used).await?;
        Ok(reached)
    }

    /// Does the same, and returns the access that was granted.
    async fn reach_granted(
        &self,
        target: &WebUrl,
        used: ConnectionUse<'_>,
    ) -> Result<(HostConnection, ConnectionAccess), ConnectionRefusal> {
        let refusal = |error: &HttpError| refusal_of(strip_trailing_dot(target.host()), error);
        let granted = self.judge_connection(target, &[], used).await?;
        let refused = match self.connect_as(target, &granted).await {
            Ok(reached) => return Ok((reached, granted)),
            Err(error @ HttpError::ResolvesTo { .. }) if self.judge.opens_private() => error,
            Err(error) => return Err(refusal(&error)),
        };
        // The name resolves to a private address that was not asked about: it was not looked up before, or it has changed.
        let found = self.http.private_addresses(target).await;
        let leads_to = found.map_err(|error| refusal(&error))?;
        if leads_to.is_empty() {
            return Err(refusal(&refused));
        }
        let granted = self.judge_connection(target, &leads_to, used).await?;
        let connected = self.connect_as(target, &granted).await;
        let reached = connected.map_err(|error| refusal(&error))?;
        Ok((reached, granted))
    }

    async fn judge_connection(
        &self,
        target: &WebUrl,
        leads_to: &[IpAddr],
        used: ConnectionUse<'_>,
    ) -> Result<ConnectionAccess, ConnectionRefusal> {
        // The user may take longer to decide than a connection may be idle.
        let _held = self.moved.hold();
        self.judge.judge(target, leads_to, used).await
    }

    /// Connects within the limits of the grant: no decision opens a private place that it does not name.
    async fn connect_as(
        &self,
        target: &WebUrl,
        granted: &ConnectionAccess,
    ) -> Result<HostConnection, HttpError> {
        let http = match granted {
            ConnectionAccess::Public => self.http.clone(),
            ConnectionAccess::Private(addresses) => {
                self.http.with_open_addresses(target, addresses.clone())
            }
        };
        let refused = |why| HttpError::refused(target.url().as_str(), why);
        http.check(target).map_err(refused)?;
        let connected = tokio::time::timeout(STEP_TIMEOUT, http.connect(target)).await;
        let late = |_| HttpError::too_slow(target, "answer", STEP_TIMEOUT);
        let reached = connected.map_err(late)??;
        keep_alive(&reached.stream);
        let place = format!("{}:{}", strip_trailing_dot(target.host()), target.port());
        self.moved.note_reached(place);
        self.judge.note_connected(target, granted);
        Ok(reached)
    }
}

/// What a request opened.
#[derive(Debug)]
enum OpenedWay {
    Tunnel(Tunnel),
    /// A connection to haft in place of the host.
    Host(OnUpgrade, WebUrl),
    /// Another protocol that both ends agreed on.
    Upgraded(UpgradedWay),
}

/// Converts the client's error to a refusal.
fn refusal_of(host: &str, error: &HttpError) -> ConnectionRefusal {
    match error {
        HttpError::Refused { why, .. } => ConnectionRefusal::private(host, &why.to_string()),
        HttpError::ResolvesTo { .. } | HttpError::OwnListener { .. } => {
            ConnectionRefusal::private(host, &error.to_string())
        }
        HttpError::Proxy { .. } => ConnectionRefusal::from_upstream_error(error),
        _ => ConnectionRefusal::Unreachable(error.to_string()),
    }
}

/// Removes the trailing dot of a host.
fn strip_trailing_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Fails if `Host` differs from the URL's host, is repeated, or is missing although `needed`.
fn same_host(
    request: &Request<Incoming>,
    target: &WebUrl,
    needed: bool,
) -> Result<(), ConnectionRefusal> {
    let mut given = request.headers().get_all(HOST).iter();
    let other = || ConnectionRefusal::OtherHost(strip_trailing_dot(target.host()).to_owned());
    match (given.next(), given.next()) {
        (None, _) if !needed => Ok(()),
        (Some(host), None) => {
            let scheme = target.url().scheme();
            let host = host.to_str().map_err(|_| other())?;
            let named = WebUrl::parse(&format!("{scheme}://{host}/")).map_err(|_| other())?;
            let same = strip_trailing_dot(named.host()) == strip_trailing_dot(target.host());
            // A client may omit a port in `Host` that its `CONNECT` has.
            let port = named.port() == target.port() || named.url().port().is_none();
            if same && port { Ok(()) } else { Err(other()) }
        }
        _ => Err(other()),
    }
}

fn empty() -> ProxyBody {
    Full::default()
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Builds a response with one line of text for the user or the model.
fn text_response(status: StatusCode, line: &str) -> Response<ProxyBody> {
    let text = Full::from(format!("haft: {line}\n"));
    let mut response = Response::new(text.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
