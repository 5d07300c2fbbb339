//! Connections that a program makes to a host by itself: the host is the one whose address it connected to, and all else is as by the
//! proxy.

use std::convert::Infallible;
use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::Version;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, join, split};
use tokio::time::timeout;

use crate::proxy::beginning::{Beginning, Protocol};
use crate::proxy::counted::CountedStream;
use crate::proxy::names::Destination;
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::tunnel::{HelloNames, splice};
use crate::proxy::upgrade::{PassedUpgrades, UpgradeSlot};
use crate::proxy::{
    CommandProxy, ConnectionUse, MAX_HEAD, ProxyBody, STEP_TIMEOUT, forward, same_host,
    strip_trailing_dot,
};
use crate::web::http::HostConnection;
use crate::web::target::WebUrl;

/// The ports at which a connection must be TLS, and HTTP (IANA).
const HTTPS: u16 = 443;
const HTTP: u16 = 80;
/// The alert `access_denied` (RFC 8446 §6.2), fatal, as an unencrypted record.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
impl CommandProxy {
    /// Serves a connection to this address, and records a refusal.
    pub(super) async fn serve_direct(&self, client: CountedStream, at: SocketAddr) {
        let done = match self.target_at(at) {
            // At the jail's own addresses there is nothing at this port.
            None => {
                client.reset();
                return;
            }
            Some(Err(refusal)) => {
                client.reset();
                Err(refusal)
            }
            Some(Ok(target)) if self.ends_tls(&target, at.port()) => {
                let names = HelloNames::of(&target);
                self.serve_as_host(client, target, names).await
            }
            Some(Ok(target)) => match at.port() {
                HTTP => {
                    self.serve_requests(client, HttpWay::at_its_port(target))
                        .await
                }
                HTTPS => self.serve_tls(client, &target).await,
                _ if self.judge.rule_on_requests(&target).is_some() => {
                    self.serve_judged(client, target).await
                }
                _ => self.serve_any(client, target).await,
            },
        };
        if let Err(refusal) = done {
            self.refusals.note_untold(&refusal);
        }
    }

    /// Whether a connection at this port is TLS that haft ends: for the host of a credential, or where requests are judged at the port of
    /// HTTPS.
    fn ends_tls(&self, target: &WebUrl, port: u16) -> bool {
        let has_credential = self.logins.logins.of(target).is_some();
        has_credential || port == HTTPS && self.judge.rule_on_requests(target).is_some()
    }

    /// Returns the host that a connection is meant for; `None` if that is the jail itself.
    fn target_at(&self, at: SocketAddr) -> Option<Result<WebUrl, ConnectionRefusal>> {
        let host = match self.names.connect(at.ip()) {
            Destination::Jail => return None,
            Destination::Name(name) => name,
            Destination::Address(address) if address.is_ipv6() => format!("[{address}]"),
            Destination::Address(address) => address.to_string(),
            Destination::Unknown(address) => {
                let refusal = ConnectionRefusal::Unnamed {
                    place: format!("{address}:{}", at.port()),
                };
                return Some(Err(refusal));
            }
        };
        let scheme = if at.port() == HTTP { "http" } else { "https" };
        let target = WebUrl::of_connection(scheme, &host, at.port());
        Some(target.map_err(|why| ConnectionRefusal::Unclear(why.to_string())))
    }

    /// Passes TLS for the host, which the program also names if it names any.
    async fn serve_tls(
        &self,
        mut client: CountedStream,
        target: &WebUrl,
    ) -> Result<(), ConnectionRefusal> {
        let names = HelloNames::of(target);
        let passed = match names.read_hello(&mut client, Vec::new()).await {
            Ok(None) => return Ok(()),
            Ok(Some(hello)) => self
                .reach(target, ConnectionUse::default())
                .await
                .map(|reached| (hello, reached)),
            Err(refusal) => Err(refusal),
        };
        match passed {
            Ok((hello, reached)) => splice(client, reached.stream, &hello).await,
            Err(refusal) => refuse_tls(client, refusal).await,
        }
    }

    /// Passes any protocol. What begins as TLS or HTTP must be for the host, as at the ports of these.
    async fn serve_any(
        &self,
        mut client: CountedStream,
        target: WebUrl,
    ) -> Result<(), ConnectionRefusal> {
        let mut reached = match self.reach(&target, ConnectionUse::default()).await {
            Ok(reached) => reached,
            Err(refusal) => {
                client.reset();
                return Err(refusal);
            }
        };
        let begun = match Beginning::read(&mut client, &mut reached.stream).await {
            Ok(begun) => begun,
            Err(why) => {
                client.reset();
                return Err(ConnectionRefusal::Tunnel {
                    host: strip_trailing_dot(target.host()).to_owned(),
                    why: why.to_owned(),
                });
            }
        };
        match begun.protocol {
            Protocol::Tls => {
                let names = HelloNames::of(&target);
                match names.read_hello(&mut client, begun.sent).await {
                    Ok(None) => Ok(()),
                    Ok(Some(hello)) => splice(client, reached.stream, &hello).await,
                    Err(refusal) => refuse_tls(client, refusal).await,
                }
            }
            Protocol::Http => {
                let host = strip_trailing_dot(target.host());
                let target = http_target(host, target.port())?;
                let client = after(client, begun.sent);
                let way = HttpWay::at_any_port(target, reached);
                self.serve_requests(client, way).await
            }
            Protocol::Other => {
                // The program may have closed its end.
                if client.write_all(&begun.received).await.is_err() {
                    return Ok(());
                }
                splice(client, reached.stream, &begun.sent).await
            }
        }
    }

