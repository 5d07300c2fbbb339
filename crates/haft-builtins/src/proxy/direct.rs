//! Connections that a program makes to a host by itself: the host is the one whose address it connected to, and all else is as by the
//! proxy.

use std::convert::Infallible;
use std::io::Cursor;
use std::net::SocketAddr;

use haft_http::stream::Stream;
use hyper::Version;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, join, split};
use tokio::time::timeout;

use crate::proxy::counted::CountedStream;
use crate::proxy::names::Destination;
use crate::proxy::refusal::ConnectionRefusal;
use crate::proxy::tunnel::{HelloNames, splice};
use crate::proxy::{
    CommandProxy, MAX_HEAD, ProxyBody, STEP_TIMEOUT, forward, same_host, strip_trailing_dot,
};
use crate::web::target::WebUrl;

/// The ports at which a connection must be TLS, and HTTP (IANA).
const HTTPS: u16 = 443;
const HTTP: u16 = 80;
/// The alert `access_denied` (RFC 8446 §6.2), fatal, as an unencrypted record.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
/// What begins a request. Other methods at ports other than HTTP's are bytes like those of any protocol.
const METHODS: [&[u8]; 7] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"PATCH ",
    b"DELETE ",
    b"OPTIONS ",
];

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
            Some(Ok(target)) if self.logins.logins.of(&target).is_some() => {
                let names = HelloNames::of(&target);
                self.serve_login(client, target, names).await
            }
            Some(Ok(target)) => match at.port() {
                HTTP => self.serve_requests(client, target).await,
                HTTPS => self.serve_tls(client, &target).await,
                _ => self.serve_any(client, target).await,
            },
        };
        if let Err(refusal) = done {
            self.refusals.note_untold(&refusal);
        }
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
                .reach(target, None)
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
        let mut upstream = match self.reach(&target, None).await {
            Ok(reached) => reached.stream,
            Err(refusal) => {
                client.reset();
                return Err(refusal);
            }
        };
        let begun = Beginning::read(&mut client, &mut upstream).await;
        match begun.protocol {
            Protocol::Tls => {
                let names = HelloNames::of(&target);
                match names.read_hello(&mut client, begun.sent).await {
                    Ok(None) => Ok(()),
                    Ok(Some(hello)) => splice(client, upstream, &hello).await,
                    Err(refusal) => refuse_tls(client, refusal).await,
                }
            }
            Protocol::Http => {
                let host = strip_trailing_dot(target.host());
                let target = WebUrl::of_connection("http", host, target.port());
                let target = target.map_err(|why| ConnectionRefusal::Unclear(why.to_string()))?;
                let (read, write) = split(client);
                let client = join(Cursor::new(begun.sent).chain(read), write);
                self.serve_requests(client, target).await
            }
            Protocol::Other => {
                // The program may have closed its end.
                if client.write_all(&begun.received).await.is_err() {
                    return Ok(());
                }
                splice(client, upstream, &begun.sent).await
            }
        }
    }

    /// Forwards one HTTP request for the host.
    async fn serve_requests(
        &self,
        client: impl AsyncRead + AsyncWrite + Unpin,
        target: WebUrl,
    ) -> Result<(), ConnectionRefusal> {
        let (way, host) = (self.clone(), target.host().to_owned());
        let service = service_fn(move |request| {
            let (way, target) = (way.clone(), target.clone());
            async move { Ok::<_, Infallible>(way.reply(way.request_of(request, &target).await)) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(STEP_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .keep_alive(false)
            .serve_connection(TokioIo::new(client), service);
        match served.await {
            Err(error) if error.is_parse() => Err(ConnectionRefusal::Tunnel {
                host,
                why: "it does not begin with an HTTP request".into(),
            }),
            // A program that disconnects, or sends nothing in time, ends its connection.
            _ => Ok(()),
        }
    }

    async fn request_of(
        &self,
        request: Request<Incoming>,
        target: &WebUrl,
    ) -> Result<Response<ProxyBody>, ConnectionRefusal> {
        if request.uri().authority().is_some() {
            return Err(ConnectionRefusal::Malformed(
                "a request to a host names a path: only the proxy takes a whole URL",
            ));
        }
        same_host(&request, target, request.version() == Version::HTTP_11)?;
        let upstream = self.reach(target, None).await?;
        forward::forward(request, upstream, target).await
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

/// The protocol of a connection by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tls,
    Http,
    Other,
}

/// What passed on a connection until its protocol was known.
#[derive(Debug)]
struct Beginning {
    protocol: Protocol,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Beginning {
    /// Reads until the protocol is known. If the host speaks first, it is neither TLS nor HTTP.
    async fn read(client: &mut CountedStream, upstream: &mut Stream) -> Self {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let protocol = loop {
            let ended = tokio::select! {
                read = client.read_buf(&mut sent) => matches!(read, Ok(0) | Err(_)),
                _ = upstream.read_buf(&mut received) => true,
            };
            match protocol_of(&sent) {
                _ if ended => break Protocol::Other,
                Some(protocol) => break protocol,
                None => {}
            }
        };
        Self {
            protocol,
            sent,
            received,
        }
    }
}

/// Returns the protocol that begins with these bytes, or `None` if it takes more of them.
fn protocol_of(sent: &[u8]) -> Option<Protocol> {
    match sent {
        [] | [22] => return None,
        [22, 3, ..] => return Some(Protocol::Tls),
        _ => {}
    }
    if METHODS.iter().any(|method| sent.starts_with(method)) {
        return Some(Protocol::Http);
    }
    let may_be = METHODS.iter().any(|method| method.starts_with(sent));
    (!may_be).then_some(Protocol::Other)
}

#[cfg(test)]
mod tests {
    use super::{Protocol, protocol_of};

    #[test]
    fn a_protocol_is_known_by_its_first_bytes() {
        for (sent, expect) in [
            (&b""[..], None),
            (b"\x16", None),
            (b"\x16\x03", Some(Protocol::Tls)),
            (b"\x16\x02", Some(Protocol::Other)),
            (b"G", None),
            (b"OPTIONS", None),
            (b"GET /", Some(Protocol::Http)),
            (b"OPTIONS *", Some(Protocol::Http)),
            (b"GETS", Some(Protocol::Other)),
            (b"SSH-2.0-x", Some(Protocol::Other)),
            (b"EHLO x", Some(Protocol::Other)),
            (b"\0\0\0\x08\x04\xd2\x16/", Some(Protocol::Other)),
        ] {
            assert_eq!(protocol_of(sent), expect, "{sent:?}");
        }
    }
}