    /// Passes TLS and HTTP whose requests are judged, and any other protocol if the connection as a whole may be made.
    async fn serve_judged(
        &self,
        mut client: CountedStream,
        target: WebUrl,
    ) -> Result<(), ConnectionRefusal> {
        let (protocol, sent) = Beginning::read_client(&mut client).await;
        match protocol {
            Protocol::Tls => {
                let names = HelloNames::of(&target);
                self.serve_as_host(after(client, sent), target, names).await
            }
            Protocol::Http => {
                let host = strip_trailing_dot(target.host());
                let target = http_target(host, target.port())?;
                let client = after(client, sent);
                let way = HttpWay::at_its_port(target);
                self.serve_requests(client, way).await
            }
            Protocol::Other => {
                let mut reached = match self.reach(&target, ConnectionUse::default()).await {
                    Ok(reached) => reached,
                    Err(refusal) => {
                        client.reset();
                        return Err(refusal);
                    }
                };
                let mut client = after(client, sent);
                let begun = Beginning::read(&mut client, &mut reached.stream).await;
                let begun = begun.and_then(|begun| match begun.protocol {
                    Protocol::Other => Ok(begun),
                    Protocol::Tls | Protocol::Http => Err(
                        "it became TLS or HTTP after it was judged as a whole, though rules judge each request there",
                    ),
                });
                let begun = begun.map_err(|why| ConnectionRefusal::Tunnel {
                    host: strip_trailing_dot(target.host()).to_owned(),
                    why: why.to_owned(),
                })?;
                // The program may have closed its end.
                if client.write_all(&begun.received).await.is_err() {
                    return Ok(());
                }
                splice(client, reached.stream, &begun.sent).await
            }
        }
    }

    /// Forwards one HTTP request for the host, and what the connection becomes by it.
    async fn serve_requests(
        &self,
        client: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        way: HttpWay,
    ) -> Result<(), ConnectionRefusal> {
        let (own, way) = (self.clone(), Arc::new(way));
        let served = Arc::clone(&way);
        let service = service_fn(move |request| {
            let (own, way) = (own.clone(), Arc::clone(&served));
            async move { Ok::<_, Infallible>(own.reply(own.request_of(request, &way).await)) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(STEP_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .keep_alive(false)
            .serve_connection(TokioIo::new(client), service)
            .with_upgrades();
        let served = served.await;
        if let Some(upgraded) = way.upgrades.take() {
            upgraded.run().await;
        }
        match served {
            Err(error) if error.is_parse() => Err(ConnectionRefusal::Tunnel {
                host: way.target.host().to_owned(),
                why: "it does not begin with an HTTP request".into(),
            }),
            // A program that disconnects, or sends nothing in time, ends its connection.
            _ => Ok(()),
        }
    }

    async fn request_of(
        &self,
        mut request: Request<Incoming>,
        way: &HttpWay,
    ) -> Result<Response<ProxyBody>, ConnectionRefusal> {
        if request.uri().authority().is_some() {
            return Err(ConnectionRefusal::Malformed(
                "a request to a host names a path: only the proxy takes a whole URL",
            ));
        }
        let target = &way.target;
        same_host(&request, target, request.version() == Version::HTTP_11)?;
        let known = way.reached.lock().take();
        let reached = if let Some(reached) = known {
            reached
        } else {
            let line = self.judged_line(&mut request, target)?;
            let used = ConnectionUse {
                login: None,
                request: line.as_ref(),
            };
            self.reach(target, used).await?
        };
        forward::forward(request, reached, target, &way.upgrades).await
    }
}

/// Returns a connection on which these bytes have been read already.
fn after(
    client: CountedStream,
    sent: Vec<u8>,
) -> impl AsyncRead + AsyncWrite + Unpin + Send + 'static {
    let (read, write) = split(client);
    join(Cursor::new(sent).chain(read), write)
}

/// Returns a host without TLS.
fn http_target(host: &str, port: u16) -> Result<WebUrl, ConnectionRefusal> {
    let target = WebUrl::of_connection("http", host, port);
    target.map_err(|why| ConnectionRefusal::Unclear(why.to_string()))
}

/// A connection of HTTP to its host.
struct HttpWay {
    target: WebUrl,
    /// The connection to the host, if there is one before the request: a server that takes one at a time gets no second.
    reached: Mutex<Option<HostConnection>>,
    upgrades: UpgradeSlot,
}

impl HttpWay {
    /// One at the port of HTTP.
    fn at_its_port(target: WebUrl) -> Self {
        Self {
            target,
            reached: Mutex::default(),
            upgrades: UpgradeSlot::new(PassedUpgrades::NotHttp),
        }
    }

    /// One at a port of any protocol, where the host was reached before the program spoke.
    fn at_any_port(target: WebUrl, reached: HostConnection) -> Self {
        Self {
            target,
            reached: Mutex::new(Some(reached)),
            upgrades: UpgradeSlot::new(PassedUpgrades::All),
        }
    }
}

/// Tells a TLS client that it was refused, where it would only see a closed connection. A host that is not reached says nothing.
async fn refuse_tls(
    mut client: CountedStream,
    refusal: ConnectionRefusal,
) -> Result<(), ConnectionRefusal> {
    if !refusal.is_decision() {
        client.reset();
        return Err(refusal);
    }
    let tell = async {
        client.write_all(&ACCESS_DENIED).await?;
        client.shutdown().await?;
        // Bytes that are left unread would reset the connection and the alert with it.
        let mut rest = Vec::new();
        client.take(MAX_HEAD as u64).read_to_end(&mut rest).await
    };
    let _ = timeout(STEP_TIMEOUT, tell).await;
    Err(refusal)
}
